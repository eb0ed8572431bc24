"""See whether a kernel has the modules that the running one has, and have DKMS build those that are missing.

Runs on the rig as root with the system's Python (3.10 or newer, standard library only) and prints one JSON object. Its
one argument are wishes as JSON: version (of the kernel that is to run).
"""

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

from apt_answers import run
from kernels import BUILD_TIMEOUT_S, MODULE_NAMES, why_not_built

LOADED = Path("/sys/module/nvidia/version")
TRIAL = Path("/etc/default/grub.d/90-gpu-rig-trial.cfg")
LINE = re.compile(r"^([^/,:\s]+)(?:/|, )([^,:\s]+), ([^,\s]+), [^:]+: installed", re.MULTILINE)
"""A line of `dkms status`: `nvidia/515.105.01, 5.15.0-91-generic, x86_64: installed`; before DKMS 3 with a comma."""


def built_by_dkms(kernel: str, status: str) -> set[str]:
    """`module/version` of whatever DKMS has installed for a kernel."""
    return {f"{module}/{version}" for module, version, known in LINE.findall(status) if known == kernel}


def driver_of(kernel: str) -> str:
    """The version of a kernel's NVIDIA module; empty where it has none."""
    answers = [run("modinfo", "-k", kernel, "-F", "version", name) for name in MODULE_NAMES]
    return next((text.strip() for code, text in answers if code == 0), "")


def lacking(version: str, running: str) -> list[str]:
    """The modules of the running kernel that the other one has not got, by name and version."""
    status = run("dkms", "status")[1]
    left = built_by_dkms(running, status) - built_by_dkms(version, status)
    driver = driver_of(running)
    if driver and driver_of(version) != driver:
        left = {one for one in left if not one.startswith("nvidia")} | {f"nvidia/{driver}"}
    return sorted(left)


def build(version: str) -> dict[str, Any]:
    """What was built for the kernel, what is left to build, and why."""
    running = os.uname().release
    loaded = LOADED.read_text(encoding="ascii").strip() if LOADED.is_file() else ""
    at_first = lacking(version, running) if version != running else []
    said = run("dkms", "autoinstall", "-k", version, timeout_s=BUILD_TIMEOUT_S)[1] if at_first else ""
    left = lacking(version, running) if at_first else []
    why = (why_not_built(loaded) or " ".join(said.split())[-300:]) if left else ""
    return {
        "running": running,
        "loaded": loaded,
        "on_trial": TRIAL.is_file(),
        "built": [one for one in at_first if one not in left],
        "left": left,
        "why": f"{why}." if why else "",
    }


if __name__ == "__main__":
    json.dump(build(json.loads(sys.argv[1])["version"]), sys.stdout)
