"""Ask a rig whether it can have a certain kernel, what installing it would do, and which kernel starts next.

Runs on the rig with the system's Python (3.10 or newer, standard library only), changes nothing but package lists that
were never read, and prints one JSON object. Its one argument are wishes as JSON: version (as `uname -r` prints it) and
branch (of the driver that is to be there; empty where nobody asks for one).
"""

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import reboot_look
from apt_answers import branch_of, read_installed, read_simulation, run
from driver_choice import PREBUILT
from kernel_modules import built_by_dkms
from kernels import version_key
from offers import is_offered, read_lists

PIN = "etc/default/grub.d/90-gpu-rig-kernel.cfg"
SHOWN = 2
"""So many older and so many newer kernels are named where the asked one does not exist."""
KINDS = r"(?:image|headers|modules-extra|modules-nvidia-\d+(?:-server)?(?:-open)?)-"
METAS = re.compile(rf"^linux-(?:{KINDS})?[a-z][a-z0-9-]*(?:-hwe-[\d.]+)?$")
"""`linux-generic`, `linux-image-generic-hwe-22.04`, `linux-headers-amd64`: they bring the newest kernel."""
NO_METAS = re.compile(
    r"^linux-(?:base|firmware|libc|tools|cloud-tools|doc|source|sysctl|perf|cpupower|compiler|kbuild)"
)
"""Packages of such a name that bring no kernel."""


def installed_packages() -> dict[str, str]:
    """Installed packages whose name begins with `linux-` → their marks (`ii`, `hi`)."""
    status = run("dpkg-query", "-W", "-f", "${Package} ${Version} ${db:Status-Abbrev}\n", "linux-*")[1]
    return read_installed(status)


def kernels_on_offer() -> list[str]:
    """Every kernel whose image apt knows by name, oldest first."""
    names = run("apt-cache", "pkgnames", "linux-image-")[1].split()
    found = [name.removeprefix("linux-image-") for name in names if re.match(r"linux-image-\d", name)]
    return sorted((one for one in found if not one.endswith(("-dbg", "-dbgsym"))), key=version_key)


def nearest(version: str, known: list[str]) -> list[str]:
    """The kernels of the same flavour that are next to a version, and on offer; of any where that has none."""
    flavour = version.split("-", 2)[-1]
    same = [one for one in known if one.split("-", 2)[-1] == flavour] or known
    older = [one for one in same if version_key(one) < version_key(version)]
    newer = [one for one in same if version_key(one) > version_key(version)]
    return [one for one in (*older[-SHOWN:], *newer[:SHOWN]) if is_offered(f"linux-image-{one}")]


def wanted_packages(version: str, branch: str, running: str, installed: dict[str, str]) -> tuple[list[str], list[str]]:
    """The packages of a kernel, as far as somebody offers them; those that must be there and are on offer nowhere.

    Prebuilt modules of the driver are wanted where the running kernel has them, but for those of another branch than
    the one that is to come.
    """
    ours = [name for name in installed if name.startswith(PREBUILT) and name.endswith(f"-{running}")]
    kept = [name for name in ours if branch in ("", branch_of(name))]
    must = [f"linux-image-{version}", *(f"{name.removesuffix(running)}{version}" for name in sorted(kept))]
    if run("dkms", "status")[1].strip():
        must.append(f"linux-headers-{version}")
    may = [f"linux-headers-{version}", f"linux-modules-extra-{version}"]
    wanted = [name for name in dict.fromkeys([*must, *may]) if name in installed or is_offered(name)]
    return wanted, [name for name in must if name not in wanted]


def why_not(version: str, missing: list[str]) -> str:
    """The refusal where packages are on offer nowhere."""
    image, headers = f"linux-image-{version}", f"linux-headers-{version}"
    if image in missing:
        near = nearest(version, kernels_on_offer())
        known = f" The nearest on offer: {', '.join(near)}." if near else ""
        return f"no package source has {image}.{known} Nothing was changed."
    if headers in missing:
        return (
            f"no package source has {headers}, so DKMS could build no module for {version}. Choose a kernel whose "
            "headers are on offer. Nothing was changed."
        )
    return (
        f"no package source has {', '.join(missing)}: the driver's modules are not built on this rig, and "
        f"{version} would run without them. Choose another kernel, or set nvidia_driver_modules: dkms first. "
        "Nothing was changed."
    )


def look_at_grub(version: str, running: str, root: Path = Path("/")) -> dict[str, str]:
    """How GRUB calls the kernel's entry, which one it starts by itself, which one this role has made the default."""
    menu = reboot_look.read_menu(reboot_look.read(root / "boot/grub/grub.cfg"))
    pinned = re.search(r"^# kernel: (\S+)$", reboot_look.read(root / PIN), re.MULTILINE)
    return {
        "entry": dict(reboot_look.ways_to(menu)).get(version, ""),
        "starts": reboot_look.look_at_kernels(root, running)["next_kernel"] if menu else "",
        "pinned": pinned.group(1) if pinned else "",
    }


def look_at_kernel(wishes: dict[str, str]) -> dict[str, Any]:
    """What it takes to have the kernel; `refusal` says why it cannot be had, else it is empty."""
    read_lists()
    version, running = wishes["version"], os.uname().release
    installed = installed_packages()
    wanted, missing = wanted_packages(version, wishes["branch"], running, installed)
    grub = look_at_grub(version, running)
    transaction = [name for name in wanted if name not in installed]
    metas = [name for name in installed if METAS.match(name) and not NO_METAS.match(name)]
    held = [name for name, mark in installed.items() if mark == "hi"]
    looked: dict[str, Any] = {
        "running": running,
        "transaction": transaction,
        "to_hold": sorted({*wanted, *metas} - set(held)),
        "metas": sorted(metas),
        "dkms": sorted(built_by_dkms(running, run("dkms", "status")[1])) if transaction else [],
        "new": [],
        **grub,
    }
    if missing:
        return {**looked, "refusal": why_not(version, missing)}
    if not grub["starts"]:
        return {
            **looked,
            "refusal": "GRUB's menu cannot be read (/boot/grub/grub.cfg), so nobody can tell it which kernel to start. "
            "Leave kernel_version out on this machine. Nothing was changed.",
        }
    if not transaction:
        return {**looked, "refusal": ""}
    code, text = run("apt-get", "-s", "-q", "--no-install-recommends", "install", *transaction)
    simulated = read_simulation(text)
    gone = [name for name, _ in simulated["remove"]]
    said = f"apt cannot install it: {' '.join(text.split())[-300:]}" if code else ""
    said = said or (f"{', '.join(gone)} would be removed with it. Nothing was changed." if gone else "")
    return {**looked, "new": [name for name, _ in simulated["new"]], "refusal": said}


if __name__ == "__main__":
    json.dump(look_at_kernel(json.loads(sys.argv[1])), sys.stdout)
