"""The packages of NVIDIA's driver as Debian cuts them: no branch in their names, and a module called nvidia-current."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .deb import Package, Packed
from .driver import LDCONFIG, Driver, packed_libraries
from .modules import dkms_scripts, dkms_source

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .driver import DriverFiles

SOURCE = "nvidia-graphics-drivers"
_SUPPORT_VERSION = "20220217+3~deb12u1"
_BLACKLIST = b"# This file was installed by nvidia-kernel-support\nblacklist nouveau\n"


@dataclass(frozen=True)
class _Part:
    """One package: what it is called in prose, and which other ones it needs in exactly its own version."""

    title: str
    needs: tuple[str, ...] = ()
    also: str = ""
    """Further dependencies, as they stand in the control file."""
    section: str = "non-free/libs"


_PARTS = {
    "nvidia-driver": _Part(
        "NVIDIA metapackage",
        ("nvidia-driver-libs", "nvidia-driver-bin", "xserver-xorg-video-nvidia", "nvidia-alternative"),
        also="{module}, nvidia-support",
        section="non-free/x11",
    ),
    "nvidia-driver-libs": _Part("NVIDIA metapackage (OpenGL/GLX/EGL/GLES libraries)", ("nvidia-alternative",)),
    "nvidia-driver-bin": _Part("NVIDIA driver support binaries", ("nvidia-alternative", "libnvidia-ml1")),
    "xserver-xorg-video-nvidia": _Part("NVIDIA binary Xorg driver", ("nvidia-alternative",), section="non-free/x11"),
    "nvidia-alternative": _Part("allows the selection of NVIDIA as GLX provider"),
    "nvidia-smi": _Part(
        "NVIDIA System Management Interface",
        ("nvidia-alternative", "libnvidia-ml1"),
        also="python3",
        section="non-free/utils",
    ),
    "libnvidia-ml1": _Part("NVIDIA Management Library (NVML) runtime library", ("nvidia-alternative",), also="libc6"),
    "libcuda1": _Part("NVIDIA CUDA Driver Library", ("nvidia-alternative",), also="libc6, nvidia-support"),
    "firmware-nvidia-gsp": _Part("NVIDIA GSP firmware", section="non-free-firmware/kernel"),
    "nvidia-kernel-support": _Part(
        "NVIDIA binary kernel module support files",
        ("nvidia-alternative",),
        also="nvidia-kernel-common, nvidia-modprobe",
        section="non-free/kernel",
    ),
    "nvidia-modprobe": _Part("utility to load NVIDIA kernel modules", section="contrib/utils"),
    "nvidia-kernel-dkms": _Part(
        "NVIDIA binary kernel module DKMS source",
        ("firmware-nvidia-gsp", "nvidia-kernel-support"),
        also="dkms",
        section="non-free/kernel",
    ),
}
_OPEN = _Part(
    "NVIDIA open kernel module DKMS source",
    ("firmware-nvidia-gsp", "nvidia-kernel-support"),
    also="dkms",
    section="contrib/kernel",
)
_MODULE_NAMES = {"nvidia-kernel-dkms": "nvidia-current", "nvidia-open-kernel-dkms": "nvidia-current-open"}


def packages(driver: Driver, built: DriverFiles) -> list[Package]:
    """Return all packages of one driver; the open kernel module where the archive has it in this version."""
    parts = {**_PARTS, **({"nvidia-open-kernel-dkms": _OPEN} if driver.open else {})}
    return [_package(name, part, driver, built) for name, part in parts.items()]


def common_packages() -> list[Package]:
    """Return what every version of the driver leans on, and what carries a version of its own."""
    return [
        Package(name, _SUPPORT_VERSION, title, architecture="amd64", section="contrib/utils")
        for name, title in (
            ("nvidia-support", "NVIDIA binary graphics driver support files"),
            ("nvidia-kernel-common", "NVIDIA binary kernel module support files"),
        )
    ]


def _package(name: str, part: _Part, driver: Driver, built: DriverFiles) -> Package:
    version = driver.package_version
    module = f"nvidia-kernel-dkms (= {version}) | nvidia-open-kernel-{driver.version}"
    depends = [*(f"{needed} (= {version})" for needed in part.needs), part.also.format(module=module)]
    relations = {"Source": SOURCE, "Depends": ", ".join(filter(None, depends))}
    module_name = _MODULE_NAMES.get(name, "")
    if module_name:
        relations["Provides"] = f"{name.removesuffix('-dkms')}-{driver.version}"
    return Package(
        name=name,
        version=version,
        description=part.title,
        relations=relations,
        files=_files(name, driver, built),
        scripts=dkms_scripts(module_name, driver.version) if module_name else _scripts(name),
        section=part.section,
    )


def _scripts(name: str) -> Mapping[str, str]:
    return LDCONFIG if name in {"libnvidia-ml1", "libcuda1"} else {}


def _files(name: str, driver: Driver, built: DriverFiles) -> Sequence[Packed]:
    if name in _MODULE_NAMES:
        return (dkms_source(_MODULE_NAMES[name], driver.version),)
    if name == "nvidia-smi":
        return [Packed(f"/usr/bin/{program}", content, 0o755) for program, content in built.programs.items()]
    if name == "nvidia-kernel-support":
        return (Packed("/etc/modprobe.d/nvidia-blacklists-nouveau.conf", _BLACKLIST),)
    libraries = {"libnvidia-ml1": "libnvidia-ml.", "libcuda1": "libcuda."}
    return packed_libraries(driver, built, libraries[name]) if name in libraries else ()
