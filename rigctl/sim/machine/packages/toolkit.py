"""CUDA toolkit packages, and the kernel and DKMS packages that driver packages lean on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .deb import Package, Packed

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Toolkit:
    """One CUDA toolkit."""

    series: str
    """Major and minor version, such as `11.7`."""
    version: str
    """Package version, such as `11.7.1-1`."""
    build: str
    """What `nvcc --version` says behind the V, such as `11.7.99`."""

    @property
    def suffix(self) -> str:
        """The series as package names carry it, such as `11-7`."""
        return self.series.replace(".", "-")


def toolkit_packages(toolkit: Toolkit, files: Mapping[str, bytes]) -> list[Package]:
    """Return a toolkit's packages; `files` are the contents of its folder /usr/local/cuda-X.Y, path → content.

    The folder's `version.json` is written here, from which the compiler driver reads what it is.
    """
    home = f"/usr/local/cuda-{toolkit.series}"
    version = f'{{"cuda": {{"name": "CUDA SDK", "version": "{toolkit.version.split("-")[0]}"}}, '
    version += f'"cuda_nvcc": {{"name": "CUDA NVCC", "version": "{toolkit.build}"}}}}\n'
    packed = [Packed(f"{home}/version.json", version.encode())]
    for path, content in files.items():
        mode = 0o755 if path.startswith("bin/") else 0o644
        packed.append(Packed(f"{home}/{path}", content, mode))
    links = f"""#!/bin/sh
set -e
[ "$1" = configure ] || exit 0
update-alternatives --install /usr/local/cuda cuda {home} {int(toolkit.series.replace(".", ""))}
"""
    unlink = f'#!/bin/sh\nset -e\n[ "$1" = upgrade ] || update-alternatives --remove cuda {home}\n'
    nvcc = Package(
        name=f"cuda-nvcc-{toolkit.suffix}",
        version=f"{toolkit.build}-1",
        description="CUDA nvcc",
        relations={"Depends": "build-essential, python3"},
        files=packed,
        scripts={"postinst": links, "prerm": unlink},
        section="multiverse/devel",
    )
    needed = f"cuda-nvcc-{toolkit.suffix} (>= {toolkit.build})"
    whole = [
        Package(name, toolkit.version, text, {"Depends": depends}, section="multiverse/devel")
        for name, text, depends in (
            (f"cuda-toolkit-{toolkit.suffix}", f"CUDA Toolkit {toolkit.series} meta-package", needed),
            (f"cuda-compiler-{toolkit.suffix}", "CUDA compiler", needed),
        )
    ]
    return [nvcc, *whole]


def kernel_packages(release: str, version: str, *, headers_too: bool = True) -> list[Package]:
    """Return stand-ins for a kernel and its headers; DKMS builds for kernels whose headers are there.

    The meta-packages end as the release does: `generic` with Ubuntu, `amd64` with Debian, which has no third one.
    """
    modules = f"/lib/modules/{release}"
    headers = f"/usr/src/linux-headers-{release}"
    kind = release.rpartition("-")[2]
    upstream = ".".join(version.split(".")[:3]).replace("-", ".") + ".0" if kind == "generic" else version
    image = Package(
        name=f"linux-image-{release}",
        version=version,
        description="Signed kernel image generic",
        files=(Packed(f"/boot/vmlinuz-{release}", b"stand-in\n"), Packed(f"{modules}/modules.builtin")),
        section="kernel",
    )
    header = Package(
        name=f"linux-headers-{release}",
        version=version,
        description=f"Linux kernel headers for version {release}",
        files=(Packed(f"{headers}/Makefile", b"# stand-in\n"), Packed(f"{modules}/build", link=headers)),
        section="devel",
    )
    metas = [
        Package(name, upstream, text, {"Depends": depends}, section="kernel")
        for name, text, depends in (
            (f"linux-image-{kind}", f"Linux kernel image ({kind})", f"linux-image-{release}"),
            (f"linux-headers-{kind}", f"Linux kernel headers ({kind})", f"linux-headers-{release}"),
            (f"linux-{kind}", "Complete Linux kernel and headers", f"linux-image-{kind}, linux-headers-{kind}"),
        )
    ]
    if kind != "generic":
        metas.pop()
    return [image, header, *metas] if headers_too else [image, metas[0]]


def dkms_package(version: str, program: bytes) -> Package:
    """Return the stand-in for DKMS, which builds module files that are text."""
    return Package(
        name="dkms",
        version=version,
        description="Dynamic Kernel Module Support Framework",
        relations={"Depends": "kmod, gcc, make, python3"},
        files=(Packed("/usr/sbin/dkms", program, 0o755),),
        architecture="all",
        section="admin",
    )
