"""What was measured under load: which samples count, per card and per step.

A sample counts as loaded when the card itself was busy, so that the seconds in which gpu-burn fills memory or waits
for its children say nothing of heat, power or lanes. Where a driver shows no utilisation, the step's samples count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar, get_args

from rigctl.model.reading import GpuSample, Sample
from rigctl.model.spec import Workload

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rigctl.model.reading import Readings, RigEvent
    from rigctl.model.spec import ProfileSpec

GPU_STEPS = ("gpu_burn", "all_burn")
WAKES, STEP_LOAD = "idle_to_load", "step_load"
STEPS = ("idle", "cpu_burn", "gpu_burn", "all_burn", *get_args(Workload), "train", WAKES, STEP_LOAD)
"""Every step that a profile can ask for."""
BUSY_PCT = 50
"""A card is loaded from this utilisation on; a burn keeps it at 100 %."""
RAMP_S = 2.0
"""Lanes and clocks need a moment to wake: loaded samples of the first two seconds are left out where it matters."""
ENDING_S = 1.0
"""A card's sensors are read one after another: in the last second of a load the lanes may sleep already while its
utilisation, a mean, still shows it. So these are left out there too.
"""
FEWEST = 3
"""Fewer samples than this are no measurement."""


NEEDS = {"gpu_burn": "gpu_burn", "stress_ng": "cpu_burn", "torch": "pytorch"}
"""What a step can lack, and the role that installs it."""


class Timed(NamedTuple):
    """One card's sample with its time on the rig's monotonic clock, seconds."""

    t_s: float
    gpu: GpuSample


T = TypeVar("T", Timed, Sample)


class NoLoad(NamedTuple):
    """Why a step has no loaded samples, and what to do."""

    reason: str
    fix: str


def asked_seconds(profile: ProfileSpec, step: str) -> float:
    """Return how long the profile asks `step` to take, seconds; 0 leaves it out."""
    return {
        "idle": profile.idle_seconds,
        "cpu_burn": profile.cpu_burn_seconds,
        "gpu_burn": profile.gpu_burn_seconds,
        "all_burn": profile.all_burn_seconds,
    }[step]


def steps_of(profile: ProfileSpec) -> frozenset[str]:
    """Return the steps that the profile asks for."""
    burns = {step for step in ("idle", "cpu_burn", *GPU_STEPS) if asked_seconds(profile, step) > 0}
    switched = {WAKES: profile.wakes, STEP_LOAD: profile.step_load_seconds, "train": profile.train}
    return frozenset(burns | set(profile.workloads) | {step for step, asked in switched.items() if asked})


def loaded(readings: Readings, step: str, uuid: str, *, after_ramp: bool = False) -> list[Timed]:
    """Return one card's samples of `step` in which it was busy and could be read."""
    timed = [
        Timed(sample.t_mono_s, gpu)
        for sample in readings.of_step(step)
        for gpu in sample.gpus
        if gpu.uuid == uuid and gpu.error is None and (gpu.util_pct is None or gpu.util_pct >= BUSY_PCT)
    ]
    if after_ramp and timed:
        start, end = timed[0].t_s + RAMP_S, timed[-1].t_s - ENDING_S
        return [one for one in timed if start <= one.t_s <= end]
    return timed


def all_busy(readings: Readings, step: str) -> list[Sample]:
    """Return the samples of `step` in which every card that could be read was busy."""

    def busy(sample: Sample) -> bool:
        loads = [gpu.util_pct for gpu in sample.gpus if gpu.error is None]
        return bool(loads) and all(pct is None or pct >= BUSY_PCT for pct in loads)

    return [sample for sample in readings.of_step(step) if busy(sample)]


def last_third(samples: Sequence[T]) -> list[T]:
    """Return the samples of the last third of the time that `samples` cover."""
    if not samples:
        return []
    times = [_time(sample) for sample in samples]
    start = times[0] + (times[-1] - times[0]) * 2 / 3
    return [sample for sample, t_s in zip(samples, times, strict=True) if t_s >= start]


def mean(figures: Sequence[float]) -> float:
    """Return the mean; there must be at least one figure."""
    return sum(figures) / len(figures)


def gpu_steps(profile: ProfileSpec) -> list[str]:
    """Return the asked steps that put the cards to work with gpu-burn."""
    return [step for step in GPU_STEPS if asked_seconds(profile, step) > 0]


def events(readings: Readings, event: str, step: str | None = None) -> list[RigEvent]:
    """Return the rig's events of one kind, of one step where given."""
    return [e for e in readings.events if e.event == event and (step is None or e.step == step)]


def ended_early(readings: Readings, step: str) -> str | None:
    """Return why the load of `step` was ended before its time, its verdict being certain; None where it was not."""
    ended = next(iter(events(readings, "ended_early", step)), None)
    return None if ended is None else str(ended.detail.get("reason", "no reason given"))


def cut_short(readings: Readings, step: str) -> NoLoad | None:
    """Say that the load of `step` did not come to its own end, and why, as far as the rig's own events tell.

    What was measured of such a load can fail a limit, but it settled at nothing and passes none.
    """
    if stop := next(iter(events(readings, "guard_stopped", step)), None):
        reason = f"the guard stopped the load in step {step} ({stop.detail.get('reason', 'no reason given')})"
        return NoLoad(reason, "see why the guard stopped it")
    started, exited = events(readings, "load_started", step), events(readings, "load_exited", step)
    if len(exited) < len(started):
        reason = f"the rig's own events end in the middle of step {step}"
        return NoLoad(reason, f"see guard.log of {readings.rig}, and journalctl -u 'rigctl-*' there")
    if any(e.detail.get("overran") for e in exited):
        reason = f"the load of step {step} did not end in its time and was killed"
        return NoLoad(reason, f"look at the logs of {readings.rig} in the run directory")
    return None


def why_no_load(readings: Readings, step: str) -> NoLoad:
    """Say in words why `step` has no loaded samples, as far as the rig's own events tell."""
    rig = readings.rig
    for event in events(readings, "error", step):
        needs = str(event.detail.get("needs", ""))
        if needs:
            role = NEEDS.get(needs, needs)
            reason = f"step {step} did not run: it needs {needs}, which the rig lacks"
            return NoLoad(reason, f"rigctl provision {rig} --tags {role}")
        hint = str(event.detail.get("hint", "")) or f"look at the logs of {rig} in the run directory"
        return NoLoad(f"step {step} failed: {event.detail.get('error', 'no reason given')}", hint)
    stop = next(iter(events(readings, "guard_stopped")), None)
    if stop is not None:
        return NoLoad(
            f"no loaded sample in step {step}: the guard stopped the load in step {stop.step}",
            "see why the guard stopped it",
        )
    if not events(readings, "step_started", step):
        return NoLoad(f"step {step} did not begin", f"rigctl accept {rig}")
    return cut_short(readings, step) or _left_nothing(rig, step)


def _left_nothing(rig: str, step: str) -> NoLoad:
    if step not in GPU_STEPS:
        return NoLoad(f"step {step} left no readings", f"look at the logs of {rig} in the run directory")
    return NoLoad(f"no card was busy in step {step}", f"look at {step}.log of {rig} in the run directory")


def _time(sample: Timed | Sample) -> float:
    return sample.t_s if isinstance(sample, Timed) else sample.t_mono_s
