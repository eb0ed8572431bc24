"""Build all archives of one platform's rigs: `python3 -m packages.build --platform P --out /srv/rigsim --built DIR`.

DIR holds what was compiled before: `libraries/VERSION/*.so.*` for each driver version, `programs/*` (nvidia-smi) and
`cuda/SERIES/**` (the contents of a toolkit's folder).
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from . import debian
from .deb import Package, index_entry, write_index, write_release
from .driver import Driver, DriverFiles, packages
from .toolkit import Toolkit, dkms_package, kernel_packages, toolkit_packages
from .tools import tool_packages

HERE = Path(__file__).parent
Entry = tuple[str, str]
"""Component and index paragraph of a package."""
DEFAULT_PLATFORM = "ubuntu-22.04"


def platforms() -> list[str]:
    """Return the names of all platforms, the default first."""
    others = sorted(path.stem.removeprefix("archive-") for path in HERE.glob("archive-*.json"))
    return [DEFAULT_PLATFORM, *others]


def definition(platform: str = DEFAULT_PLATFORM) -> dict[str, Any]:
    """Return what the archives of a platform offer, and what its rigs are: `archive.json`, or the platform's own."""
    name = "archive.json" if platform == DEFAULT_PLATFORM else f"archive-{platform}.json"
    found: dict[str, Any] = json.loads((HERE / name).read_text(encoding="utf-8"))
    return found


def distribution(archive: dict[str, Any]) -> str:
    """Return `ubuntu` or `debian`; a rig's archives lie in /srv/rigsim under this name."""
    found: str = archive["system"]["os_release"]["ID"]
    return found


def drivers(entries: list[dict[str, Any]]) -> list[Driver]:
    """Return the drivers that one list of `archive.json` names."""
    return [Driver(**{key: value for key, value in entry.items() if key != "source"}) for entry in entries]


def versions_to_compile(archive: dict[str, Any]) -> list[tuple[str, str]]:
    """Return branch number and version of every real driver: each needs its own libraries."""
    entries = [
        entry for world in archive["worlds"].values() for pocket in world["pockets"].values() for entry in pocket
    ]
    real = [driver for driver in drivers([*entries, *archive["cuda"]["drivers"]]) if not driver.becomes]
    return sorted({(str(driver.number), driver.version) for driver in real})


def build(out: Path, built: Path, platform: str = DEFAULT_PLATFORM, world: str = "") -> None:
    """Write `out/DISTRIBUTION/WORLD`, `out/cuda` and the pool that they share.

    Args:
        out: Where to.
        built: What was compiled before.
        platform: Whose archives.
        world: The one whose real packages were fetched into the pool; empty: all that are made of stand-ins.
    """
    archive = definition(platform)
    files = _compiled(built, archive)
    fetched = _real_entries(out / "pool" / "debian", out)
    common = _common(out, archive, files, fetched)
    for name, own in archive["worlds"].items():
        if (name == world) if world else ("fetched" not in own):
            _world(out, archive, name, files, [*common, *fetched])
    _cuda(out, archive["cuda"], files, built)


def _common(out: Path, archive: dict[str, Any], files: DriverFiles, fetched: list[Entry]) -> list[Entry]:
    """Write the kernel and what driver packages lean on; real ones among those that were fetched stay alone."""
    kernel = archive["kernel"]
    there = {re.match(r"Package: (\S+)", text)[1] for _, text in fetched}  # type: ignore[index]
    found = kernel_packages(kernel_release(out, archive), kernel["version"], headers_too="dkms" not in there)
    if "dkms" not in there:
        found.append(dkms_package(archive["dkms"]["version"], (HERE / "dkms").read_bytes()))
    found += [package for package in tool_packages(archive["system"]["components"]) if package.name not in there]
    if distribution(archive) == "debian" and files.libraries:
        found += [package for package in debian.common_packages() if package.name not in there]
    return _put(out, "main", found)


def kernel_release(out: Path, archive: dict[str, Any]) -> str:
    """Return the release of the rig's kernel; where real headers were fetched, theirs."""
    kind = archive["kernel"]["release"].rpartition("-")[2]
    names = [path.name.split("_")[0] for path in (out / "pool" / "debian").glob(f"linux-headers-[0-9]*-{kind}_*.deb")]
    return names[0].removeprefix("linux-headers-") if names else str(archive["kernel"]["release"])


def _world(out: Path, archive: dict[str, Any], name: str, files: DriverFiles, base: list[Entry]) -> None:
    kind = distribution(archive)
    root = out / kind / name
    release = kernel_release(out, archive)
    for suite in archive["system"]["suites"]:
        found = base if suite == archive["system"]["suites"][0] else []
        for driver in drivers(archive["worlds"][name]["pockets"].get(suite, [])):
            own = debian.packages(driver, files) if kind == "debian" else packages(driver, files, release)
            found = [*found, *_put(out, "restricted", own)]
        _suite(root, suite, archive["system"], found)
    _link_pool(root, "../../pool")


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
    write_index(root, [text for _, text in _put(out, "cuda", found)])
    write_release(root, {"Origin": cuda["origin"], "Label": cuda["label"], "Architecture": "x86_64"})
    _link_pool(root, "../pool")


def _suite(root: Path, suite: str, system: dict[str, Any], entries: list[Entry]) -> None:
    folder = root / "dists" / suite
    for component in system["components"]:
        own = [text for section, text in entries if section == component]
        write_index(folder / component / "binary-amd64", own)
    name, version = system["os_release"]["NAME"], system["os_release"]["VERSION_ID"]
    codename = system["os_release"]["VERSION_CODENAME"]
    fields = {
        "Origin": system["origin"],
        "Label": system["origin"],
        "Suite": suite,
        "Version": version,
        "Codename": codename,
        "Architectures": "amd64",
        "Components": " ".join(system["components"]),
        "Description": f"Simulated {name} {codename.capitalize()} {version} (rigctl sim)",
    }
    write_release(folder, fields)


def _put(out: Path, part: str, found: list[Package]) -> list[Entry]:
    """Write packages into the folder `part` of the pool and return their index entries.

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
        text = index_entry(package.control(), f"pool/{part}/{package.file_name}", data)
        entries.append((_component(package.section), text))
    return entries


def _component(section: str) -> str:
    """Return the part of an archive that a section belongs to: `restricted/misc` → restricted, `libs` → main."""
    component, slash, _ = section.partition("/")
    return component if slash else "main"


def _real_entries(folder: Path, out: Path) -> list[Entry]:
    """Return index entries of the real packages that were fetched into `folder`."""
    entries = []
    for path in sorted(folder.glob("*.deb")):
        control = subprocess.run(["dpkg-deb", "--field", str(path)], capture_output=True, text=True, check=True).stdout
        section = re.search(r"^Section: (\S+)", control, re.MULTILINE)
        text = index_entry(control, str(path.relative_to(out)), path.read_bytes())
        entries.append((_component(section[1]) if section else "main", text))
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
    """Build the archives; with `--versions`, `--toolkits` or `--kernel` print what the image's build must know."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--platform", default=DEFAULT_PLATFORM, choices=platforms())
    parser.add_argument("--world", default="", help="the one whose real packages lie in the pool")
    parser.add_argument("--versions", action="store_true", help="print 'BRANCH VERSION' of each real driver, and exit")
    parser.add_argument("--toolkits", action="store_true", help="print the series of each CUDA toolkit, and exit")
    parser.add_argument("--kernel", action="store_true", help="print release and banner of the kernel, and exit")
    parser.add_argument("--os-release", action="store_true", help="print the rig's os-release, and exit")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--built", type=Path)
    asked = parser.parse_args()
    archive = definition(asked.platform)
    if asked.os_release:
        words = archive["system"]["os_release"].items()
        sys.stdout.writelines(f'{key}="{value}"\n' if " " in value else f"{key}={value}\n" for key, value in words)
        return 0
    if asked.versions:
        sys.stdout.writelines(f"{branch} {version}\n" for branch, version in versions_to_compile(archive))
        return 0
    if asked.toolkits:
        sys.stdout.writelines(f"{entry['series']}\n" for entry in archive["cuda"]["toolkits"])
        return 0
    if asked.out is None:
        parser.error("--out is needed")
    if asked.kernel:
        sys.stdout.write(f"{kernel_release(asked.out, archive)}\n{archive['kernel'].get('banner', '')}\n")
        return 0
    if asked.built is None:
        parser.error("--built is needed")
    shutil.rmtree(asked.out / distribution(archive), ignore_errors=True)
    for part in ("main", "restricted", "cuda"):
        shutil.rmtree(asked.out / "pool" / part, ignore_errors=True)
    build(asked.out, asked.built, asked.platform, asked.world)
    return 0


if __name__ == "__main__":
    sys.exit(main())
