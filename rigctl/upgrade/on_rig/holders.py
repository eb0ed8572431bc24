"""What holds the cards: services, containers and programs that have a device of the driver open.

A module in use cannot be unloaded, and a program that goes on with the old library fails with the new module. So what
can be started again is stopped, and kept on a list that survives a restart; what belongs to a person is named.
"""

import json
import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from .kept import folder
from .state import Refused, must, run

PROC = Path("/proc")
DEVICES = "/dev/nvidia"
STOP_S = 120
TERM_S = 10.0
"""Between SIGTERM and SIGKILL a program may save its work, seconds."""
_LOOK_S = 0.1
_UNIT = re.compile(r"/([^/]+\.service)(?:/|$)")
_SESSION = re.compile(r"/session-([^/]+)\.scope")
_CONTAINER = re.compile(r"(docker|libpod)[-/](?:conmon-)?([0-9a-f]{64})")
_RUNTIMES = {"docker": "docker", "libpod": "podman"}
_DISPLAY = "display-manager.service"
"""What systemd calls whichever display manager is installed (Debian's and Ubuntu's alias)."""


def release(run_id: str, *, evict: bool, proc: Path = PROC) -> dict[str, Any]:
    """Stop services and containers that hold a card, and remember them; with `evict` end programs of people too.

    Raises Refused where somebody's program or desktop holds one, or something does not stop.
    """
    units, containers, programs = find(proc)
    if programs and not evict:
        raise Refused(
            f"the cards are held by {'; '.join(programs.values())}",
            "ask them to end it, or make them leave (--evict-users)",
        )
    stopped = {"units": sorted(units), "containers": sorted(containers)}
    if units or containers:
        _remember(run_id, stopped)
    for unit in stopped["units"]:
        must("systemctl", "stop", unit, timeout_s=STOP_S)
    for container in stopped["containers"]:
        runtime, name = container.split(" ", 1)
        must(runtime, "stop", name, timeout_s=STOP_S)
    _end(set(programs))
    return {"stopped": [*stopped["units"], *stopped["containers"], *programs.values()]}


def start_again(run_id: str) -> dict[str, Any]:
    """Start what was stopped and has not come back by itself; what the new driver no longer brings is left out.

    Raises Refused where one does not start.
    """
    path = _list(run_id)
    if not path.is_file():
        return {"started": []}
    stopped, started = json.loads(path.read_text(encoding="utf-8")), []
    for unit in stopped["units"]:
        state = must("systemctl", "show", "--property=LoadState", "--value", unit).strip()
        if state == "loaded" and run("systemctl", "is-active", "--quiet", unit)[0]:
            must("systemctl", "start", unit, timeout_s=STOP_S)
            started.append(unit)
    for container in stopped["containers"]:
        runtime, name = container.split(" ", 1)
        if run(runtime, "inspect", "--format", "{{.State.Running}}", name)[1].strip() != "true":
            must(runtime, "start", name, timeout_s=STOP_S)
            started.append(container)
    return {"started": started}


def find(proc: Path = PROC) -> tuple[set[str], set[str], dict[int, str]]:
    """Services, containers as `runtime name`, and (process → words) programs of people, that have a card open."""
    units: set[str] = set()
    containers: set[str] = set()
    programs: dict[int, str] = {}
    for pid in with_card_open(proc):
        kind, name = _belongs_to(pid, proc)
        if kind == "unit":
            units.add(name)
        elif kind == "container":
            containers.add(name)
        elif kind == "program":
            programs[pid] = name
    return units, containers, programs


def with_card_open(proc: Path = PROC) -> Iterator[int]:
    """Processes that have one of the driver's devices open; those that end while we look are left out."""
    for path in sorted(proc.glob("[0-9]*"), key=lambda one: int(one.name)):
        if any(one.startswith(DEVICES) for one in _opened(path / "fd")):
            yield int(path.name)


def _opened(descriptors: Path) -> Iterator[str]:
    """Where a process's descriptors lead; those that close while we look are left out."""
    with suppress(OSError):
        for entry in descriptors.iterdir():
            with suppress(OSError):
                yield str(entry.readlink())


def _belongs_to(pid: int, proc: Path) -> tuple[str, str]:
    """`unit`, `container` or `program` with its name; `gone` where the process has ended."""
    try:
        group = _group(pid, proc)
        uid = (proc / str(pid)).stat().st_uid
        words = (proc / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return "gone", ""
    container = _CONTAINER.search(group)
    if container is not None:
        runtime = _RUNTIMES[container.group(1)]
        code, name, _ = run(runtime, "inspect", "--format", "{{.Name}}", container.group(2))
        return "container", f"{runtime} {name.strip().lstrip('/') if code == 0 else container.group(2)}"
    session = _SESSION.search(group)
    if session is not None:
        return _of_session(session.group(1), pid, uid, words)
    unit = _UNIT.search(group)
    if unit is None or unit.group(1).startswith("user@"):
        return "program", f"{_name(uid)}: {words[:60]} (process {pid})"
    return "unit", unit.group(1)


def _group(pid: int, proc: Path) -> str:
    """The control group of a process as systemd counts it, below the machine's own: that may be a container itself."""
    return _path(pid, proc).removeprefix(_path(1, proc).removesuffix("/init.scope"))


def _path(pid: int, proc: Path) -> str:
    lines = (proc / str(pid) / "cgroup").read_text(encoding="utf-8", errors="replace").splitlines()
    groups = {name: path for _, name, path in (line.split(":", 2) for line in lines)}
    return groups.get("name=systemd", groups.get("", ""))


def _of_session(session: str, pid: int, uid: int, words: str) -> tuple[str, str]:
    """The display manager's own greeter is the display manager; any other session is somebody's."""
    kind = run("loginctl", "show-session", session, "--property=Class", "--value")[1].strip()
    if kind == "greeter":
        return "unit", _DISPLAY
    return "program", f"{_name(uid)}: {words[:60]} (process {pid})"


def _name(uid: int) -> str:
    found = run("id", "--name", "--user", str(uid))
    return found[1].strip() if found[0] == 0 else str(uid)


def _list(run_id: str) -> Path:
    return folder(run_id) / "stopped.json"


def _remember(run_id: str, stopped: dict[str, list[str]]) -> None:
    """Add to what is on the list already: the step may be done again."""
    path = _list(run_id)
    known = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    both = {kind: sorted({*known.get(kind, []), *names}) for kind, names in stopped.items()}
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(both) + "\n", encoding="utf-8")
    part.replace(path)


def _end(pids: set[int]) -> None:
    """SIGTERM, and SIGKILL for what is left. Raises Refused where one stays."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        deadline = time.monotonic() + TERM_S
        while pids and time.monotonic() < deadline:
            time.sleep(_LOOK_S)
            pids = {pid for pid in pids if _runs(pid)}
    if pids:
        raise Refused(f"still there after SIGKILL: process {', '.join(map(str, sorted(pids)))}", "restart the rig")


def _runs(pid: int) -> bool:
    """Whether a process still runs; a zombie runs no more."""
    try:
        stat = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")
