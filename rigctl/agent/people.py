"""Whose a process is, in words that let a person go and ask."""

from __future__ import annotations

import os
import pwd
import re
from pathlib import Path

PROC = Path("/proc")
_FOR_OTHERS = ("user@", "ssh", "getty@", "serial-getty@", "cron", "atd", "systemd-", "dbus", "docker", "containerd")
_LONGEST = 60
"""Characters of a command line that are shown."""


def user_of(pid: int, proc: Path = PROC) -> str | None:
    """Name of the user whose process it is (the number where it has no name); None where the process is gone."""
    try:
        uid = (proc / str(pid)).stat().st_uid
    except OSError:
        return None
    return user_name(uid)


def user_name(uid: int) -> str:
    """Name of a user; the number where it has no name."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def command_of(pid: int, proc: Path = PROC) -> str:
    """What the process runs, shortened; its bare name where it has no command line; empty where it is gone."""
    try:
        words = (proc / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        text = words or (proc / str(pid) / "comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def unit_of(pid: int | str = "self", proc: Path = PROC) -> str | None:
    """The systemd service that a process belongs to (cgroup v1 and v2 alike); None where it belongs to none."""
    try:
        text = (proc / str(pid) / "cgroup").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    found = re.search(r"/([^/\n]+\.service)(?:/|$)", text, re.MULTILINE)
    return None if found is None else found.group(1)


def runs_for_others(service: str) -> bool:
    """Whether what is below a service is its users' own, such as a login's shell: then the service is not to blame."""
    return service.startswith(_FOR_OTHERS)


def ancestors(proc: Path = PROC) -> set[int]:
    """This process and all above it."""
    found, pid = set(), os.getpid()
    while pid > 0 and pid not in found:
        found.add(pid)
        pid = _parent(pid, proc)
    return found


def _parent(pid: int, proc: Path) -> int:
    try:
        stat = (proc / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    # The name stands in parentheses and may hold anything: state and parent follow the last one.
    return int(stat.rpartition(")")[2].split()[1])
