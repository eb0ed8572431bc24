"""Take a kernel away again that has just come and cannot be used: its packages, and no others.

Runs on the rig as root with the system's Python (3.10 or newer, standard library only) and prints one JSON object. Its
one argument are wishes as JSON: packages (the ones that have come) and version (of the kernel; never the running one).
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from apt_answers import run
from kernels import why_not_built

TIMEOUT_S = 1800
LOADED = Path("/sys/module/nvidia/version")
APT = (
    "env", "DEBIAN_FRONTEND=noninteractive", "NEEDRESTART_MODE=l", "apt-get", "-y", "-q",
    "-o", "DPkg::Lock::Timeout=600", "--allow-change-held-packages",
)  # fmt: skip
WHOLE = ("ii", "hi")


def states() -> dict[str, str]:
    """Every package that is on the rig in whatever state → its state (`ii`, `iF`, …)."""
    rows = run("dpkg-query", "-W", "-f", "${Package} ${db:Status-Abbrev}\n")[1].splitlines()
    fields = [row.split() for row in rows]
    return {row[0]: row[1] for row in fields if len(row) > 1 and row[1][1] not in "nc"}


def take_back(packages: list[str], version: str) -> dict[str, Any]:
    """Why DKMS failed, where it did, and which packages are still neither whole nor gone."""
    why = why_not_built(LOADED.read_text(encoding="ascii").strip()) if LOADED.is_file() else ""
    there = [name for name in packages if name in states()]
    if there and version != os.uname().release:
        run(*APT, "purge", *there, timeout_s=TIMEOUT_S)
    broken = sorted(name for name, state in states().items() if state not in WHOLE)
    if broken:
        run("dpkg", "--configure", "-a", timeout_s=TIMEOUT_S)
        broken = sorted(name for name, state in states().items() if state not in WHOLE)
    return {"why": why, "broken": broken}


if __name__ == "__main__":
    json.dump(take_back(**json.loads(sys.argv[1])), sys.stdout)
