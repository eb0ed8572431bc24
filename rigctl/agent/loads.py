"""Loads: what each kind runs, and a process group that can be ended for certain."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from . import tools
from .errors import AgentError, ToolMissing
from .places import write_atomically
from .plan import GPU_BURN_STTS_S, Plan, Script, Step

if TYPE_CHECKING:
    from .places import Places

SCRIPTS = "scripts"
_RUN_SCRIPT = f"""import runpy, sys
runpy.run_module("{SCRIPTS}." + sys.argv.pop(1), run_name="__main__", alter_sys=True)
"""
"""Runs one module of a folder's package, so that scripts can import each other."""
TERM_GRACE_S = 0.2
"""Between SIGTERM and SIGKILL, seconds: a guard stop ends the load within a second."""


@dataclass(frozen=True)
class Command:
    """What a load runs."""

    kind: str
    argv: tuple[str, ...]
    log: Path
    cwd: Path = Path("/tmp")  # noqa: S108 - stress-ng wants to write where it runs; nothing is read from there


def command_for(kind: str, step: Step, plan: Plan, places: Places) -> Command:
    """The command of one load of a step; ToolMissing when the rig lacks what it needs."""
    spool = places.spool(plan.run_id)
    seconds = str(math.ceil(step.seconds))
    if kind == "gpu":
        return _gpu(step, plan, spool, seconds)
    if kind == "cpu":
        stem = "cpu_burn" if "gpu" not in step.loads else f"{step.name}_cpu"
        argv = (tools.stress_ng(), "--cpu", "0", "--cpu-method", "matrixprod", "--verify", "--metrics")
        return Command(kind, (*argv, "--yaml", str(spool / f"{stem}.yaml"), "-t", seconds), spool / f"{stem}.log")
    if kind == "script" and step.script is not None:
        return _script(step.name, step.script, plan, places)
    return _train(step, plan, places, spool)


def _gpu(step: Step, plan: Plan, spool: Path, seconds: str) -> Command:
    _needs_cards(plan)
    program, compare = tools.gpu_burn(plan.gpu_burn_dir)
    # Its parser looks for -h, -l, -d and -tc anywhere in any argument, so: no path, and the time last.
    # Its environment counts cards in PCI bus order from 0, as slots do from 1.
    only = () if step.only_slot is None else ("-i", str(step.only_slot - 1))
    argv = ("./gpu_burn", *only, "-stts", str(GPU_BURN_STTS_S), "-c", compare, seconds)
    return Command("gpu", argv, spool / f"{step.name}.log", program.parent)


def _train(step: Step, plan: Plan, places: Places, spool: Path) -> Command:
    training = step.training or {}
    if training.get("device") == "cuda":
        _needs_cards(plan)
    python = tools.torch_python(plan.torch_venv)
    program = _taken_out("train", plan, places)
    argv = (python, "-u", *program, "--training", json.dumps(training), "--out", str(spool / "train.json"))
    return Command("train", argv, spool / "train.log")


def _script(step: str, script: Script, plan: Plan, places: Places) -> Command:
    if script.needs_cards:
        _needs_cards(plan)
    python = tools.torch_python(plan.torch_venv) if script.python == "torch" else sys.executable
    program = _taken_out(script.name, plan, places)
    spool = places.spool(plan.run_id)
    argv = (python, "-u", *program, "--arguments", json.dumps(script.arguments), "--out", str(spool / f"{step}.json"))
    return Command("script", argv, spool / f"{step}.log")


def _taken_out(name: str, plan: Plan, places: Places) -> tuple[str, str]:
    """Take the agent's scripts out, for a Python that cannot look into the agent; the words that run `name`."""
    folder = places.scripts(plan.run_id)
    scripts = {path.name: path for path in (files(__package__) / SCRIPTS).iterdir() if path.name.endswith(".py")}
    if f"{name}.py" not in scripts:
        raise AgentError(f"the agent carries no script {name!r}", "controller and agent are of different versions?")
    for file, script in scripts.items():
        write_atomically(folder / SCRIPTS / file, script.read_text(encoding="utf-8"))
    write_atomically(folder / "__main__.py", _RUN_SCRIPT)
    return str(folder), name


def _needs_cards(plan: Plan) -> None:
    if not plan.expected_gpus:
        raise ToolMissing(
            "gpu", "no card can be watched, so none is put to work", "see nvml_error in the facts: driver, NVML"
        )


def group_members(group: int, proc: Path = Path("/proc")) -> list[int]:
    """Processes of a process group that still run; a zombie runs no more."""
    members: list[int] = []
    for stat in proc.glob("[0-9]*/stat"):
        try:
            # The name stands in parentheses and may hold anything: state, parent and group follow the last one.
            state, _, pgrp = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[:3]
        except OSError:
            continue  # it ended while we looked
        if int(pgrp) == group and state not in "ZX":
            members.append(int(stat.parent.name))
    return members


@dataclass
class Load:
    """A running load: a session of its own, so that the whole family can be signalled."""

    command: Command
    limit_s: float
    process: subprocess.Popen[bytes]
    started_s: float
    overran: bool = False
    _term_s: float | None = None
    _killed: bool = False
    _exit_status: int | None = field(default=None)

    @classmethod
    def start(cls, command: Command, limit_s: float) -> Load:
        """Start it; ToolMissing when the system refuses to run the program."""
        with command.log.open("ab") as log:
            try:
                process = subprocess.Popen(
                    command.argv,
                    cwd=command.cwd,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    env=_environment(),
                )
            except OSError as error:
                raise ToolMissing(command.kind, f"{command.argv[0]} cannot be run: {error.strerror}", "") from error
        return cls(command, limit_s, process, time.monotonic())

    @property
    def pid(self) -> int:
        """Process id, and id of its session and group."""
        return self.process.pid

    def poll(self, now_s: float) -> int | None:
        """Exit status once the whole group has ended (a signal as its negative number); None while it runs."""
        if self._exit_status is None and now_s - self.started_s > self.limit_s and self._term_s is None:
            self.overran = True
            self.end(now_s)
        self._press(now_s)
        status = self.process.poll()
        if status is None:
            return None
        if self._exit_status is None and group_members(self.pid):
            # The leader is gone and left children behind: nothing may go on after its step.
            self._term_s = now_s if self._term_s is None else self._term_s
            self._signal(signal.SIGKILL)
            return None
        self._exit_status = status
        return status

    def end(self, now_s: float) -> None:
        """Ask the group to end; what has not ended shortly after is killed. Never waits."""
        if self._term_s is None and self._exit_status is None:
            self._term_s = now_s
            self._signal(signal.SIGTERM)

    def ending_for_s(self, now_s: float) -> float:
        """How long ago the load was asked to end, seconds; 0 when it was not."""
        return 0.0 if self._term_s is None else now_s - self._term_s

    def _press(self, now_s: float) -> None:
        if self._term_s is not None and not self._killed and now_s - self._term_s >= TERM_GRACE_S:
            self._killed = True
            self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            return  # the group has ended already


def _environment() -> dict[str, str]:
    """A plain environment: no notification socket, cards in PCI bus order as slots are."""
    return {
        "PATH": os.environ.get("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
        "LANG": "C.UTF-8",
        "HOME": "/tmp",  # noqa: S108 - programs want a home; none of these keeps anything there
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    }
