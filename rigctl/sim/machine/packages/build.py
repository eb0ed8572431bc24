"""Build all archives of simulated rigs: `python3 -m packages.build --out /srv/rigsim --built DIR`.

DIR holds what was compiled before: `libraries/VERSION/*.so.*` for each driver version, `programs/*` (nvidia-smi) and
`cuda/SERIES/**` (the contents of a toolkit's folder).
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from .deb import Package, index_entry, write_index, write_release
from .driver import Driver, DriverFiles, packages
from .toolkit import Toolkit, dkms_package, kernel_packages, toolkit_packages

HERE = Path(__file__).parent
SUITE = "jammy"


def definition() -> dict[str, Any]:
    """Return `archive.json`."""
    found: dict[str, Any] = json.loads((HERE / "archive.json").read_text(encoding="utf-8"))
    return found


def drivers(entries: list[dict[str, str]]) -> list[Driver]:
    """Return the drivers that one list of `archive.json` names."""
    return [Driver(**{key: value for key, value in entry.items() if key != "source"}) for entry in entries]


def versions_to_compile(archive: dict[str, Any]) -> list[tuple[str, str]]:
    """Return branch number and version of every real driver: each needs its own libraries."""
    entries = [
        entry for world in archive["worlds"].values() for pocket in world["pockets"].values() for entry in pocket
    ]
    real = [driver for driver in drivers([*entries, *archive["cuda"]["drivers"]]) if not driver.becomes]
    return sorted({(str(driver.number), driver.version) for driver in real})


def build(out: Path, built: Path) -> None:
    """Write `out/ubuntu/WORLD`, `out/cuda` and the pool that they share."""
    archive = definition()
    files = _compiled(built, archive)
    kernel = archive["kernel"]
    common = [
        *kernel_packages(kernel["release"], kernel["version"]),
        dkms_package(archive["dkms"]["version"], (HERE / "dkms").read_bytes()),
    ]
    base = [*_put(out, "main", common), *_real_entries(out / "pool" / "debian", out)]
    for name, world in archive["worlds"].items():
        root = out / "ubuntu" / name
        _suite(root, SUITE, main=base)
        for pocket in (f"{SUITE}-updates", f"{SUITE}-security"):
            listed = drivers(world["pockets"].get(pocket, []))
            found = [one for driver in listed for one in packages(driver, files, kernel["release"])]
            _suite(root, pocket, restricted=_put(out, "restricted", found))
        _link_pool(root, "../../pool")
    _cuda(out, archive["cuda"], files, built)


def _cuda(out: Path, cuda: dict[str, Any], files: DriverFiles, built: Path) -> None:
    found: list[Package] = [one for driver in drivers(cuda["drivers"]) for one in packages(driver, files)]
    for entry in cuda["toolkits"]:
        toolkit = Toolkit(**{key: value for key, value in entry.items() if key != "source"})
        home = built / "cuda" / toolkit.series
        content = {str(path.relative_to(home)): path.read_bytes() for path in _files(home)}
        if not content:
            raise SystemExit(f"error: nothing was compiled for CUDA {toolkit.series} in {home}")
        found += toolkit_packages(toolkit, content)
    root = out / "cuda"
    write_index(root, _put(out, "cuda", found))
    write_release(root, {"Origin": cuda["origin"], "Label": cuda["label"], "Architecture": "x86_64"})
    _link_pool(root, "../pool")


def _suite(root: Path, suite: str, *, main: list[str] | None = None, restricted: list[str] | None = None) -> None:
    folder = root / "dists" / suite
    write_index(folder / "main" / "binary-amd64", main or [])
    write_index(folder / "restricted" / "binary-amd64", restricted or [])
    write_index(folder / "universe" / "binary-amd64", [])
    fields = {
        "Origin": "Ubuntu",
        "Label": "Ubuntu",
        "Suite": suite,
        "Version": "22.04",
        "Codename": SUITE,
        "Architectures": "amd64",
        "Components": "main restricted universe",
        "Description": "Simulated Ubuntu Jammy 22.04 (rigctl sim)",
    }
    write_release(folder, fields)


def _put(out: Path, part: str, found: list[Package]) -> list[str]:
    """Write packages into the pool and return their index entries.

    Raises:
        SystemExit: two archives name one file and mean different bytes, so that the index of one would be wrong.
    """
    folder = out / "pool" / part
    folder.mkdir(parents=True, exist_ok=True)
    entries = []
    for package in found:
        data = package.build()
        file = folder / package.file_name
        if file.exists() and file.read_bytes() != data:
            raise SystemExit(f"error: two different packages would be {file.relative_to(out)}")
        file.write_bytes(data)
        entries.append(index_entry(package.control(), f"pool/{part}/{package.file_name}", data))
    return entries


def _real_entries(folder: Path, out: Path) -> list[str]:
    """Return index entries of the real packages that were fetched into `folder`."""
    entries = []
    for path in sorted(folder.glob("*.deb")):
        control = subprocess.run(["dpkg-deb", "--field", str(path)], capture_output=True, text=True, check=True).stdout
        entries.append(index_entry(control, str(path.relative_to(out)), path.read_bytes()))
    return entries


def _compiled(built: Path, archive: dict[str, Any]) -> DriverFiles:
    libraries = {}
    for _branch, version in versions_to_compile(archive):
        folder = built / "libraries" / version
        libraries[version] = {path.name: path.read_bytes() for path in _files(folder)}
        if not libraries[version]:
            raise SystemExit(f"error: nothing was compiled for driver {version} in {folder}")
    programs = {path.name: path.read_bytes() for path in _files(built / "programs")}
    return DriverFiles(libraries, programs)


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def _link_pool(root: Path, target: str) -> None:
    link = root / "pool"
    link.unlink(missing_ok=True)
    link.symlink_to(target)


def main() -> int:
    """Build the archives; with `--versions` or `--toolkits` print what must be compiled before."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--versions", action="store_true", help="print 'BRANCH VERSION' of each real driver, and exit")
    parser.add_argument("--toolkits", action="store_true", help="print the series of each CUDA toolkit, and exit")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--built", type=Path)
    asked = parser.parse_args()
    if asked.versions:
        sys.stdout.writelines(f"{branch} {version}\n" for branch, version in versions_to_compile(definition()))
        return 0
    if asked.toolkits:
        sys.stdout.writelines(f"{entry['series']}\n" for entry in definition()["cuda"]["toolkits"])
        return 0
    if asked.out is None or asked.built is None:
        parser.error("--out and --built are needed")
    shutil.rmtree(asked.out / "ubuntu", ignore_errors=True)
    for part in ("main", "restricted", "cuda"):
        shutil.rmtree(asked.out / "pool" / part, ignore_errors=True)
    build(asked.out, asked.built)
    return 0


if __name__ == "__main__":
    sys.exit(main())
