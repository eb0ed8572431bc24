"""The systemd unit of a run: started, asked about, stopped."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import AgentError, TooSlow
from .places import unit_name

if TYPE_CHECKING:
    from collections.abc import Sequence

WATCHDOG_S = 4
"""systemd kills the control group when the guard's main loop has said nothing for so long, seconds: no burn outlives
its guard by more than 5 s. The loop speaks once a second; when nothing runs any more it asks for more patience."""
STOP_S = 30
"""SIGTERM to SIGKILL, seconds; the load itself ends within a second, the rest is for the readings."""
START_S = 30
QUESTION_S = 12
ORDER_S = 40
"""systemd answers a question, and carries an order out, within this time, seconds. START_S and STOP_S are shorter than
ORDER_S; all that one command of the agent asks of systemd is shorter than what the controller grants that command, so
that the agent's own words arrive."""
_RUNNING = ("active", "activating", "reloading", "deactivating")


def _systemd(*command: str, limit_s: float = QUESTION_S) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=limit_s, check=False)
    except FileNotFoundError as error:
        raise AgentError(
            f"{command[0]} is not on this rig", "rigctl needs systemd: the guard is a unit of it"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise TooSlow(
            f"{command[0]} did not answer within {limit_s:g} s",
            "look at the rig: `systemctl status`, `systemctl list-jobs`",
        ) from error


def properties_for(runtime_max_s: float, log: Path, afterwards: str) -> list[str]:
    """How the guard's unit is set up: whatever ends the guard ends its control group, and no run lasts for ever."""
    return [
        "NotifyAccess=main",
        f"WatchdogSec={WATCHDOG_S}",
        # Not SIGABRT: a guard that hangs is not asked to write a core first.
        "WatchdogSignal=SIGKILL",
        f"RuntimeMaxSec={runtime_max_s:.0f}",
        f"TimeoutStartSec={START_S}",
        f"TimeoutStopSec={STOP_S}",
        # SIGTERM is the guard's alone: it ends the load and keeps the readings. What is left when the guard is gone,
        # however it went, gets SIGKILL at once; with control-group a burner deaf to SIGTERM would go on for STOP_S.
        "KillMode=mixed",
        "SendSIGKILL=yes",
        "Restart=no",
        # Runs whatever became of the guard, once nothing of the run is left.
        f"ExecStopPost={afterwards}",
        f"StandardOutput=append:{log}",
        f"StandardError=append:{log}",
    ]


def start(run_id: str, argv: Sequence[str], runtime_max_s: float, log: Path, afterwards: Sequence[str]) -> None:
    """Start the guard's unit and wait until the guard says that it watches; AgentError with systemd's words.

    `afterwards` is run by systemd when the unit ends, however that comes.
    """
    wanted = [word for entry in properties_for(runtime_max_s, log, _quoted(afterwards)) for word in ("-p", entry)]
    named = ("--unit", unit_name(run_id), "--description", f"rigctl run {run_id}", "--service-type=notify")
    done = _systemd("systemd-run", "--quiet", *named, *wanted, *argv, limit_s=ORDER_S)
    if done.returncode != 0:
        tail = " · ".join(_last_lines(log, 3)) or done.stderr.strip()
        raise AgentError(f"the guard did not start: {tail}", f"on the rig: journalctl -u {unit_name(run_id)}")


def _quoted(argv: Sequence[str]) -> str:
    """A command line as systemd reads it: in double quotes, nothing expanded."""
    escaped = (word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$") for word in argv)
    return " ".join(f'"{word}"' for word in escaped)


def _last_lines(path: Path, count: int) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()[-count:]
    except OSError:
        return []


def state(run_id: str) -> dict[str, str]:
    """What systemd says of the unit: `active` (active, inactive, failed), `result`, and the guard's own status line."""
    wanted = "ActiveState,Result,StatusText,ExecMainStatus"
    done = _systemd("systemctl", "show", unit_name(run_id), "-p", wanted)
    if done.returncode != 0:
        raise AgentError(f"systemctl: {done.stderr.strip()}", "look at the rig: `systemctl status`")
    said = dict(line.partition("=")[::2] for line in done.stdout.splitlines())
    active = said.get("ActiveState", "")
    return {
        # On its way up or down, it still holds the rig.
        "active": "active" if active in _RUNNING else active,
        "result": said.get("Result", ""),
        "status": said.get("StatusText", ""),
        "exit_status": said.get("ExecMainStatus", ""),
    }


def running_runs() -> list[str]:
    """Runs whose guard is on this rig now."""
    listed = _systemd("systemctl", "list-units", "--all", "--plain", "--no-legend", "rigctl-*.service")
    rows = [line.split() for line in listed.stdout.splitlines()]
    return [row[0][len("rigctl-") : -len(".service")] for row in rows if len(row) > 2 and row[2] in _RUNNING]  # noqa: PLR2004 - UNIT LOAD ACTIVE


def stop(run_id: str) -> None:
    """Stop the unit and wait until it has ended; nothing happens when it is not there."""
    _systemd("systemctl", "stop", unit_name(run_id), limit_s=ORDER_S)


def forget(run_id: str) -> None:
    """Let systemd forget that the unit failed."""
    _systemd("systemctl", "reset-failed", unit_name(run_id))


def processes(run_id: str | None = None, proc: Path = Path("/proc")) -> list[str]:
    """Processes in the control group of a run (of any run: None), as `PID NAME`; cgroup v1 and v2 alike."""
    unit = re.escape(unit_name(run_id)) if run_id is not None else r"rigctl-[^/\n]+\.service"
    found: list[str] = []
    for path in proc.glob("[0-9]*/cgroup"):
        try:
            inside = re.search(f"/{unit}(/|$)", path.read_text(encoding="utf-8"), re.MULTILINE)
            name = path.with_name("comm").read_text(encoding="utf-8", errors="replace").strip() if inside else ""
        except OSError:
            continue  # it ended while we looked
        if inside:
            found.append(f"{path.parent.name} {name}")
    return sorted(found)
