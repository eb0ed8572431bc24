"""The folder of a bundle while it is filled: what is there stays, what is missing comes, each file whole or not."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, ClassVar

from rigctl import compat
from rigctl.bundling import history
from rigctl.bundling.manifest import NAME, File, TorchPart, is_whole, sha256_of
from rigctl.bundling.wheels import fetch_wheels, platforms
from rigctl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from pathlib import Path

    from rigctl.bundling.make import BundleProgress
    from rigctl.bundling.source import SourceRig
    from rigctl.bundling.wishes import TorchWish

_BATCH_BYTES = 256_000_000
_BATCH_FILES = 50
"""So much lies on the source rig at once, a larger package alone excepted."""


class Filling:
    """One filling of a folder."""

    LOCK: ClassVar = ".lock"
    RECORD: ClassVar = "filling.json"
    NAMES: ClassVar = frozenset({NAME, f"{NAME}.part", LOCK, RECORD, "debs", "wheels", "git", "lists", "lost+found"})
    MARKS: ClassVar = (NAME, RECORD)
    """A folder with one of these is a bundle, or one that was being filled."""

    def __init__(self, folder: Path, source: SourceRig, progress: BundleProgress) -> None:
        self._folder = folder
        self._source = source
        self._progress = progress
        self.fetched = 0
        """Bytes that were not there before."""
        record = folder / self.RECORD
        self._kept: dict[str, list[dict[str, Any]]] = json.loads(record.read_bytes()) if record.is_file() else {}
        for name in ("debs", "wheels", "git", "lists"):
            (folder / name).mkdir(exist_ok=True)
        self._keep("", [])

    def has(self, file: File) -> bool:
        """Whether a file is there already."""
        return is_whole(self._folder, file)

    def debs(self, described: Iterable[dict[str, Any]]) -> dict[str, File]:
        """Return `name=version` → the file that the package will be."""
        return {
            f"{one['package']}={one['version']}": File(
                path=deb_path(one),
                size=one["size"],
                sha256=one["sha256"],
                package=one["package"],
                version=one["version"],
            )
            for one in described
        }

    def fetch(self, files: dict[str, File], missing: Sequence[str]) -> None:
        """Bring packages here, some at a time: the source rig need not have room for all."""
        self._progress.begin(f"fetching {len(missing)} packages", sum(files[name].size for name in missing))
        for batch in batches(missing, files):
            places = self._source.fetch(batch)
            for name in batch:
                self._bring(places[name], files[name])
            self._source.forget(list(places.values()))

    def lists(self, described: Iterable[dict[str, Any]]) -> File:
        """Write the package lists' paragraphs, with the places that the files have here."""
        text = "\n\n".join(_placed(one) for one in sorted(described, key=lambda one: str(one["package"]))) + "\n"
        data = text.encode()
        sha256 = hashlib.sha256(data).hexdigest()
        file = File(path=f"lists/{sha256[:16]}.txt", size=len(data), sha256=sha256)
        if not self.has(file):
            (self._folder / file.path).write_bytes(data)
        return file

    def sources(self, wanted: Iterable[tuple[str, str]]) -> list[tuple[str, File]]:
        """Bring gpu-burn's commits: commit and file for each."""
        found = []
        for repo, commit in wanted:
            kept = self._kept_files(f"git {commit}")
            found.append((commit, kept[0] if kept else self._pack(repo, commit)))
        return found

    def torch(self, wanted: Iterable[TorchWish], answer: dict[str, Any]) -> list[tuple[TorchPart, list[File]]]:
        """Bring PyTorch's wheels, for the Python and the system of the source rig."""
        drivers = {part["driver"].partition(".")[0]: part["driver"] for part in answer["drivers"]}
        found = []
        for wish in wanted:
            rig = {"driver": drivers.get(wish.driver, wish.driver), "python": answer["platform"]["python"]}
            choice = compat.rules().torch_choice(rig, {"version": wish.version, "build": wish.build})
            key = f"torch {wish} {choice['version']}+{choice['build']} {rig['python']} {answer['libc']}"
            files = self._kept_files(key) or self._wheels(key, wish, choice, answer)
            part = TorchPart(
                asked_version=wish.version,
                asked_build=wish.build,
                driver=wish.driver,
                version=choice["version"],
                build=choice["build"],
                extra=wish.extra,
                files=tuple(file.path for file in files),
            )
            found.append((part, files))
        return found

    def _wheels(self, key: str, wish: TorchWish, choice: dict[str, str], answer: dict[str, Any]) -> list[File]:
        house = self._folder / "wheels"
        untagged = wish.wheelhouse and choice["build"] == "cpu"
        wanted = f"torch=={choice['version']}" + ("" if untagged else f"+{choice['build']}")
        sources = ["--extra-index-url", wish.index_url or choice["index_url"]]
        if wish.wheelhouse:
            self._bring_wheelhouse(wish.wheelhouse)
            sources = ["--no-index", "--find-links", str(house)]
        self._progress.begin(f"{'choosing' if wish.wheelhouse else 'fetching'} wheels of {wanted}")
        tags = platforms(answer["libc"], answer["platform"]["architecture"])
        before = {path.name for path in house.glob("*.whl")}
        python = answer["platform"]["python"]
        paths = fetch_wheels([wanted, *wish.extra], house, python=python, tags=tags, sources=sources)
        self.fetched += sum(path.stat().st_size for path in paths if path.name not in before)
        return self._keep(key, [self._file(path) for path in paths])

    def _bring_wheelhouse(self, folder: str) -> None:
        wheels = self._source.wheels(folder)
        files = [File(path=f"wheels/{one['name']}", size=one["size"], sha256=one["sha256"]) for one in wheels]
        missing = [(one["place"], file) for one, file in zip(wheels, files, strict=True) if not self.has(file)]
        self._progress.begin(f"fetching {len(missing)} wheels", sum(file.size for _, file in missing))
        for place, file in missing:
            self._bring(place, file)

    def _pack(self, repo: str, commit: str) -> File:
        path = self._folder / "git" / f"gpu-burn-{commit[:16]}.tar"
        self._progress.begin(f"packing gpu-burn at {commit[:7]}")
        if repo.startswith(("/", "file:")):  # a place on the rig itself
            packed = self._source.pack_git(repo, commit)
            file = File(path=f"git/{path.name}", size=packed["size"], sha256=packed["sha256"])
            self._bring(packed["place"], file)
        else:
            try:
                history.pack(repo, commit, path)
            except history.HistoryMissing as error:
                raise UsageError(
                    f"commit {commit} of {repo} cannot be packed: {error}",
                    "correct gpu_burn_repo or gpu_burn_commit in the inventory",
                ) from error
            self.fetched += path.stat().st_size
        return self._keep(f"git {commit}", [self._file(path)])[0]

    def _bring(self, place: str, file: File) -> None:
        self._source.bring(place, self._folder / file.path, file.size, file.sha256, self._progress.moved)
        self.fetched += file.size

    def _file(self, path: Path) -> File:
        return File(path=str(path.relative_to(self._folder)), size=path.stat().st_size, sha256=sha256_of(path))

    def _kept_files(self, key: str) -> list[File]:
        """What an earlier filling brought for `key`; empty unless all of it is there."""
        files = [File.model_validate(one) for one in self._kept.get(key, ())]
        return files if all(self.has(file) for file in files) else []

    def _keep(self, key: str, files: list[File]) -> list[File]:
        """Note what was brought for `key`, so that the next filling need not ask for it."""
        if key:
            self._kept[key] = [file.model_dump() for file in files]
        part = self._folder / f"{self.RECORD}.part"
        part.write_text(json.dumps(self._kept, indent=1), encoding="utf-8")
        part.replace(self._folder / self.RECORD)
        return files


def deb_path(package: dict[str, Any]) -> str:
    """Where a package lies in the bundle: as in Debian's pools without the epoch, `:` is no letter for every disk."""
    version = package["version"].partition(":")[2] or package["version"]
    return f"debs/{package['package']}_{version}_{package['architecture']}.deb"


def batches(names: Collection[str], files: dict[str, File]) -> list[list[str]]:
    """Divide packages into groups that the source rig fetches at once."""
    found: list[list[str]] = []
    held = 0
    for name in names:
        if not found or len(found[-1]) >= _BATCH_FILES or held + files[name].size > _BATCH_BYTES:
            found.append([])
            held = 0
        found[-1].append(name)
        held += files[name].size
    return found


def _placed(package: dict[str, Any]) -> str:
    lines = str(package["record"]).splitlines()
    return "\n".join(f"Filename: {deb_path(package)}" if line.startswith("Filename:") else line for line in lines)
