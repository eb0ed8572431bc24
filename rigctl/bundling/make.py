"""Fill a folder with everything that some rigs install: resolved on a connected rig of their kind, fetched, proved."""

from __future__ import annotations

import contextlib
import fcntl
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from rigctl import compat
from rigctl.bundling.filling import Filling
from rigctl.bundling.manifest import (
    DriverPart,
    File,
    Manifest,
    Platform,
    SourcePart,
    SystemPart,
    ToolkitPart,
    damages,
    sweep,
    write_manifest,
)
from rigctl.bundling.source import SourceRig
from rigctl.bundling.wishes import VARIABLES, repository_key, wishes_of
from rigctl.errors import UsageError
from rigctl.fleet.ssh import RigConnection
from rigctl.inventory import load_fleet, load_variables

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pydantic import SecretStr

    from rigctl.bundling.wishes import Wishes
    from rigctl.model.rig import Rig

FOLDERS = ("debs", "wheels", "git", "lists")


@dataclass(frozen=True)
class BundleOptions:
    """What was asked for."""

    folder: Path
    inventory: Path | None = None
    rigs: str = "all"
    """Ansible host pattern: the rigs that shall be provisioned from the bundle."""
    source: str = ""
    """The rig through which it is made; empty: the first of `rigs`."""
    kernels: tuple[str, ...] = ()
    """Kernels whose headers shall be in it, beside those of the source rig."""
    become_password: SecretStr | None = None


class BundleOutcome(BaseModel):
    """What became of it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    folder: str
    source: str
    size: int
    """Bytes of the whole bundle."""
    fetched: int
    """Bytes of those files that were not there before."""
    files: int
    manifest_sha256: str
    manifest: Manifest


@dataclass
class BundleProgress:
    """Where the filling is; written in one thread, read in others."""

    stage: str = "asking the rig"
    done: int = 0
    """Bytes of this stage."""
    total: int = 0
    """0: not known."""
    notes: list[str] = field(default_factory=list)

    def begin(self, stage: str, total: int = 0) -> None:
        """Start a stage."""
        self.stage, self.done, self.total = stage, 0, total
        self.notes.append(f"{stage} ({size_words(total)})" if total else stage)

    def moved(self, count: int) -> None:
        """Take note of bytes that have come."""
        self.done += count


def size_words(count: int) -> str:
    """Bytes as people read them."""
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"  # noqa: PLR2004


def make_bundle(options: BundleOptions, progress: BundleProgress) -> BundleOutcome:
    """Fill the folder; what an earlier filling has brought is not fetched again.

    The manifest is written when everything else is there, so a folder that has one is whole at every moment.

    Raises:
        UsageError: the inventory is wrong, the rigs ask for what one bundle cannot hold, or the folder is unfit.
        RigError: the source rig cannot be asked, or its package sources do not have what is asked for.
        RigctlError: wheels or sources cannot be had.
    """
    fleet = load_fleet(options.inventory, options.rigs)
    compat.refuse_wishes(fleet)
    wishes = wishes_of(load_variables(options.inventory, options.rigs, VARIABLES))
    rig = _source_rig(options, fleet)
    with _locked(options.folder):
        connection = RigConnection(rig.login, rig.name)
        try:
            connection.connect()
            manifest, fetched = _fill(SourceRig(connection), wishes, options, progress)
        finally:
            connection.close()
        progress.begin("comparing every file with the manifest", manifest.size)
        for file, what in damages(options.folder, manifest):
            raise UsageError(
                f"{options.folder / file.path} {what} after it was written",
                "the disk loses data: take another one",
            )
        write_manifest(options.folder, manifest)
        sweep(options.folder, manifest, FOLDERS)
    return BundleOutcome(
        folder=str(options.folder),
        source=rig.name,
        size=manifest.size,
        fetched=fetched,
        files=len(manifest.files),
        manifest_sha256=manifest.sha256,
        manifest=manifest,
    )


def _source_rig(options: BundleOptions, fleet: tuple[Rig, ...]) -> Rig:
    rigs = load_fleet(options.inventory, options.source) if options.source else fleet[:1]
    if len(rigs) > 1:
        raise UsageError(f"--from {options.source} names {len(rigs)} rigs", "name one that reaches its package sources")
    rig = rigs[0]
    return rig.with_become_password(options.become_password) if options.become_password else rig


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Let one process at a time fill a folder.

    Raises:
        UsageError: it cannot be written, holds something else, or is being filled.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        strangers = sorted(path.name for path in folder.iterdir() if path.name not in Filling.NAMES)
        if strangers and not any((folder / name).exists() for name in Filling.MARKS):
            raise UsageError(f"{folder} holds other things: {strangers[0]}", "name an empty folder, or one of a bundle")
        lock = (folder / Filling.LOCK).open("w")
    except OSError as error:
        raise UsageError(f"{folder} cannot be written: {error.strerror}", "name a folder of yours") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UsageError(f"another rigctl fills {folder} at this moment", "wait for it") from error
        yield


def _fill(source: SourceRig, wishes: Wishes, options: BundleOptions, progress: BundleProgress) -> tuple[Manifest, int]:
    """Bring everything into the folder; return what it is, and how many bytes were fetched."""
    progress.begin("asking the rig's package sources")
    answer = source.resolve(_request(wishes, options.kernels))
    try:
        filling = Filling(options.folder, source, progress)
        debs = {f"{one['package']}={one['version']}": one for one in answer["described"]}
        files = filling.debs(debs.values())
        missing = [name for name, file in files.items() if not filling.has(file)]
        _refuse_full_disk(options.folder, sum(files[name].size for name in missing))
        sources = filling.sources(wishes.sources)
        torch = filling.torch(wishes.torch, answer)
        filling.fetch(files, missing)
        lists = filling.lists(debs.values())
    finally:
        source.forget()
    manifest = Manifest(
        platform=Platform(**answer["platform"]),
        system=SystemPart(packages=answer["system"], files=_paths(answer["system_packages"], files)),
        drivers=tuple(
            DriverPart(
                branch=wish.branch,
                flavour=wish.flavour,
                modules=wish.modules,
                asked_version=wish.version,
                files=_paths(found.pop("packages"), files),
                **found,
            )
            for wish, found in zip(wishes.drivers, answer["drivers"], strict=True)
        ),
        toolkits=tuple(
            ToolkitPart(version=version, files=_paths(found["packages"], files))
            for version, found in zip(wishes.toolkits, answer["toolkits"], strict=True)
        ),
        torch=tuple(part for part, _ in torch),
        gpu_burn=tuple(SourcePart(commit=commit, files=(file.path,)) for commit, file in sources),
        lists=lists.path,
        files=_every([*files.values(), *(file for _, own in torch for file in own), *(f for _, f in sources), lists]),
    )
    return manifest, filling.fetched


def _request(wishes: Wishes, kernels: tuple[str, ...]) -> dict[str, Any]:
    return {
        "cuda": {"line": wishes.cuda_line, "key": repository_key(wishes), "key_path": wishes.cuda_key_path},
        "system": list(wishes.system),
        "optional": list(wishes.optional),
        "drivers": [wish.request() for wish in wishes.drivers],
        "toolkits": list(wishes.toolkits),
        "kernels": list(kernels),
    }


def _paths(packages: list[list[str]], files: dict[str, File]) -> tuple[str, ...]:
    return tuple(sorted(files[f"{name}={version}"].path for name, version in packages))


def _every(files: list[File]) -> tuple[File, ...]:
    return tuple(sorted({file.path: file for file in files}.values(), key=lambda file: file.path))


def _refuse_full_disk(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise UsageError(
            f"{folder} has {size_words(free)} free, the packages take {size_words(needed)} more",
            "name a folder on a larger disk",
        )
