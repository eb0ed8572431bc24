"""Who uses this rig: another run, programs on the cards, heavy programs on the processor, people who are logged in.

A rig in use is not burnt. The words name who, what and since when, so that somebody can be asked.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from . import nvml
from .errors import AgentError, NvmlUnavailable
from .people import PROC, ancestors, command_of, runs_for_others, unit_of, user_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

LOOK_S = 1.0
"""Processor time is counted over this time, twice: a program that is busy in both looks is at work, seconds."""
HEAVY_CORES = 0.8
"""From so many cores on a program is heavy: what a service does beside its rest stays below."""
WHO_S = 10
CARDS, PROCESSOR, LOGIN = "cards", "processor", "login"


@dataclass(frozen=True)
class User:
    """One who uses the rig."""

    kind: str
    """cards · processor · login"""
    words: str
    pid: int | None = None
    """Its process; for a login the one that leads it, where that is known."""
    service: str | None = None
    """The systemd service that the process belongs to, where it can be stopped for the run."""


def users(proc: Path = PROC) -> list[User]:
    """Everybody who uses this rig now; takes two seconds. Raises AgentError where a card fails or `who` does."""
    computing = on_cards(proc)
    known = {one.pid for one in computing}
    return [*computing, *(one for one in on_processor(proc) if one.pid not in known), *logged_in()]


def on_cards(proc: Path = PROC) -> list[User]:
    """Programs that compute on a card. Raises AgentError when a card fails."""
    try:
        opened = nvml.Nvml()
    except NvmlUnavailable:
        return []  # no card can be read, so nobody can use one, and none will be put to work
    try:
        running = nvml.processes_on(opened.cards)
    except nvml.NVML_ERRORS as error:
        raise AgentError(
            f"a card fails: {nvml.words_of(error)}", "see the kernel log for an Xid; reboot the rig"
        ) from error
    finally:
        opened.close()
    slots: dict[int, list[int]] = {}
    for slot, pid in running:
        slots.setdefault(pid, []).append(slot)
    return [_computes(pid, sorted(on), proc) for pid, on in slots.items()]


def _computes(pid: int, slots: list[int], proc: Path) -> User:
    where = " and ".join(f"slot{slot}" for slot in slots)
    user, command = user_of(pid, proc), command_of(pid, proc)
    who = f"{user} computes" if user else "a process that is not visible here computes"
    what = f"{command or 'unknown'} (process {pid}{since(pid, proc)})"
    return User(CARDS, f"{who} on {where}: {what}", pid, _service(pid, proc))


def _service(pid: int, proc: Path) -> str | None:
    service = unit_of(pid, proc)
    return None if service is None or runs_for_others(service) else service


def on_processor(proc: Path = PROC) -> list[User]:
    """Programs that keep most of a core busy, in two looks in a row; this process and those above it left out."""
    first = cpu_seconds(proc)
    time.sleep(LOOK_S)
    second = cpu_seconds(proc)
    time.sleep(LOOK_S)
    third = cpu_seconds(proc)
    return heavy((first, second, third), LOOK_S, ancestors(proc), proc)


def heavy(
    looks: tuple[Mapping[int, float], Mapping[int, float], Mapping[int, float]],
    seconds: float,
    own: set[int],
    proc: Path = PROC,
) -> list[User]:
    """Programs whose processor time grew by most of a core from each look to the next, the heaviest first."""
    first, second, third = looks
    found: list[tuple[float, int]] = []
    for pid in third.keys() & second.keys() & first.keys() - own:
        cores = min(second[pid] - first[pid], third[pid] - second[pid]) / seconds
        if cores >= HEAVY_CORES:
            found.append((cores, pid))
    return [
        User(
            PROCESSOR,
            f"{user_of(pid, proc) or 'somebody'} keeps {cores:.1f} cores busy: "
            f"{command_of(pid, proc)} (process {pid}{since(pid, proc)})",
            pid,
            _service(pid, proc),
        )
        for cores, pid in sorted(found, reverse=True)
    ]


def cpu_seconds(proc: Path = PROC) -> dict[int, float]:
    """Processor time of every process so far, seconds; kernel threads left out."""
    ticks_per_s, found = os.sysconf("SC_CLK_TCK"), dict[int, float]()
    for path in proc.glob("[0-9]*/stat"):
        try:
            fields = path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:
            continue  # it ended while we looked
        # Field 2 counts from the state on: parent 1, user and system time 11 and 12. Kernel threads are kthreadd's.
        if fields[1] != "2" and path.parent.name != "2":
            found[int(path.parent.name)] = (int(fields[11]) + int(fields[12])) / ticks_per_s
    return found


def since(pid: int, proc: Path = PROC) -> str:
    """`, since DATE`, when the process began; empty where it is gone."""
    try:
        stat = (proc / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
        uptime_s = float((proc / "uptime").read_text(encoding="ascii").split()[0])
    except OSError:
        return ""
    began_s = int(stat.rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
    return f", since {clock_words(time.time() - uptime_s + began_s)}"


def clock_words(t_wall_s: float) -> str:
    """A moment as people read it, by the rig's clock and in UTC."""
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(t_wall_s))


def logged_in() -> list[User]:
    """People with a terminal or a desktop here. Raises AgentError where nobody can be asked.

    The controller's own session has no terminal and is not among them.
    """
    try:
        plain = os.environ | {"LC_ALL": "C"}
        done = subprocess.run(["who", "-u"], capture_output=True, timeout=WHO_S, check=True, env=plain)
    except (OSError, subprocess.SubprocessError) as error:
        raise AgentError(f"who is logged in cannot be told: {error}", "is `who` (coreutils) on the rig?") from error
    return [user for line in done.stdout.decode(errors="replace").splitlines() if (user := parse_who(line))]


_WHO = re.compile(
    r"(?P<name>\S+)\s+[-+?]?\s*(?P<line>\S+)\s+(?P<since>\S+ +\d{1,2}:\d\d|\w{3} +\d+ +\d\d:\d\d)\s+"
    r"(?P<idle>\.|old|\d\d:\d\d|\?)\s+(?P<pid>\d+)(?:\s+\((?P<where>[^)]*)\))?"
)
"""`NAME LINE TIME IDLE PID (HOST)`, as `who -u` of GNU coreutils writes it."""


def parse_who(line: str) -> User | None:
    """One line of `who -u`; a form that is not known is still somebody. None for an empty line."""
    if not line.strip():
        return None
    found = _WHO.match(line)
    if found is None:
        return User(LOGIN, f"somebody is logged in: {line.strip()}")
    idle = {".": "active now", "old": "idle for more than a day", "?": "idle time unknown"}.get(
        found["idle"], f"idle for {found['idle']} h"
    )
    where = f" from {found['where']}" if found["where"] else ""
    words = f"{found['name']} is logged in on {found['line']}{where} since {found['since']} ({idle})"
    return User(LOGIN, words, int(found["pid"]))
