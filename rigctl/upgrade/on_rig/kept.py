"""Keep what a way back needs, and go that way: packages, files and built folders, without a network."""

import base64
import errno
import os
import re
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from .state import FILES, Refused, files, must, packages, run

KEPT = Path("/var/lib/gpu-rig/rollback")
FETCH_S, APT_S = 1800, 3600
SHOWN = 3
"""How many packages a message names."""
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def folder(run_id: str) -> Path:
    """Where a run's things are kept. Raises Refused for what is no run's id."""
    if not _RUN_ID.fullmatch(run_id):
        raise Refused(f"{run_id!r} is no run's id")
    return KEPT / run_id


def keep(run_id: str, names: list[str], folders: list[str]) -> dict[str, Any]:
    """Keep the packages of these names as they are installed now, and copies of folders.

    What is kept already stays: the step may be done again. Raises Refused, naming the packages that can be had nowhere.
    """
    here = folder(run_id)
    debs = here / "debs"
    debs.mkdir(parents=True, exist_ok=True, mode=0o700)
    installed = {one["name"]: one["version"] for one in packages()}
    wanted = {name: installed[name] for name in names if name in installed}
    missing = [f"{name}={version}" for name, version in wanted.items() if _deb_of(debs, name, version) is None]
    if missing:
        # All in one call where every one is on offer; else one by one, each from wherever it can be had.
        run("apt-get", "-q", "download", *missing, timeout_s=FETCH_S, cwd=str(debs))
    lost = [f"{name}={version}" for name, version in wanted.items() if not _keep_deb(debs, name, version)]
    if lost:
        raise Refused(
            f"the packages to go back to can be had nowhere: {_some(lost)}",
            "install dpkg-repack there, which makes them from what is installed, or say --no-rollback",
        )
    for path in folders:
        copy = here / "folders" / quote(path, safe="")
        if Path(path).is_dir() and not copy.exists():
            _link_copy(Path(path), copy)
    return {"debs": sorted(path.name for path in debs.glob("*.deb"))}


def _some(names: list[str]) -> str:
    """The first of them, and how many more there are."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _keep_deb(debs: Path, name: str, version: str) -> bool:
    """Have one package's file in the folder: from a source, from apt's cache, or made from what is installed."""
    if _deb_of(debs, name, version) is not None:
        return True
    cached = list(Path("/var/cache/apt/archives").glob(f"{name.partition(':')[0]}_{version.replace(':', '%3a')}_*.deb"))
    if cached:
        shutil.copy(cached[0], debs)
    elif run("apt-get", "-q", "download", f"{name}={version}", timeout_s=FETCH_S, cwd=str(debs))[0]:
        run("dpkg-repack", name, timeout_s=FETCH_S, cwd=str(debs))
    return _deb_of(debs, name, version) is not None


def _deb_of(debs: Path, name: str, version: str) -> Path | None:
    """The file that holds exactly this package."""
    bare = name.partition(":")[0]
    for path in debs.glob(f"{bare}_*.deb"):
        code, out, _ = run("dpkg-deb", "--show", "--showformat", "${Package}\\t${Version}", str(path))
        if code == 0 and out.split("\t") == [bare, version]:
            return path
    return None


def _link_copy(source: Path, copy: Path) -> None:
    """Copy a folder; a virtual environment, which takes gigabytes, by hard links where the file system can.

    pip replaces files and writes into none, so a link keeps what was there; compilers may write into what they find.
    """
    part = copy.with_name(copy.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    part.parent.mkdir(parents=True, exist_ok=True)

    def link(one: str, other: str) -> None:
        try:
            os.link(one, other, follow_symlinks=False)
        except OSError:  # another file system
            shutil.copy2(one, other, follow_symlinks=False)

    shutil.copytree(
        source, part, symlinks=True, copy_function=link if (source / "pyvenv.cfg").is_file() else shutil.copy2
    )
    part.rename(copy)


def restore(run_id: str, before: dict[str, Any]) -> dict[str, Any]:
    """Put packages, marks, files and folders back as they were; can be done again. Raises Refused."""
    here = folder(run_id)
    _finish_dpkg()
    put_files_back(before["files"])
    changed = _put_packages_back(here / "debs", before["packages"])
    _put_marks_back(before["packages"])
    put_files_back(before["files"])  # packages bring files of their own
    for copy in sorted((here / "folders").glob("*")) if (here / "folders").is_dir() else ():
        put_folder_back(copy)
    must("ldconfig")
    if changed and shutil.which("update-initramfs"):
        must("update-initramfs", "-u", timeout_s=APT_S)
    put_grub_back(before.get("grub_saved"))
    if before.get("kernel", os.uname().release) != os.uname().release and shutil.which("dkms"):
        # The packages built for the running kernel, which is not the one that the rig goes back to.
        run("dkms", "autoinstall", "-k", before["kernel"], timeout_s=APT_S)
    must("systemctl", "daemon-reload")
    return {"changed": changed}


def forget(run_id: str) -> dict[str, Any]:
    """Remove what was kept for a run."""
    shutil.rmtree(folder(run_id), ignore_errors=True)
    return {}


def _finish_dpkg() -> None:
    """Go on where dpkg was broken off; what cannot be finished is gone back from anyway."""
    run("dpkg", "--force-confdef", "--force-confold", "--configure", "-a", timeout_s=APT_S)


def _put_packages_back(debs: Path, before: list[dict[str, Any]]) -> bool:
    """One transaction: the old files in, what is new out. Returns whether there was anything to do."""
    had = {one["name"]: one["version"] for one in before}
    has = {one["name"]: one["version"] for one in packages()}
    back = sorted(name for name, version in had.items() if has.get(name) != version)
    new = sorted(has.keys() - had.keys())
    if not back and not new:
        return False
    paths = {name: _deb_of(debs, name, had[name]) for name in back}
    lost = [f"{name}={had[name]}" for name, path in paths.items() if path is None]
    if lost:
        raise Refused(f"the packages to go back to were not kept: {_some(lost)}", "install them by hand")
    words = [str(path) for path in paths.values()] + [f"{name}-" for name in new]
    must(
        "apt-get", "-y", "-q", "-o", "DPkg::Lock::Timeout=300", "-o", "Dpkg::Options::=--force-confdef",
        "-o", "Dpkg::Options::=--force-confold", "-o", "Dir::Etc::Preferences=/dev/null",
        "-o", "Dir::Etc::PreferencesParts=/dev/null", "--no-install-recommends", "--allow-downgrades",
        "--allow-change-held-packages", "--purge", "install", *words, timeout_s=APT_S,
    )  # fmt: skip
    return True


def _put_marks_back(before: list[dict[str, Any]]) -> None:
    now = {one["name"]: one for one in packages()}
    for mark, field, value in (
        ("hold", "held", True),
        ("unhold", "held", False),
        ("manual", "manual", True),
        ("auto", "manual", False),
    ):
        differ = [
            one["name"] for one in before if one["name"] in now and now[one["name"]][field] != one[field] == value
        ]
        if differ:
            must("apt-mark", mark, *differ)


def put_files_back(before: dict[str, str | None], root: str = "/") -> None:
    """Write what was there, remove what was not; only under the patterns that were captured."""
    now = files(FILES, root)
    for path in sorted(now.keys() - {path for path, content in before.items() if content is not None}):
        Path(root + path).unlink()
    for path, content in before.items():
        if content is not None and now.get(path) != content:
            target = Path(root + path)
            target.parent.mkdir(parents=True, exist_ok=True)
            part = target.with_name(target.name + ".gpu-rig-part")
            part.write_bytes(base64.b64decode(content))
            part.chmod(target.stat().st_mode & 0o7777 if target.exists() else 0o644)
            part.replace(target)


def put_grub_back(saved: str | None, environment: str = "/boot/grub/grubenv") -> None:
    """Have GRUB start what it started: its menu by the settings that are back, and its saved entry. None: let it be."""
    if not shutil.which("update-grub"):
        return
    must("update-grub", timeout_s=APT_S)
    if not Path(environment).is_file():
        return
    must("grub-editenv", "-", "unset", "next_entry")  # a trial that was prepared and not begun
    if saved is not None:
        must("grub-editenv", "-", *(("set", f"saved_entry={saved}") if saved else ("unset", "saved_entry")))


def put_folder_back(copy: Path) -> None:
    """Let the copy stand where the folder stood; the copy itself stays, for the step may be done again."""
    path = Path(unquote(copy.name))
    fresh, old = path.with_name(path.name + ".gpu-rig-new"), path.with_name(path.name + ".gpu-rig-old")
    for left in (fresh, old):
        shutil.rmtree(left, ignore_errors=True)
    _link_copy(copy, fresh)
    if path.exists():
        _out_of_the_way(path, old)
    fresh.rename(path)
    shutil.rmtree(old, ignore_errors=True)


def _out_of_the_way(path: Path, old: Path) -> None:
    """Rename a folder; where it cannot be renamed (a lower layer of an overlay, a mount) it is removed at once."""
    try:
        path.rename(old)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        shutil.rmtree(path)
