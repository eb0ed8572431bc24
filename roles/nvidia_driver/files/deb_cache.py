"""Make a folder of driver packages a source of apt, which its Release file calls `gpu-rig deb cache`.

Runs on the rig as root with the system's Python (3.10 or newer, standard library only) and prints one JSON object.
Its one argument are wishes as JSON: folder, check (only say what would change).
"""

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

from apt_answers import run

HOME = Path("/var/lib/gpu-rig/deb-cache")
SOURCE_LIST = Path("/etc/apt/sources.list.d/gpu-rig-deb-cache.list")


def fingerprint(files: list[Path]) -> str:
    """What changes when a package is added, removed or replaced."""
    stats = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    return hashlib.sha256(repr(stats).encode()).hexdigest()


def entry(path: Path) -> str:
    """The paragraph of a Packages file for one package.

    Raises:
        ValueError: the file is no package.
    """
    rc, control = run("dpkg-deb", "--field", str(path))
    if rc:
        raise ValueError(f"{path} is not a Debian package: {' '.join(control.split())}")
    data = path.read_bytes()
    place = f"Filename: debs/{path.name}\nSize: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}"
    return f"{control.rstrip()}\n{place}\n"


def write_index(folder: Path, files: list[Path], home: Path) -> None:
    """Write Packages and Release into `home`, beside a link to the folder."""
    index = "\n".join(entry(path) for path in files).encode()
    home.mkdir(parents=True, exist_ok=True)
    link = home / "debs"
    link.unlink(missing_ok=True)
    link.symlink_to(folder)
    (home / "Packages").write_bytes(index)
    digest = f" {hashlib.sha256(index).hexdigest()} {len(index)} Packages"
    (home / "Release").write_text(f"Origin: gpu-rig\nLabel: gpu-rig deb cache\nSHA256:\n{digest}\n", encoding="utf-8")


def read_lists(source_list: Path) -> str:
    """Have apt read this source alone; its words where it could not."""
    rc, text = run(
        "apt-get", "-q", "-o", f"Dir::Etc::SourceList={source_list}", "-o", "Dir::Etc::SourceParts=-",
        "-o", "APT::Get::List-Cleanup=0", "-o", "DPkg::Lock::Timeout=600", "update", timeout_s=900,
    )  # fmt: skip
    return " ".join(text.split())[-300:] if rc else ""


def index_folder(folder: Path, *, check: bool, home: Path = HOME, source_list: Path = SOURCE_LIST) -> dict[str, Any]:
    """Bring apt's view of the folder up to date: whether that changed something, and why it could not."""
    files = sorted(folder.glob("*.deb"))
    if not files:
        return {"changed": False, "refusal": f"{folder} on the rig holds no .deb files"}
    mark, now = home / "fingerprint", fingerprint(files)
    line = f"deb [trusted=yes] file:{home} ./\n"
    indexed = mark.is_file() and mark.read_text(encoding="ascii") == now
    listed = source_list.is_file() and source_list.read_text(encoding="utf-8") == line
    if (indexed and listed) or check:
        return {"changed": not (indexed and listed), "refusal": ""}
    try:
        write_index(folder, files, home)
    except ValueError as error:
        return {"changed": False, "refusal": str(error)}
    source_list.write_text(line, encoding="utf-8")
    source_list.chmod(0o644)  # whatever umask sudo gave
    refusal = read_lists(source_list)
    if not refusal:
        mark.write_text(now, encoding="ascii")
    return {"changed": True, "refusal": refusal}


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    json.dump(index_folder(Path(asked["folder"]), check=asked["check"]), sys.stdout)
