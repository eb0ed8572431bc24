"""Questions that may hang, each timed and bounded.

The driver of a dead card answers nobody, and no signal ends a process that waits for it in the kernel (state D). Such a
process is left behind and told as `stuck`.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import tempfile
import time
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import AgentError, TooSlow

if TYPE_CHECKING:
    from collections.abc import Callable

PROBE_S = 20.0
"""One question to `nvidia-smi` is ended after so long, seconds."""
IDENTITY_S = 40.0
"""So is reading everything through NVML: the driver's start takes seconds a card where nothing holds it."""
KILLED_S = 2.0
"""What is there so long after SIGKILL waits in the kernel, seconds."""
QUESTIONS = (("nvidia-smi", "topo", "-m"), ("nvidia-smi", "nvlink", "-s"))
MOST_SAID = 300
_TICK_S = 0.02


@dataclass(frozen=True)
class Probe:
    """One question and how it went."""

    name: str
    seconds: float
    limit_s: float
    exit_status: int | None
    """None where it had to be ended."""
    stuck: str | None = None
    """What the process waits in, where not even SIGKILL ended it."""
    said: str = ""
    """The first line of a failure."""


def ask_all(limit_s: float = PROBE_S) -> dict[str, Any]:
    """Ask `nvidia-smi` about the links. What did not end at all is followed by no other question."""
    probes: list[Probe] = []
    for argv in QUESTIONS:
        probes.append(ask(argv, limit_s))
        if probes[-1].exit_status is None:
            break
    return {"probes": [asdict(probe) for probe in probes]}


def ask(argv: tuple[str, ...], limit_s: float, kill: Callable[[int, int], None] = os.killpg) -> Probe:
    """Run a program; never waits longer than `limit_s` and two seconds."""
    name, begun = " ".join(argv), time.monotonic()
    # A file and no pipe: what a stuck process holds must not hold us.
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )
        except OSError as error:
            seconds = round(time.monotonic() - begun, 3)
            return Probe(name, seconds, limit_s, 127, said=f"{argv[0]}: {error.strerror}")
        stuck = _wait(process.pid, lambda: process.poll() is not None, begun + limit_s, kill)
        seconds, ended = round(time.monotonic() - begun, 3), process.poll()
        output.seek(0)
        text = output.read(1 << 16).decode(errors="replace")
    if stuck is not None:
        process.returncode = 0  # nobody will ever be able to fetch it
        return Probe(name, seconds, limit_s, None, stuck or None, "" if stuck else f"ended after {limit_s:g} s")
    return Probe(name, seconds, limit_s, ended, said=_first_line(text) if ended else "")


def _wait(pid: int, ended: Callable[[], bool], deadline: float, kill: Callable[[int, int], None]) -> str | None:
    """Wait for a process and end it at the deadline.

    None: it ended by itself. Empty: it was ended. Else it could not be, and this is what it waits in.
    """
    while time.monotonic() < deadline:
        if ended():
            return None
        time.sleep(_TICK_S)
    try:
        kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return None if ended() else ""
    deadline = time.monotonic() + KILLED_S
    while time.monotonic() < deadline:
        if ended():
            return ""
        time.sleep(_TICK_S)
    return waits_in(pid)


def waits_in(pid: int, proc: Path = Path("/proc")) -> str:
    """In words, in what a process that resists SIGKILL is stuck: its state, and the kernel's function."""
    try:
        state = (proc / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
        where = (proc / str(pid) / "wchan").read_text(errors="replace").strip()
    except (OSError, IndexError):
        return f"process {pid} resists SIGKILL"
    kernel = f" in {where}" if where not in ("", "0") else ""
    return f"process {pid} is in state {state}{kernel} and resists SIGKILL"


def bounded(
    name: str,
    read: Callable[[], dict[str, Any]],
    limit_s: float = IDENTITY_S,
    kill: Callable[[int, int], None] = os.kill,
) -> tuple[dict[str, Any] | None, Probe]:
    """Let a child process read something; its answer, or None and what became of it. Raises AgentError as `read` does.

    The child is left behind where it is stuck: a thread would keep this process from ending.
    """
    begun = time.monotonic()
    ours, theirs = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of fork beside threads: this process has none
        pid = os.fork()
    if pid == 0:
        os.close(ours)
        _answer(theirs, read)
    os.close(theirs)
    data = _gathered(ours, begun + limit_s)
    status: list[int] = []

    def ended() -> bool:
        if not status and os.waitpid(pid, os.WNOHANG)[0] == pid:
            status.append(pid)
        return bool(status)

    stuck = _wait(pid, ended, time.monotonic() + (KILLED_S if data is not None else 0), kill)
    seconds = round(time.monotonic() - begun, 3)
    if data is None:
        said = "" if stuck else f"ended after {limit_s:g} s"
        return None, Probe(name, seconds, limit_s, None, stuck or None, said)
    return _understood(data), Probe(name, seconds, limit_s, 0)


def _answer(pipe: int, read: Callable[[], dict[str, Any]]) -> None:
    """In the child: read, answer, and go. It holds nothing of its parent's: a stuck child would keep SSH waiting."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    os.setsid()
    try:
        answer = {"answer": read()}
    except AgentError as error:
        answer = {"error": {"message": error.message, "hint": error.hint, "again": isinstance(error, TooSlow)}}
    except BaseException as error:  # noqa: BLE001 - the process's boundary: its parent says what broke
        answer = {"broke": {"what": repr(error)}}
    with os.fdopen(pipe, "wb") as out:
        out.write(json.dumps(answer).encode())
    os._exit(0)


def _gathered(pipe: int, deadline: float) -> bytes | None:
    """All that the child says until it closes the pipe; None where it has not by the deadline."""
    data = b""
    try:
        while (left := deadline - time.monotonic()) > 0:
            if not select.select([pipe], [], [], left)[0]:
                break
            chunk = os.read(pipe, 1 << 16)
            if not chunk:
                return data
            data += chunk
        return None
    finally:
        os.close(pipe)


def _understood(data: bytes) -> dict[str, Any]:
    try:
        told: dict[str, Any] = json.loads(data)
    except ValueError as error:
        raise AgentError("reading this rig broke off", "look at its kernel log: was a process killed?") from error
    if failed := told.get("error"):
        kind = TooSlow if failed["again"] else AgentError
        raise kind(failed["message"], failed["hint"])
    if broke := told.get("broke"):
        raise AgentError(f"reading this rig broke: {broke['what']}", "this is a fault of rigctl")
    answer: dict[str, Any] = told["answer"]
    return answer


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")[:MOST_SAID]
