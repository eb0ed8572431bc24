"""`--evict-users`: who uses the rig is told to leave, and made to.

Services are stopped and started again after the run; programs get SIGTERM, then SIGKILL; logins are ended. What a
service was is on record before it is stopped.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING

from .busy import LOGIN, User
from .errors import AgentError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

WARNING_S = 10.0
"""People are told so long before, seconds."""
TERM_S = 10.0
"""Between SIGTERM and SIGKILL a program may save its work, seconds."""
GONE_S = 5.0
_LOOK_S = 0.1
SERVICE_S = 30


def services_of(users: Iterable[User]) -> list[str]:
    """The services among them, each once."""
    return sorted({user.service for user in users if user.service is not None and user.kind != LOGIN})


def evict(users: Iterable[User], tell: Callable[[], object]) -> None:
    """Tell everybody, wait, then end services, programs and logins. Raises AgentError where something stays."""
    known = list(users)
    tell()
    time.sleep(WARNING_S)
    for service in services_of(known):
        _stop_service(service)
    logins = {user.pid for user in known if user.pid is not None and user.kind == LOGIN}
    programs = {user.pid for user in known if user.pid is not None and user.kind != LOGIN and user.service is None}
    _signal(programs, signal.SIGTERM)
    # A shell takes no notice of SIGTERM; this is what it gets when its terminal goes.
    _signal(logins, signal.SIGHUP)
    left = _wait_gone(programs | logins, TERM_S)
    _signal(left, signal.SIGKILL)
    stays = _wait_gone(left, GONE_S)
    if stays:
        words = "; ".join(user.words for user in known if user.pid in stays)
        raise AgentError(f"still there after SIGKILL: {words}", "it is stuck in the kernel: reboot the rig")


def _stop_service(service: str) -> None:
    try:
        done = subprocess.run(
            ["systemctl", "stop", service], capture_output=True, text=True, timeout=SERVICE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise AgentError(f"{service} cannot be stopped: {error}", f"systemctl status {service}") from error
    if done.returncode != 0:
        raise AgentError(f"{service} cannot be stopped: {done.stderr.strip()}", f"systemctl status {service}")


def _signal(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        # One that has left by itself is none to signal.
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _wait_gone(pids: set[int], limit_s: float) -> set[int]:
    """Those that are still there after this time."""
    deadline = time.monotonic() + limit_s
    left = {pid for pid in pids if _runs(pid)}
    while left and time.monotonic() < deadline:
        time.sleep(_LOOK_S)
        left = {pid for pid in left if _runs(pid)}
    return left


def _runs(pid: int) -> bool:
    """Whether a process still runs; a zombie runs no more."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - as cheap as can be
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
