"""The kernels that may boot on a rig, and whether each has the driver's module.

Runs on the rig with the system's Python (3.10 or newer, standard library only) and prints one JSON object. Its one
argument are wishes as JSON: driver (the version that every kernel shall have a module of), kernel (the one that is to
run; empty for whichever boots). It has DKMS build what is missing; the functions are also used by the script that
chooses the driver.
"""

import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from apt_answers import run

KEPT_LOG = Path("/var/lib/gpu-rig/dkms-make.log")
"""Where the log of a failed build stays, while DKMS forgets it with the package."""
MODULE_NAMES = ("nvidia", "nvidia-current", "nvidia-current-open")
"""Debian's files have names of their own; what they hold is the module `nvidia` all the same."""
BUILD_TIMEOUT_S = 1800
"""A slow machine needs some minutes for one kernel."""


def version_key(text: str) -> list[int]:
    """The numbers in a version, for comparing: `6.5.0-45-generic` is newer than `5.15.0-91-generic`."""
    return [int(number) for number in re.findall(r"\d+", text)]


def kernels(boot: Path = Path("/boot"), wished: str = "") -> list[str]:
    """The running kernel, and the one that boots next: the wished one where it is installed, else the newest in /boot.

    The newest is what GRUB has by default; role `kernel` tells it the wished one.
    """
    installed = sorted((path.name.removeprefix("vmlinuz-") for path in boot.glob("vmlinuz-*")), key=version_key)
    coming = [wished] if wished in installed else installed[-1:]
    return list(dict.fromkeys([os.uname().release, *coming]))


def compiler_of(kernel: str) -> int | None:
    """The major version of the gcc that built a kernel; None where the rig does not tell."""
    for place in (f"/boot/config-{kernel}", f"/lib/modules/{kernel}/build/.config"):
        if Path(place).is_file():
            found = re.search(r"^CONFIG_GCC_VERSION=(\d+)", Path(place).read_text(encoding="utf-8"), re.MULTILINE)
            if found and int(found.group(1)):
                return int(found.group(1)) // 10_000
    banner = Path("/proc/version").read_text(encoding="utf-8")
    found = re.search(r"gcc\S*(?: \([^)]*\)| version)? (\d+)\.\d+\.\d+", banner)
    return int(found.group(1)) if found and banner.startswith(f"Linux version {kernel} ") else None


def own_compiler() -> int | None:
    """The major version of the rig's gcc; None where it has none."""
    found = re.match(r"\d+", run("gcc", "-dumpversion")[1])
    return int(found.group()) if found else None


def look_at_kernels(wished: str = "") -> list[dict[str, Any]]:
    """Each kernel that may boot: its release, headers, compiler, and the version of its NVIDIA module."""
    default = own_compiler()
    looked = []
    for release in kernels(wished=wished):
        compiler = compiler_of(release)
        present = compiler in {None, default} or shutil.which(f"gcc-{compiler}") is not None
        answers = [run("modinfo", "-k", release, "-F", "version", name) for name in MODULE_NAMES]
        looked.append(
            {
                "release": release,
                "running": release == os.uname().release,
                "headers": Path(f"/lib/modules/{release}/build").exists(),
                "compiler": compiler,
                "compiler_present": present,
                # A newer gcc than the kernel's own compiles it, an older one does not know its options.
                "compiler_too_old": not present and (default is None or default < (compiler or 0)),
                "module": next((text.strip() for rc, text in answers if rc == 0), ""),
            }
        )
    return looked


def why_not_built(driver: str, kept_log: Path = KEPT_LOG) -> str:
    """DKMS's complaint with the first errors of its newest build log; empty where there is none. The log is kept."""
    logs = sorted(Path("/var/lib/dkms").glob(f"nvidia*/{driver}/**/make.log"), key=lambda path: path.stat().st_mtime)
    if not logs:
        return ""
    lines = logs[-1].read_text(encoding="utf-8", errors="replace").splitlines()
    kernel = re.search(r"for kernel (\S+)", lines[0] if lines else "")
    errors = " / ".join([line.strip() for line in lines if re.search(r"error|\*\*\*", line)][:2])[:300]
    if not errors:
        return ""
    kept_log.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(logs[-1], kept_log)
    named = kernel.group(1) if kernel else os.uname().release
    return f"Bad return status for module build on kernel: {named} ({errors}). Consult {kept_log} for the rest"


def build(driver: str, wished: str = "") -> dict[str, Any]:
    """Have DKMS build the module of `driver` where a kernel lacks it, and say which kernels still do."""
    lacking = [kernel for kernel in look_at_kernels(wished) if kernel["module"] != driver]
    said = ""
    for kernel in lacking:
        said = run("dkms", "autoinstall", "-k", kernel["release"], timeout_s=BUILD_TIMEOUT_S)[1] or said
    left = [kernel["release"] for kernel in look_at_kernels(wished) if kernel["module"] != driver]
    built = [kernel["release"] for kernel in lacking if kernel["release"] not in left]
    words = " ".join(said.split())[-300:]
    return {"built": built, "left": left, "why": (why_not_built(driver) or words) if left else ""}


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    json.dump(build(asked["driver"], asked["kernel"]), sys.stdout)
