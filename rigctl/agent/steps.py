"""Carries the steps of a plan out, one after another.

Nothing here ever waits: the guard calls `tick` many times a second.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Protocol

from .errors import AgentError, ToolMissing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .decide import Stop
    from .plan import Step

BEFORE, AFTER = "before", "after"
"""The steps of samples that are taken when nothing runs yet, and when nothing runs any more."""
UNKILLABLE_S = 5.0
"""A load that is there so long after SIGKILL is stuck in the kernel, seconds."""
FIND_OUT = "look at disk space and kernel log of the rig"


class RunningLoad(Protocol):
    """What the steps need of a load."""

    overran: bool

    @property
    def pid(self) -> int:
        """Process id."""

    def poll(self, now_s: float) -> int | None:
        """Exit status once it has ended."""

    def end(self, now_s: float) -> None:
        """Ask it to end."""

    def ending_for_s(self, now_s: float) -> float:
        """How long ago it was asked to end."""


class Steps:
    """The plan's steps and where they stand."""

    def __init__(
        self,
        steps: Sequence[Step],
        start: Callable[[str, Step], tuple[RunningLoad, tuple[str, ...]]],
        say: Callable[..., None],
    ) -> None:
        """`start(kind, step)` starts a load and returns it with its argv; `say(event, step, **detail)` writes."""
        self._coming = list(steps)
        self._start = start
        self._say = say
        self._now: Step | None = None
        self._began_s = 0.0
        self._loads: dict[str, RunningLoad] = {}
        self.stopped: Stop | None = None
        self._stop_said = False
        self._ended_early: set[str] = set()

    @property
    def step(self) -> str:
        """Name of the step that runs now."""
        return self._now.name if self._now else AFTER

    @property
    def finished(self) -> bool:
        """Whether nothing runs and nothing is to come."""
        return self._now is None and not self._coming and not self._loads

    @property
    def running(self) -> tuple[str, ...]:
        """The loads that run now."""
        return tuple(self._loads)

    @property
    def switches(self) -> bool:
        """Whether cards are switched on and off now."""
        script = self._now.script if self._now is not None else None
        return bool(self._loads) and script is not None and script.switches

    def stuck_s(self, now_s: float) -> float:
        """How long a load has resisted being ended, seconds."""
        return max((load.ending_for_s(now_s) for load in self._loads.values()), default=0.0)

    def stop(self, stop: Stop, now_s: float) -> None:
        """End the load at once and run no further step."""
        if self.stopped is not None:
            return
        self.stopped = stop
        for load in self._loads.values():
            load.end(now_s)
        self._say(
            "guard_stopped", self.step, **{key: value for key, value in asdict(stop).items() if value is not None}
        )

    def end_early(self, step: str, reason: str, now_s: float) -> None:
        """End the load of `step` before its time, and go on with the next step; nothing for any other step."""
        if self._now is None or self._now.name != step or not self._loads or self.stopped is not None:
            return
        if step in self._ended_early:
            return
        self._ended_early.add(step)
        for load in self._loads.values():
            load.end(now_s)
        seconds = round(now_s - self._began_s, 3)
        self._say("ended_early", step, reason=reason, seconds=seconds, asked_s=self._now.seconds)

    def tick(self, now_s: float) -> None:
        """Look after what runs, and go on to the next step when it is over."""
        for kind, load in list(self._loads.items()):
            status = load.poll(now_s)
            if status is not None:
                del self._loads[kind]
                self._exited(kind, load, status, now_s)
        if self._now is not None and self._over(now_s):
            seconds = round(now_s - self._began_s, 3)
            self._say("step_finished", self._now.name, seconds=seconds)
            self._now = None
        if self._now is None and self._coming:
            self._begin(self._coming.pop(0), now_s)

    def _over(self, now_s: float) -> bool:
        if self._loads:
            return False
        step = self._now
        return step is None or bool(step.loads) or self.stopped is not None or now_s - self._began_s >= step.seconds

    def _exited(self, kind: str, load: RunningLoad, status: int, now_s: float) -> None:
        detail: dict[str, Any] = {"load": kind, "pid": load.pid, "exit_status": status}
        self._say("load_exited", self.step, **detail, seconds=round(now_s - self._began_s, 3), overran=load.overran)

    def _begin(self, step: Step, now_s: float) -> None:
        if self.stopped is not None:
            self._say("step_skipped", step.name, because=f"the guard stopped the run: {self.stopped.reason}")
            return
        self._now, self._began_s = step, now_s
        self._say("step_started", step.name, seconds=step.seconds, loads=list(step.loads))
        for kind in step.loads:
            try:
                load, argv = self._start(kind, step)
            except ToolMissing as error:
                self._not_started(kind, now_s, needs=error.needs, error=error.message, hint=error.hint)
                return
            except (AgentError, OSError) as error:
                # No tool is missing: a full disk, say. The guard goes on, and so do the readings.
                hint = error.hint if isinstance(error, AgentError) else FIND_OUT
                self._not_started(kind, now_s, error=f"the load did not start: {error}", hint=hint)
                return
            self._loads[kind] = load
            self._say("load_started", step.name, load=kind, pid=load.pid, argv=list(argv))

    def _not_started(self, kind: str, now_s: float, **why: str) -> None:
        """A step lacks a load: what of it runs already is ended, half a load shows nothing; the other steps go on."""
        self._say("error", self.step, load=kind, **why)
        for load in self._loads.values():
            load.end(now_s)
