"""A small bundle, as `rigctl bundle` writes it, and a source rig that holds its packages."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from rigctl.bundling.manifest import (
    DriverPart,
    File,
    Manifest,
    Platform,
    SourcePart,
    SystemPart,
    ToolkitPart,
    TorchPart,
    write_manifest,
)
from rigctl.errors import ConnectionLost

if TYPE_CHECKING:
    from pathlib import Path

COMMIT = "3ead140434da9473582b68452f7115967a7a0581"
DRIVER = "515.105.01-0ubuntu0.22.04.1"
PLATFORM = {"id": "ubuntu", "version": "22.04", "architecture": "amd64", "python": "3.10"}
WISHES = {
    "packages": ["kmod", "stress-ng"],
    "driver": {"branch": "515", "version": "", "flavour": "desktop", "modules": "dkms"},
    "toolkits": ["11.7"],
    "torch": {"version": "auto", "build": "auto", "extra": [], "driver": "515"},
    "gpu_burn": COMMIT,
    "container_toolkit": False,
}


def file_of(path: str, data: bytes, package: str = "", version: str = "") -> File:
    sha256 = hashlib.sha256(data).hexdigest()
    return File(path=path, size=len(data), sha256=sha256, package=package, version=version)


CONTENTS = {
    "debs/kmod_29-1_amd64.deb": (b"kmod", "kmod", "29-1"),
    "debs/stress-ng_0.13-1_amd64.deb": (b"stress-ng", "stress-ng", "0.13-1"),
    "debs/nvidia-driver-515_515.105.01-0ubuntu0.22.04.1_amd64.deb": (b"driver", "nvidia-driver-515", DRIVER),
    "debs/cuda-toolkit-11-7_11.7.1-1_amd64.deb": (b"toolkit", "cuda-toolkit-11-7", "11.7.1-1"),
    "wheels/torch-2.0.1+cu117-cp310-cp310-linux_x86_64.whl": (b"wheel", "", ""),
    f"git/gpu-burn-{COMMIT[:16]}.tar": (b"history", "", ""),
    "lists/0123456789abcdef.txt": (b"Package: kmod\nFilename: debs/kmod_29-1_amd64.deb\n", "", ""),
}  # fmt: skip


def manifest() -> Manifest:
    kmod, stress, driver, toolkit, wheel, history, lists = CONTENTS
    return Manifest(
        platform=Platform(**PLATFORM),
        system=SystemPart(packages=("kmod", "stress-ng"), files=(kmod, stress)),
        drivers=(
            DriverPart(
                branch="515", flavour="desktop", modules="dkms", asked_version="", driver="515.105.01",
                package_version="515.105.01-0ubuntu0.22.04.1", source="ubuntu", kernels=("5.15.0-91-generic",),
                files=(driver, kmod),
            ),
        ),
        toolkits=(ToolkitPart(version="11.7", files=(toolkit,)),),
        torch=(
            TorchPart(
                asked_version="auto", asked_build="auto", driver="515", version="2.0.1", build="cu117", extra=(),
                files=(wheel,),
            ),
        ),
        gpu_burn=(SourcePart(commit=COMMIT, files=(history,)),),
        lists=lists,
        files=tuple(file_of(path, *content) for path, content in CONTENTS.items()),
    )  # fmt: skip


def write_bundle(folder: Path) -> Manifest:
    for path, (data, *_) in CONTENTS.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    written = manifest()
    write_manifest(folder, written)
    return written


class Source:
    """Stands in for a source rig: packages whose bytes are their names; the connection may break."""

    def __init__(self, breaks_after: int | None = None) -> None:
        self.asked: list[str] = []
        self.brought: list[str] = []
        self.forgotten: list[str] = []
        self.breaks_after = breaks_after

    def fetch(self, packages: list[str]) -> dict[str, str]:
        self.asked += packages
        return {name: f"/var/tmp/{name}" for name in packages}

    def bring(self, place: str, to: Path, size: int, _sha256: str, moved) -> None:
        if self.breaks_after is not None and len(self.brought) >= self.breaks_after:
            raise ConnectionLost("rig1: connection lost: reset", "is it on?")
        self.brought.append(place)
        to.write_bytes(place.rpartition("/")[2].encode())
        moved(size)

    def forget(self, places: list[str]) -> None:
        self.forgotten += places


def described(name: str, version: str) -> dict[str, object]:
    data = f"{name}={version}".encode()
    record = f"Package: {name}\nVersion: {version}\nFilename: pool/{name[0]}/{name}.deb\nSize: {len(data)}"
    return {
        "package": name, "version": version, "architecture": "amd64", "size": len(data),
        "sha256": hashlib.sha256(data).hexdigest(), "record": record,
    }  # fmt: skip
