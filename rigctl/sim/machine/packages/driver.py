"""The packages of one NVIDIA driver branch, as Ubuntu and NVIDIA's CUDA repository cut them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .deb import Package, Packed
from .modules import MODULES, dkms_scripts, dkms_source

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_LIBRARY_FOLDER = "/usr/lib/x86_64-linux-gnu"
LDCONFIG = {"triggers": "activate-noawait ldconfig\n"}
"""The control files of a package that brings libraries."""
_FIRST_BRANCH_WITH_FIRMWARE_PACKAGE = 525
"""[U] From this branch on the firmware is a package of its own, named after the driver version."""


_FIRST_OPEN_BRANCH = 515
"""NVIDIA/open-gpu-kernel-modules: the first release is 515.43.04."""
_OPEN_PARTS = ("nvidia-driver", "nvidia-headless", "nvidia-headless-no-dkms", "nvidia-dkms", "nvidia-kernel-source")
"""Packages that exist once more with `-open` behind the branch; user space is the same for both."""


@dataclass(frozen=True)
class Driver:
    """One driver in one archive: a real one, or (with `becomes`) transitional packages that lead to another branch."""

    branch: str
    """Number and flavour, such as `515` or `515-server`."""
    version: str
    revision: str
    becomes: str = ""
    open: bool = False
    """Debian: whether the archive has the open kernel module in this version too."""

    @property
    def package_version(self) -> str:
        """Version and revision, as apt shows them."""
        return f"{self.version}-{self.revision}"

    @property
    def number(self) -> int:
        """The branch without its flavour."""
        return int(self.branch.split("-")[0])


@dataclass(frozen=True)
class DriverFiles:
    """What the image's build compiled for driver packages: file name → content."""

    libraries: Mapping[str, Mapping[str, bytes]]
    """Driver version → libraries and their links' targets, such as `libnvidia-ml.so.515.105.01`."""
    programs: Mapping[str, bytes]
    """Programs of nvidia-utils, such as `nvidia-smi`."""


_TITLES = {
    "nvidia-driver": "NVIDIA driver metapackage",
    "nvidia-headless": "NVIDIA headless metapackage",
    "nvidia-headless-no-dkms": "NVIDIA headless metapackage - no DKMS",
    "nvidia-dkms": "NVIDIA DKMS package",
    "nvidia-kernel-common": "Shared files used with the kernel module",
    "nvidia-kernel-source": "NVIDIA kernel source package",
    "nvidia-utils": "NVIDIA driver support binaries",
    "nvidia-compute-utils": "NVIDIA compute utilities",
    "libnvidia-compute": "NVIDIA libcompute package",
    "libnvidia-cfg1": "NVIDIA binary OpenGL/GLX configuration library",
    "libnvidia-decode": "NVIDIA Video Decoding runtime libraries",
    "libnvidia-encode": "NVENC Video Encoding runtime library",
    "libnvidia-extra": "Extra libraries for the NVIDIA driver",
    "libnvidia-fbc1": "NVIDIA OpenGL-based Framebuffer Capture runtime library",
    "libnvidia-gl": "NVIDIA OpenGL/GLX/EGL/GLES GLVND libraries and Vulkan ICD",
    "libnvidia-common": "Shared files used by the NVIDIA libraries",
    "xserver-xorg-video-nvidia": "NVIDIA binary Xorg driver",
}
"""Package name without branch → first line of its description."""

_EXCLUSIVE = {name for name in _TITLES if not name.startswith(("nvidia-driver", "nvidia-headless"))}
"""Only one branch of these can be installed at a time: each provides and conflicts with its own bare name."""

_NEEDS: dict[str, tuple[str, ...]] = {
    "nvidia-driver": (
        "libnvidia-gl",
        "nvidia-dkms",
        "nvidia-kernel-common",
        "nvidia-kernel-source",
        "libnvidia-compute",
        "libnvidia-extra",
        "nvidia-compute-utils",
        "libnvidia-decode",
        "libnvidia-encode",
        "nvidia-utils",
        "xserver-xorg-video-nvidia",
        "libnvidia-cfg1",
        "libnvidia-fbc1",
    ),
    "nvidia-headless": ("nvidia-headless-no-dkms", "nvidia-dkms"),
    "nvidia-headless-no-dkms": (
        "libnvidia-cfg1",
        "libnvidia-compute",
        "nvidia-compute-utils",
        "nvidia-kernel-common",
        "nvidia-kernel-source",
    ),
    "nvidia-dkms": ("nvidia-kernel-common", "nvidia-kernel-source"),
    "nvidia-utils": ("libnvidia-compute",),
    "nvidia-compute-utils": ("libnvidia-compute",),
    "libnvidia-decode": ("libnvidia-compute",),
    "libnvidia-encode": ("libnvidia-decode",),
    "libnvidia-gl": ("libnvidia-common",),
}
"""Package → packages of the same branch that it needs in exactly its own version."""


def packages(driver: Driver, built: DriverFiles, kernel: str = "") -> list[Package]:
    """Return all packages of one driver branch; transitional ones where `driver.becomes` names another branch.

    With `kernel`, the release of one, also the module that the distribution has built and signed for it.
    """
    parts = [(name, "") for name in _TITLES]
    if driver.number >= _FIRST_OPEN_BRANCH:
        parts += [(name, "-open") for name in _OPEN_PARTS]
    if driver.becomes:
        return [_transitional(name, driver, kind) for name, kind in parts]
    found = [_real(name, driver, built, kind) for name, kind in parts]
    if driver.number >= _FIRST_BRANCH_WITH_FIRMWARE_PACKAGE:
        found.append(_firmware(driver))
    if kernel:
        found.append(_signed_modules(driver, kernel))
    return found


def _transitional(name: str, driver: Driver, kind: str) -> Package:
    target = f"{name}-{driver.becomes}{kind}"
    return Package(
        name=f"{name}-{driver.branch}{kind}",
        version=driver.package_version,
        description=f"Transitional package for {target}",
        relations={"Depends": target},
        section="restricted/oldlibs",
    )


def _real(name: str, driver: Driver, built: DriverFiles, kind: str) -> Package:
    package = Package(
        name=f"{name}-{driver.branch}{kind}",
        version=driver.package_version,
        description=_TITLES[name].replace("NVIDIA driver", _product(driver)),
    )
    fill = _CONTENTS.get(name)
    if fill is not None:
        package = fill(package, driver, built)
    own = {**package.relations}
    if name in _EXCLUSIVE:
        own |= {"Provides": name, "Conflicts": name, "Replaces": name}
    depends = [_dependency(needed, driver, kind) for needed in _NEEDS.get(name, ())]
    extra = own.pop("Depends", "")
    own["Depends"] = ", ".join(filter(None, [extra, *depends, _firmware_dependency(name, driver)]))
    return replace(package, relations=own)


def _dependency(needed: str, driver: Driver, kind: str) -> str:
    """Return a dependency on a part of the same driver; the module may also be the distribution's own build."""
    exactly = f"{needed}-{driver.branch}{kind if needed in _OPEN_PARTS else ''} (= {driver.package_version})"
    return f"{exactly} | {_prebuilt(driver)}" if needed == "nvidia-dkms" and not kind else exactly


def _prebuilt(driver: Driver) -> str:
    """Return the virtual package that a signed module provides. [U] the real one's name."""
    return f"nvidia-prebuilt-kernel-{driver.branch}"


def _signed_modules(driver: Driver, kernel: str) -> Package:
    """Return `linux-modules-nvidia-N-KERNEL`: text as `modinfo` prints it, with a signer; versioned as both."""
    place = f"/lib/modules/{kernel}/kernel/nvidia-{driver.branch}"
    lines = {"version": driver.version, "license": "NVIDIA", "signer": "Canonical Ltd. Kernel Module Signing"}
    text = "".join(f"{key + ':':<16}{value}\n" for key, value in lines.items())
    files = [Packed(f"{place}/{name}.ko", f"{text}{'name:':<16}{name}\n".encode()) for name in MODULES]
    return Package(
        name=f"linux-modules-nvidia-{driver.branch}-{kernel}",
        version=f"{kernel.removesuffix('-generic')}.{driver.version}",
        description=f"Linux kernel nvidia modules for version {kernel}",
        relations={
            "Depends": f"linux-image-{kernel}, nvidia-kernel-common-{driver.branch} (>= {driver.version})",
            "Provides": _prebuilt(driver),
        },
        files=tuple(files),
    )


def _product(driver: Driver) -> str:
    return "NVIDIA Server Driver" if driver.branch.endswith("-server") else "NVIDIA driver"


def _firmware_dependency(name: str, driver: Driver) -> str:
    if name != "nvidia-kernel-common" or driver.number < _FIRST_BRANCH_WITH_FIRMWARE_PACKAGE:
        return ""
    return f"nvidia-firmware-{driver.branch}-{driver.version}"


def _firmware(driver: Driver) -> Package:
    return Package(
        name=f"nvidia-firmware-{driver.branch}-{driver.version}",
        version=driver.package_version,
        description="Firmware files used by the kernel module",
        files=(Packed(f"/lib/firmware/nvidia/{driver.version}/gsp_ga10x.bin", b"stand-in\n"),),
    )


def _dkms(package: Package, driver: Driver, _built: DriverFiles) -> Package:
    return replace(package, relations={"Depends": "dkms"}, scripts=dkms_scripts("nvidia", driver.version))


def _kernel_source(package: Package, driver: Driver, _built: DriverFiles) -> Package:
    return replace(package, files=(dkms_source("nvidia", driver.version),))


def _kernel_common(package: Package, driver: Driver, _built: DriverFiles) -> Package:
    blacklist = b"# This file was installed by nvidia-kernel-common\nblacklist nouveau\nalias nouveau off\n"
    return replace(package, files=(Packed(f"/lib/modprobe.d/nvidia-kernel-common-{driver.branch}.conf", blacklist),))


def packed_libraries(driver: Driver, built: DriverFiles, only: str = "") -> list[Packed]:
    """Return the driver's libraries with their links; with `only` those whose names begin so.

    Raises:
        KeyError: none were compiled for this version.
    """
    if driver.version not in built.libraries:
        raise KeyError(f"no libraries were compiled for driver {driver.version}")
    files = []
    for name, content in built.libraries[driver.version].items():
        if not name.startswith(only):
            continue
        files.append(Packed(f"{_LIBRARY_FOLDER}/{name}", content))
        stem, _, number = name.partition(".so.")
        if number == driver.version:
            files.append(Packed(f"{_LIBRARY_FOLDER}/{stem}.so.1", link=name))
    return files


def _compute(package: Package, driver: Driver, built: DriverFiles) -> Package:
    files = packed_libraries(driver, built)
    return replace(package, files=files, relations={"Depends": "libc6"}, scripts=LDCONFIG)


def _utils(package: Package, _driver: Driver, built: DriverFiles) -> Package:
    files = [Packed(f"/usr/bin/{name}", content, 0o755) for name, content in built.programs.items()]
    return replace(package, files=files, relations={"Depends": "python3"})


def _compute_utils(package: Package, _driver: Driver, _built: DriverFiles) -> Package:
    unit = b"""[Unit]
Description=NVIDIA Persistence Daemon
StopWhenUnneeded=true
ConditionPathExists=/proc/driver/nvidia/version

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/bin/nvidia-smi -pm 1
ExecStop=/usr/bin/nvidia-smi -pm 0
"""
    daemon = b"#!/bin/sh\nexec /usr/bin/nvidia-smi -pm 1 >/dev/null\n"
    return replace(
        package,
        files=(
            Packed("/lib/systemd/system/nvidia-persistenced.service", unit),
            Packed("/usr/bin/nvidia-persistenced", daemon, 0o755),
        ),
    )


_CONTENTS: dict[str, Callable[[Package, Driver, DriverFiles], Package]] = {
    "nvidia-dkms": _dkms,
    "nvidia-kernel-source": _kernel_source,
    "nvidia-kernel-common": _kernel_common,
    "nvidia-compute-utils": _compute_utils,
    "nvidia-utils": _utils,
    "libnvidia-compute": _compute,
}
"""Packages that hold more than their dependencies → what fills them."""
