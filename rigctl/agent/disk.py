"""Disks: what an NVMe disk says of its own health, and how full the file systems are that a run writes to."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from .cpu import SYS
from .errors import AgentError
from .probes import KILLED_S, bounded

SMART_LOG_S = 15.0
"""`nvme smart-log` is given up after so long, seconds: a disk that has died keeps it waiting in the kernel."""
MOST_CHARACTERS = 64 * 1024
"""A smart log has two thousand."""
PLACES = ("/", "/var/lib/rigctl", "/var/tmp")  # noqa: S108 - looked at, not written to
"""Where programs, readings and test files go; of a folder that is not there yet, the one that it will be in."""
_NVME = re.compile(r"(nvme\d+)n\d+")


def smart_log(name: str, program: str = "nvme", limit_s: float = SMART_LOG_S) -> dict[str, str | None]:
    """What `nvme smart-log` prints of a disk as JSON (`smart_log`), or why nothing came of it (`smart_error`).

    Disks of other kinds have neither.
    """
    if not _NVME.fullmatch(name):
        return {}
    if shutil.which(program) is None:
        return {"smart_error": f"{program} is not installed"}
    argv = (program, "smart-log", "-o", "json", f"/dev/{name}")
    try:
        told, probe = bounded(" ".join(argv), lambda: _printed(argv, limit_s), limit_s + KILLED_S)
    except AgentError as error:
        return {"smart_error": error.message}
    if told is None:
        return {"smart_error": f"no answer within {limit_s:g} s" + (f": {probe.stuck}" if probe.stuck else "")}
    return told


def _printed(argv: tuple[str, ...], limit_s: float) -> dict[str, Any]:
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=limit_s, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        return {"smart_error": str(error)}
    text = done.stdout.decode(errors="replace")[:MOST_CHARACTERS]
    if done.returncode == 0:
        return {"smart_log": text}
    said = next((line.strip() for line in done.stderr.decode(errors="replace").splitlines() if line.strip()), "")
    return {"smart_error": f"{argv[0]} ended with status {done.returncode}: {said[:200]}"}


def controller_of(name: str, sys: Path = SYS) -> str | None:
    """State of an NVMe disk's controller as the kernel names it: `live`, `dead`, `resetting`; None for other disks."""
    found = _NVME.fullmatch(name)
    if found is None:
        return None
    try:
        return (sys / "class/nvme" / found.group(1) / "state").read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return None


def _existing(place: str) -> str:
    path = Path(place)
    return str(next((one for one in (path, *path.parents) if one.exists()), path))


def filesystems(places: tuple[str, ...] = PLACES) -> list[dict[str, Any]]:
    """Size and free space, GB of 10⁹ bytes, of each file system that holds one of `places`, named by the first one.

    Free is what programs without special rights may still write; inodes are a share, None where there is no table.
    """
    found: dict[int, dict[str, Any]] = {}
    for place in map(_existing, places):
        try:
            device, space = Path(place).stat().st_dev, os.statvfs(place)
        except OSError as error:
            found[-len(found) - 1] = {"place": place, "error": error.strerror or str(error)}
            continue
        if device not in found:
            found[device] = {
                "place": place,
                "size_gb": round(space.f_blocks * space.f_frsize / 1e9, 3),
                "free_gb": round(space.f_bavail * space.f_frsize / 1e9, 3),
                "free_inode_share": round(space.f_favail / space.f_files, 4) if space.f_files else None,
            }
    return list(found.values())
