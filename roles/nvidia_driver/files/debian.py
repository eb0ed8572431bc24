"""How Debian cuts the driver: names without the branch, which is only in the version, and no flavour for servers.

Part of the scripts that run on a rig: Python 3.10, standard library only.
"""

import re
from typing import Any

NAMES = re.compile(
    r"nvidia-(driver(-bin|-libs|-full)?|(open-)?kernel-(dkms|source|support)|alternative|legacy-check|smi|cuda-mps|detect"
    r"|powerd|suspend-common|vdpau-driver|(egl|opencl|vulkan)-(common|icd)|libopencl1)"
    r"|firmware-nvidia-gsp|xserver-xorg-video-nvidia"
    r"|lib(cuda1|cudadebugger1|nvcuvid1|nvoptix1|(egl|gles|glx)-nvidia\d|gl1-nvidia-glvnd-glx)"
    r"|libnvidia-(allocator1|api1|cfg1|eglcore|encode1|fbc1|glcore|glvkspirv|ml1|ngx1|nvvm4|opticalflow1"
    r"|pkcs11-openssl3|ptxjitcompiler1|rtcore)"
)
"""Every package of the sources nvidia-graphics-drivers and nvidia-open-gpu-kernel-modules in Debian 12."""
PATTERNS = (
    "nvidia-driver* nvidia-kernel-* nvidia-open-kernel-* nvidia-alternative nvidia-legacy-check nvidia-smi "
    "nvidia-cuda-mps nvidia-detect nvidia-powerd nvidia-suspend-common nvidia-vdpau-driver nvidia-egl-common "
    "nvidia-egl-icd nvidia-opencl-* nvidia-libopencl1 nvidia-vulkan-* nvidia-modprobe nvidia-settings "
    "nvidia-persistenced nvidia-support firmware-nvidia-gsp* xserver-xorg-video-nvidia libcuda1 libcudadebugger1 "
    "libnvcuvid1 libnvoptix1 libegl-nvidia0 libgles-nvidia* libglx-nvidia0 libgl1-nvidia-glvnd-glx libnvidia-* "
    "cuda-drivers*"
)
"""The same for apt's preferences, with what belongs to them and is built from sources of its own."""
SOURCES = "src:nvidia-graphics-drivers src:nvidia-open-gpu-kernel-modules"
"""What carries the driver's version; see apt_preferences(5)."""
OUTSIDE_OF_NVIDIA = ("libcuda1", "libcudadebugger1", "libnvcuvid1", "libnvoptix1")
"""Driver packages in whose names the word does not stand."""


def is_package(name: str) -> bool:
    """Whether a package is a part of the driver."""
    return NAMES.fullmatch(name) is not None


def top_packages(wishes: dict[str, Any]) -> list[str]:
    """The packages that pull in all others, the kernel's first where that one decides the version."""
    flavour = wishes["flavour"].split("-")
    rest = ["nvidia-smi", "libcuda1"]
    if "open" in flavour:
        # Debian has the open module in fewer versions than the driver.
        return ["nvidia-open-kernel-dkms", *([] if "headless" in flavour else ["nvidia-driver"]), *rest]
    return [*([] if "headless" in flavour else ["nvidia-driver"]), "nvidia-kernel-dkms", *rest]


def is_old(package: str, wishes: dict[str, Any]) -> bool:
    """Whether an installed package is the other kernel module than the asked one."""
    other = "nvidia-kernel-dkms" if "open" in wishes["flavour"].split("-") else "nvidia-open-kernel-dkms"
    return package == other


def refusal(wishes: dict[str, Any]) -> str:
    """What is asked for and does not exist on Debian; empty where all of it does."""
    if "server" in wishes["flavour"].split("-"):
        instead = "-".join(part for part in wishes["flavour"].split("-") if part != "server") or "desktop"
        return (
            f"nvidia_driver_flavour: {wishes['flavour']} is Ubuntu's; Debian has no driver of its own for servers. "
            f"Nothing was installed. Choose: set nvidia_driver_flavour: {instead}."
        )
    if wishes["modules"] == "signed":
        return (
            "nvidia_driver_modules: signed takes modules that Ubuntu has built and signed; Debian has none. Nothing "
            "was installed. Choose: set nvidia_driver_modules: dkms."
        )
    return ""


def not_offered(wishes: dict[str, Any], top: str, offers: list[dict[str, Any]]) -> str:
    """Why no version can be taken, and which could."""
    if not offers:
        return (
            f"no configured package source has {top}: Debian keeps it in non-free. Nothing was installed. Add `contrib "
            "non-free` to the components of Debian's own entry in /etc/apt/sources.list or sources.list.d on the rig, "
            "then provision again."
        )
    version = f" {wishes['version']}" if wishes["version"] else ""
    others = list(dict.fromkeys(str(offer["driver"]) for offer in offers if offer["sources"]))
    branches = list(dict.fromkeys(driver.partition(".")[0] for driver in others))
    ways = [f'nvidia_driver_branch: "{branch}"' for branch in branches if branch != wishes["branch"]]
    if version:
        ways = [f'nvidia_driver_version: ""{" with " + ways[0] if ways else ""}']
    return (
        f"{wishes['source']} does not have {top} of branch {wishes['branch']}{version}; on offer: "
        f"{', '.join(others)}. Nothing was installed. Choose: set "
        f"{' or '.join(ways) or 'another nvidia_driver_source'}."
    )
