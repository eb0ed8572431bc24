"""The guard: main process of a run's systemd unit. Carries the plan out, samples, and stops the burn when it must.

The main loop decides and waits for nothing: sampling (NVML calls can hang), wall meter, kernel log and disk each have
a thread of their own. systemd's watchdog watches the main loop, and whatever ends this process, the unit's control
group goes with it.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import announce
from .clock import stamp
from .counters import COUNTERS, in_time
from .cpu import cpu_critical_temp_c
from .decide import all_seen, decide, limits_in_words
from .kernel import KernelFollower
from .loads import Load, command_for
from .notify import Notifier
from .places import Places, unit_name
from .plan import FINISH_S, FIRST_SAMPLE_S, Plan, Step, parse_plan
from .ramp import LONGEST_SHARE, RAMP, Ramp
from .sampler import Sampler, Source
from .seeing import Seeing
from .sensors import Sensors
from .settings import POWER_LIMIT, Before
from .situation import Limits, Situation
from .spool import EVENTS, KERNEL, TELEMETRY, Spool
from .steps import AFTER, BEFORE, UNKILLABLE_S, RunningLoad, Steps
from .wall import WallMeter

if TYPE_CHECKING:
    from pathlib import Path

TICK_S = 0.05
"""The guard decides 20 times a second."""
KEEP_ALIVE_S = 1.0
LAST_WORDS_S = 2.0
"""Telling people that the run has ended is waited for at most so long, seconds."""
LAST_SAMPLE_S = 3.0
"""The last sample, with nothing running, is waited for at most so long, seconds."""

log = logging.getLogger(__name__)


@dataclass
class Asked:
    """Whether somebody asked the run to stop: SIGTERM, with the reason beside it where there is one."""

    reason_file: Path
    signalled: bool = False

    def install(self) -> None:
        """Take SIGTERM and SIGINT as the question to stop."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._note)

    def _note(self, _number: int, _frame: object) -> None:
        self.signalled = True

    def reason(self) -> str | None:
        """Why the run should stop; None when nobody asked."""
        if not self.signalled:
            return None
        try:
            return self.reason_file.read_text(encoding="utf-8").strip() or "stopped on this rig"
        except OSError:
            return "stopped on this rig"


def asked_to_end(path: Path) -> tuple[str, str] | None:
    """Which step the controller wants ended before its time, and why; None where it wants none."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        return str(told["step"]), str(told["reason"])
    except (OSError, ValueError, KeyError, TypeError):
        return None  # not there, or not ours: the step runs its whole time


class Heartbeat:
    """The controller's last word, written by `start` and every `poll` on this boot's monotonic clock."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._last_s = time.monotonic()

    def last_s(self) -> float:
        """CLOCK_MONOTONIC of the last word, seconds; the last known one where the file cannot be read."""
        try:
            told = float(self._path.read_text(encoding="ascii"))
        except (OSError, ValueError):
            return self._last_s
        # Never later than now, so that no wrong figure can keep a burn alive.
        self._last_s = min(told, time.monotonic())
        return self._last_s


class Guard:
    """One run on this rig."""

    def __init__(self, plan: Plan, places: Places, source: Source, notifier: Notifier) -> None:
        self.plan = plan
        self.places = places
        self.spool = Spool(places.spool(plan.run_id))
        seeing = Seeing(cpu_critical_temp_c())
        self.sampler = Sampler(source, plan.sample_hz, lambda line: self.spool.append(TELEMETRY, line), seeing)
        self.kernel = KernelFollower(time.monotonic(), lambda line: self.spool.append(KERNEL, line))
        self.steps = Steps(plan.steps, self._start_load, self._say)
        self.asked = Asked(places.stop_reason(plan.run_id))
        self.heartbeat = Heartbeat(places.heartbeat(plan.run_id))
        self.notifier = notifier
        self.limits = Limits(
            plan.max_gpu_temp_c,
            plan.stale_sample_s,
            None if plan.detached else plan.controller_lost_s,
            plan.expected_gpus,
            plan.history_max_gpu_temp_c,
            plan.max_gpu_memory_temp_c,
            plan.max_cpu_temp_c,
        )
        self._ramp: Ramp | None = None
        self._events = 0
        self._saying = threading.Lock()
        self._kept_alive_s = 0.0
        self._status = ""
        self._watched_since_s = time.monotonic()

    def run(self) -> int:
        """Carry the plan out; exit status 0, or 1 when the readings could not all be written."""
        self.asked.install()
        self.spool.start()
        self.sampler.step = BEFORE
        self.sampler.start()
        self.kernel.start()
        self.notifier.ready(f"run {self.plan.run_id}")
        self._wait_for_cards()
        self._say("guard_limits", BEFORE, **limits_in_words(self.limits, self.situation()))
        self._count("before")
        puts_to_work = any(step.loads for step in self.plan.steps)
        if puts_to_work:
            announce.tell_aside(announce.begins(self.plan))
        while not self.steps.finished:
            self._turn(self.situation())
            time.sleep(TICK_S)
        stopped = self.steps.stopped
        told = (
            announce.tell_aside(announce.ends(self.plan, stopped.reason if stopped else None)) if puts_to_work else None
        )
        status = self._finish()
        if told is not None:
            told.join(LAST_WORDS_S)
        return status

    def situation(self) -> Situation:
        """What the guard sees now."""
        return Situation(
            now_s=time.monotonic(),
            watched_since_s=self._watched_since_s,
            heard_s=self.heartbeat.last_s(),
            cards=self.sampler.seeing.cards(),
            processor=self.sampler.seeing.processor(),
            fans_still=self.sampler.seeing.fans_still(),
            others=self.sampler.seeing.others(),
            spooled_s=self.spool.waiting_since_s(),
            spool_error=self.spool.error,
            asked=self.asked.reason(),
        )

    def _turn(self, seen: Situation) -> None:
        stop = decide(self.limits, seen)
        if stop is not None and self.steps.stopped is None:
            log.warning("stopping: %s", stop)
            self.steps.stop(stop, seen.now_s)
            if self._ramp is not None:
                self._ramp.hurry()
        if (early := asked_to_end(self.places.end_step(self.plan.run_id))) is not None:
            self.steps.end_early(*early, seen.now_s)
        self.steps.tick(seen.now_s)
        ramps = self._ramp is not None and self._ramp.is_alive() and bool(self.steps.running)
        self.sampler.step = RAMP if ramps else self.steps.step
        if ramps or self.steps.switches:
            self.sampler.seeing.unsteady(seen.now_s)
        self._keep_alive(seen.now_s)

    def _wait_for_cards(self) -> None:
        """Before anything is put to work, every expected card must have been read once."""
        deadline = time.monotonic() + FIRST_SAMPLE_S
        while time.monotonic() < deadline and not self.asked.signalled and self.spool.error is None:
            if all_seen(self.limits, self.situation()):
                break
            self._keep_alive(time.monotonic())
            time.sleep(TICK_S)
        # A card that still shows nothing is stale already, not only after some more seconds.
        self._watched_since_s = deadline - FIRST_SAMPLE_S

    def _count(self, when: str) -> None:
        """Note the counters of links and bus; a driver that does not answer holds nobody for long."""
        self.spool.append(COUNTERS, in_time(when, lambda: self._keep_alive(time.monotonic())))

    def _keep_alive(self, now_s: float) -> None:
        """Keep the watchdog quiet, but not when a load resists: then systemd clears the control group."""
        if now_s - self._kept_alive_s < KEEP_ALIVE_S or self.steps.stuck_s(now_s) > UNKILLABLE_S:
            return
        self._kept_alive_s = now_s
        self.notifier.alive()
        stopped = self.steps.stopped
        status = f"step {self.steps.step}" + (f", stopped: {stopped.reason} ({stopped.found})" if stopped else "")
        if status != self._status:
            self._status = status
            self.notifier.status(status)

    def _start_load(self, kind: str, step: Step) -> tuple[RunningLoad, tuple[str, ...]]:
        command = command_for(kind, step, self.plan, self.places)
        self.sampler.load_begins()
        if kind == "gpu" and self.plan.ramp_s > 0:
            self._ramp_up(step)
        return Load.start(command, step.limit_s(kind)), command.argv

    def _ramp_up(self, step: Step) -> None:
        """Begin at the cards' lowest limits. What is found now is on record: only that can be put back."""
        before = Before.kept(self.places.before(self.plan.run_id)) or Before()
        limits = {uuid: known[POWER_LIMIT.name] for uuid, known in before.cards.items() if POWER_LIMIT.name in known}
        if not limits:
            self._say("ramp_skipped", step.name, because="no card lets its power limit be read")
            return
        seconds = min(self.plan.ramp_s, step.seconds * LONGEST_SHARE)
        self._ramp = Ramp(limits, seconds, lambda event, **detail: self._say(event, step.name, **detail))
        self.sampler.step = RAMP  # before the first limit moves
        self._ramp.start()

    def _say(self, event: str, step: str, **detail: Any) -> None:
        with self._saying:
            line = {"seq": self._events, **stamp(), "event": event, "step": step, "detail": detail}
            self._events += 1
            self.spool.append(EVENTS, line)
        log.info("%s %s %s", event, step, detail)

    def _finish(self) -> int:
        """A last sample with nothing running, the last kernel messages, everything on the disk."""
        self.notifier.patience(FINISH_S)
        if self._ramp is not None:
            self._ramp.end(LAST_SAMPLE_S)
        self.sampler.step = AFTER
        deadline = time.monotonic() + LAST_SAMPLE_S
        while not self.sampler.has_sampled(AFTER) and time.monotonic() < deadline:
            self._keep_alive(time.monotonic())
            time.sleep(TICK_S)
        self._count("after")
        hangs = not self.sampler.end(timeout_s=1.0)
        self.notifier.alive()
        self.kernel.end(timeout_s=FINISH_S / 3)
        if self.spool.error is not None:
            self.spool.use_reserve()
        stopped = self.steps.stopped
        detail = {"stopped": stopped.reason if stopped else None, "samples": self.sampler.count, "sampler_hangs": hangs}
        self._say("plan_finished", AFTER, **detail)
        self.notifier.stopping()
        written = self.spool.close(timeout_s=FINISH_S / 3)
        if not written:
            self.notifier.status(f"readings were lost: {self.spool.error or 'the disk does not answer'}")
        return 0 if written else 1


def run_guard(run_id: str, places: Places) -> int:
    """Entry of `guard --run ID`: read the plan and carry it out."""
    notifier = Notifier.from_environment()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    log.info("%s, process %d", unit_name(run_id), os.getpid())
    plan = parse_plan(places.plan(run_id).read_bytes())
    wall = WallMeter(plan.wall_meter) if plan.wall_meter else None
    if wall is not None:
        wall.start()
    return Guard(plan, places, Sensors(plan.expected_gpus, wall), notifier).run()
