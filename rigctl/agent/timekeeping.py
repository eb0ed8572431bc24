"""Who keeps the rig's clock: whether a service does, and whether the kernel takes its clock for right."""

from __future__ import annotations

import subprocess
from typing import Any

TIMEOUT_S = 10
ASKED = ("timedatectl", "show", "--property=NTP", "--property=NTPSynchronized")
"""Of systemd: it knows timesyncd, chrony and ntpd alike; the second is the kernel's own word (adjtimex)."""
_WORDS = {"yes": True, "no": False}


def time_sync() -> dict[str, Any]:
    """Whether a time service is on, and whether the clock is synchronised; None with the reason where none can tell."""
    try:
        done = subprocess.run(ASKED, capture_output=True, timeout=TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"service": None, "synchronised": None, "reason": f"timedatectl: {error}"}
    lines = dict(line.split("=", 1) for line in done.stdout.decode(errors="replace").splitlines() if "=" in line)
    service, synchronised = _WORDS.get(lines.get("NTP", "")), _WORDS.get(lines.get("NTPSynchronized", ""))
    said = done.stderr.decode(errors="replace").strip() or f"status {done.returncode}"
    reason = None if service is not None and synchronised is not None else f"timedatectl: {said}"
    return {"service": service, "synchronised": synchronised, "reason": reason}
