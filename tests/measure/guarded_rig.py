"""A rig in memory that keeps what its guard would keep, and a controller that can be killed at any moment."""

from __future__ import annotations

import base64
import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rigctl.errors import CommandFailed
from rigctl.fleet.commands import Reply
from rigctl.measure import parts
from rigctl.measure.progress import Progress
from rigctl.measure.rig import RigMeasurement
from rigctl.model.rig import Login, Rig
from rigctl.store import RunDir
from rigctl.store import rundir as store
from tests.measure.test_plan import facts, profile, spec

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pytest

    from rigctl.model.spec import ProfileSpec

SAMPLES = 3
"""Of each step."""
A_POLL = 4
"""So much happens on the rig from one poll to the next: lines of whichever file."""
PROFILE = profile(idle_seconds=2, cpu_burn_seconds=3, gpu_burn_seconds=8, all_burn_seconds=4, train=False)
RIG = Rig(name="rig1", login=Login(address="192.0.2.1"), spec=spec(training=None), profiles={"standard": PROFILE})
RESTORED = b'{"restored": [], "failed": []}\n'


class Killed(BaseException):
    """The controller is gone, as by `kill -9`."""


@dataclass
class Plan:
    """What became of one plan on the rig: what its files get, line by line, in the order in which it comes."""

    asked: dict[str, Any]
    coming: list[tuple[str, bytes]]
    files: dict[str, bytes] = field(default_factory=dict)

    @property
    def active(self) -> bool:
        return bool(self.coming)

    def go_on(self, lines: int) -> None:
        for _ in range(min(lines, len(self.coming))):
            name, data = self.coming.pop(0)
            self.files[name] = self.files.get(name, b"") + data


class GuardedRig:
    """Answers as the agent does; a moment is before each question is heard, and before its answer arrives."""

    def __init__(self) -> None:
        self.name = "a rig"
        self.boot_id = "b"
        self.plans: dict[str, Plan] = {}
        self.started: list[dict[str, Any]] = []
        self.stopped: list[str] = []
        """Runs that were stopped before their end."""
        self.clock_s = 100.0
        self.killer: Killer | None = None
        self.cuts: list[str] = []
        self.connection = self

    def open(self) -> None:
        self.call("open")

    def connect(self) -> None:
        self.call("open")

    def run(self, _command: str, **_more: object) -> Reply:
        """What testinfra asks: no such program here."""
        return Reply(127, b"", b"not found", 0.0)

    def close(self) -> None:
        """Nothing to close."""

    def ask(self, *args: str, during: str, stdin: bytes = b"", timeout_s: float = 30) -> dict[str, Any]:
        return self.call(*args, stdin=stdin)

    def call(self, *args: str, stdin: bytes = b"", timeout_s: float = 30) -> dict[str, Any]:
        self._moment()
        answer = self._answer(args[0], args[1:], stdin)
        self._moment()
        return answer

    def _moment(self) -> None:
        if self.killer is not None:
            self.killer.moment()

    def _answer(self, name: str, args: tuple[str, ...], stdin: bytes) -> dict[str, Any]:
        run_id = dict(zip(args[::2], args[1::2], strict=False)).get("--run", "")
        told = [{"t_wall_s": 1.0, "message": "NVRM: loading"}]
        answers = {
            "facts": lambda: facts("GPU-a").model_dump(mode="json") | {"boot_id": self.boot_id},
            "start": lambda: self._start(json.loads(stdin)),
            "spooled": lambda: {"spooled": run_id in self.plans, "boot_id": self.boot_id},
            "poll": lambda: self._poll(run_id, args),
            "stop": lambda: self._stop(run_id, args),
            "ack": lambda: {"removed": self.plans.pop(run_id, None) is not None},
            "kernel": lambda: {"kernel": told, "kernel_read": True, "boot_id": self.boot_id, "t_wall_s": 9.0},
        }
        return answers.get(name, dict)()

    def _start(self, plan: dict[str, Any]) -> dict[str, Any]:
        known = self.plans.get(plan["run_id"])
        if known is None:
            self.plans[plan["run_id"]] = Plan(plan, self._timeline(plan))
            self.started.append(plan)
        elif known.asked != plan:
            raise CommandFailed(f"run {plan['run_id']} has been on this rig already")
        return {"already_started": known is not None}

    def _stop(self, run_id: str, args: tuple[str, ...]) -> dict[str, Any]:
        if "--reason" in args:
            self.stopped.append(run_id)
            self.silence("asked", args[args.index("--reason") + 1])
        return {"was_active": False, "left_running": []}

    def _poll(self, run_id: str, args: tuple[str, ...]) -> dict[str, Any]:
        plan = self.plans.get(run_id)
        if plan is None:
            raise CommandFailed(f"no readings of run {run_id} on this rig")
        if self.boot_id == "b":
            plan.go_on(A_POLL)
        offsets = dict(pair.split("=") for pair in args[3::2])
        files = {}
        for name, data in plan.files.items():
            offset = int(offsets.get(name, 0))
            files[name] = {
                "offset": offset, "data": base64.b64encode(data[offset:]).decode(), "size": len(data),
            }  # fmt: skip
        unit = {"active": "active" if plan.active else "inactive", "result": "success"}
        return {"boot_id": self.boot_id, "unit": unit, "files": files}

    def _timeline(self, plan: dict[str, Any]) -> list[tuple[str, bytes]]:
        self.clock_s += 50
        told = Told(self.clock_s)
        told.kernel(f"NVRM: plan {len(self.started) + 1}")
        told.counters("before")
        for step in plan["steps"]:
            told.step(step["name"])
        told.end()
        return told.lines

    def silence(self, reason: str = "controller_lost", found: object = 60.1) -> None:
        """Nobody asks any more: what is under way is stopped by its guard, which writes its last words."""
        for plan in self.plans.values():
            if not plan.coming:
                continue
            while "counters.jsonl" not in plan.files:  # the guard counts before it looks for a reason to stop
                plan.go_on(1)
            events = [json.loads(line) for line in plan.files.get("events.jsonl", b"").splitlines()]
            over = {one["step"] for one in events if one["event"] == "step_finished"}
            begun = [one["step"] for one in events if one["event"] == "step_started" and one["step"] not in over]
            if len(over) == len(plan.asked["steps"]):
                plan.go_on(len(plan.coming))  # nothing is left to stop
                continue
            self.clock_s += 50
            told = Told(self.clock_s, len(events), plan.files.get("telemetry.jsonl", b"").count(b"\n"))
            told.event("guard_stopped", begun[0] if begun else "after", reason=reason, found=found)
            for step in begun:
                told.event("step_finished", step)
            told.end()
            plan.coming = told.lines
            plan.go_on(len(plan.coming))

    def reboot(self) -> None:
        """What was under way is gone; what was written is still there."""
        self.boot_id = "after the reboot"
        for plan in self.plans.values():
            plan.coming = []


class Told:
    """Lines of a guard's files, in the order in which they come."""

    def __init__(self, clock_s: float, events: int = 0, samples: int = 0) -> None:
        self.lines: list[tuple[str, bytes]] = []
        self._clock_s, self._events, self._samples = clock_s, events, samples

    def event(self, event: str, step: str, **detail: object) -> None:
        self._line("events.jsonl", seq=self._events, event=event, step=step, detail=detail)
        self._events += 1

    def sample(self, step: str) -> None:
        gpu = {"uuid": "GPU-a", "slot": 1, "temp_c": 50, "power_w": 440.5}
        self._line("telemetry.jsonl", seq=self._samples, boot_id="b", step=step, gpus=[gpu])
        self._samples += 1

    def kernel(self, message: str) -> None:
        self._line("kernel.jsonl", message=message)

    def counters(self, when: str) -> None:
        self._line("counters.jsonl", when=when)

    def step(self, name: str) -> None:
        self.event("step_started", name)
        for number in range(SAMPLES):
            self.sample(name)
            self.lines.append((f"{name}.log", f"{name}: row {number}\n".encode()))
        self.event("step_finished", name)

    def end(self) -> None:
        self.sample("after")
        self.counters("after")
        self.event("plan_finished", "after", samples=self._samples)
        self.lines.append(("restored.json", RESTORED))

    def _line(self, file: str, **what: object) -> None:
        self._clock_s += 0.25
        line = {"t_mono_s": self._clock_s, "t_wall_s": 1000 + self._clock_s, **what}
        self.lines.append((file, json.dumps(line).encode() + b"\n"))


@dataclass
class Killer:
    """Kills the controller at its `at`-th moment; None: lets it live, and counts."""

    at: int | None = None
    passed: int = 0

    def moment(self) -> None:
        """One more moment at which a kill makes a difference."""
        self.passed += 1
        if self.passed == self.at:
            raise Killed

    @contextmanager
    def watching(self, rig: GuardedRig, patch: pytest.MonkeyPatch) -> Iterator[None]:
        """Have the moments counted: at each question to the rig, and before, in and after each write to the disk."""
        append, replace = store.append_durably, store.replace_durably

        def appends(path: Path, data: bytes, **more: bool) -> None:
            self.moment()
            self.passed += 1
            if self.passed == self.at:  # a line that is cut
                with path.open("ab") as file:
                    file.write(data[: len(data) // 2])
                raise Killed
            append(path, data, **more)
            self.moment()

        def replaces(path: Path, data: bytes) -> None:
            self.moment()
            replace(path, data)
            self.moment()

        with patch.context() as here:
            here.setattr("rigctl.measure.carry.POLL_S", 0.0)
            for name in (store.__name__, parts.__name__):
                here.setattr(f"{name}.replace_durably", replaces)
            here.setattr(store, "append_durably", appends)
            here.setattr(rig, "killer", self)
            # A process that is killed says nothing to anybody.
            here.setattr(RigMeasurement, "_leave", lambda *_: None)
            yield


def controller(
    path: Path, rig: GuardedRig, *, again: bool = False, asked: ProfileSpec = PROFILE, **more: bool
) -> RigMeasurement:
    """One process that measures the rig, or finishes what another one left."""
    one = RigMeasurement(
        RIG, asked, RunDir(path), Progress(["rig1"]), threading.Event(), connect=lambda *_: rig, again=again,
        gone="its controller was gone" if again else "",
    )  # fmt: skip
    for name, value in more.items():
        setattr(one, name, value)
    return one.run()
