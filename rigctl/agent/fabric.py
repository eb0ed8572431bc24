"""The fabric manager: the service without which cards on NVSwitches cannot reach each other."""

from __future__ import annotations

import re
import subprocess
from typing import Any

UNIT = "nvidia-fabricmanager.service"
PROGRAM = "nv-fabricmanager"
TIMEOUT_S = 10
ASKED = ("systemctl", "show", UNIT, "--property=LoadState,ActiveState,SubState")


def fabric_manager() -> dict[str, Any]:
    """Whether it is installed, what systemd says of it, and its version; `reason` where one is not known."""
    lines, reason = _run(ASKED)
    told = dict(line.split("=", 1) for line in (lines or "").splitlines() if "=" in line)
    known: dict[str, Any] = {"installed": None, "state": None, "version": None, "reason": reason}
    if "LoadState" not in told or "ActiveState" not in told:
        return known | {"reason": reason or "systemctl did not say"}
    known["installed"] = told["LoadState"] != "not-found"
    if not known["installed"]:
        return known
    known["state"] = f"{told['ActiveState']} ({told.get('SubState', '')})"
    said, why = _run((PROGRAM, "--version"))
    found = re.search(r"\b(\d{3}\.\d+(?:\.\d+)*)\b", said or "")
    return known | {"version": found.group(1) if found else None, "reason": why if found is None else None}


def _run(asked: tuple[str, ...]) -> tuple[str | None, str | None]:
    """What a command prints, or why it says nothing."""
    try:
        done = subprocess.run(asked, capture_output=True, timeout=TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, f"{asked[0]}: {error}"
    said = done.stdout.decode(errors="replace")
    return said, None if done.returncode == 0 else f"{asked[0]} ended with status {done.returncode}"
