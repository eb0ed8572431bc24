"""Kernels on offer to a simulated rig: packages that do what real ones do to GRUB's menu and to DKMS."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import TYPE_CHECKING

from rigctl.sim.machine.packages.deb import Packed, index_entry
from rigctl.sim.machine.packages.toolkit import kernel_packages
from tests.roles.roles_page import ROOT

if TYPE_CHECKING:
    from rigctl.sim.machine.packages.deb import Package

    from .on_rig import RigInUse

SHELF = "/srv/kernels"
SMALL_GRUB = ROOT / "tests" / "roles" / "small_grub.sh"
BROKEN = "/usr/local/lib/small-grub/broken"
"""Names the kernel that hangs at its start; somebody then cycles the power."""


def packages(release: str, *, least_branch: int = 0) -> list[Package]:
    """Image, headers and meta-packages of one kernel; drivers below `least_branch` do not compile against it."""
    number = release.removesuffix("-generic")
    image, headers, *metas = kernel_packages(release, f"{number}.999")
    image = replace(
        image,
        scripts={
            "postinst": f"#!/bin/sh\ncp /boot/initrd.img-$(uname -r) /boot/initrd.img-{release}\nupdate-grub\n",
            "postrm": f"#!/bin/sh\nrm -rf /lib/modules/{release} /var/lib/dkms/*/*/{release}\n"
            f"rm -f /boot/initrd.img-{release} /var/lib/dkms/*/kernel-{release}-*\nupdate-grub\n",
        },
    )
    interfaces = Packed(
        f"/usr/src/linux-headers-{release}/include/rigsim-interfaces.h",
        f"#define LEAST_NVIDIA_BRANCH {least_branch}\n".encode(),
    )
    headers = replace(
        headers,
        files=(*headers.files, interfaces) if least_branch else headers.files,
        scripts={"postinst": f"#!/bin/sh\ndkms autoinstall -k {release} || true\n"},
    )
    return [image, headers, *metas]


def put_on_offer(rig: RigInUse, *found: Package) -> None:
    """Give the rig a source of apt with these packages, and GRUB to start one of them with."""
    index = []
    rig.ssh(f"sudo mkdir -p {SHELF}")
    for package in found:
        data = package.build()
        rig.put_bytes(data, f"{SHELF}/{package.file_name}")
        index.append(index_entry(package.control(), f"./{package.file_name}", data))
    rig.put("\n".join(index), f"{SHELF}/Packages")
    rig.put(f"deb [trusted=yes] file://{SHELF} ./\n", "/etc/apt/sources.list.d/kernels.list")
    script = base64.b64encode(SMALL_GRUB.read_bytes()).decode()
    rig.ssh(f"echo {script} | base64 -d | sudo sh -s && sudo apt-get -qq update")
