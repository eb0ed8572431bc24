"""Loads that are switched on and off: whether the supply bears them, and whether every card wakes from rest."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rigctl.checks import load, timetable
from rigctl.checks.brake import FIX as BRAKE_FIX
from rigctl.checks.brake import braked
from rigctl.checks.cards import cards, each_card, why_no_card
from rigctl.checks.kernel import rebooted
from rigctl.checks.load import STEP_LOAD, WAKES
from rigctl.checks.say import Say
from rigctl.model.switched import step_load_stages, wake_stages

if TYPE_CHECKING:
    from rigctl.checks.timetable import Timetable
    from rigctl.model.baseline import Baseline
    from rigctl.model.reading import GpuFacts, Readings
    from rigctl.model.spec import ProfileSpec, RigSpec
    from rigctl.model.verdict import CheckVerdict

LEAST_SWING = 0.3
"""A card that was switched draws at rest at least so much less than at work, as a share."""
TOGETHER = 0.5
"""A worker that began later than this share of its work's time did not work together with the others."""
LEAST_PACE = 0.7
"""What each wake of a card does at least of what its best one does, as a share."""
_MOST_W = 2000.0
"""No card draws as much."""
_SUPPLY = "the power supply: rating, age, one cable per connector; then the circuit. A lower power limit tells more"
_WRONG = "it computes wrongly when the load jumps: supply and cables first, undo overclocks, then replace it"
_NOT_AWAKE = "see kernel.xid; then ASPM and power management of the slot in the BIOS, riser and power cables"


def step_load(spec: RigSpec, readings: Readings, profile: ProfileSpec, baseline: Baseline | None) -> list[CheckVerdict]:
    """Cards and CPU are switched on and off together, and the rig neither reboots nor signals power brake."""
    say = Say("power.step_load", expected="no reboot, no power brake", source="the rig's boot id and NVML")
    if profile.step_load_only_first and baseline is not None:
        return [say.skipped(f"the profile asks for it at a rig's first acceptance only: see run {baseline.run_id}")]
    if not spec.allow_step_load:
        how = f"set allow_step_load: true in rig_spec ({spec.origin}) or in rig_spec_host of {readings.rig}"
        return [say.blind(f"not allowed on this rig, whose supply may go off: {how}")]
    return [_not_borne(say, readings) or _run(say, readings, profile)]


def _not_borne(say: Say, readings: Readings) -> CheckVerdict | None:
    if gone_off(readings):
        reason = f"the rig rebooted while cards and CPU were switched together{_at(readings)}"
        return say.failed(reason, "rebooted", _SUPPLY)
    if braked(readings, STEP_LOAD):
        reason = f"power brake was signalled while cards and CPU were switched together{_at(readings)}"
        return say.failed(reason, "power brake", BRAKE_FIX)
    return None


def _run(say: Say, readings: Readings, profile: ProfileSpec) -> CheckVerdict:
    if not cards(readings):
        return say.error(*why_no_card(readings))
    told = timetable.read(readings, STEP_LOAD)
    if isinstance(told, load.NoLoad):
        return say.error(*told)
    if told.error is not None:
        return say.error(f"the step load was not run to its end: {told.error}", told.hint or "see step_load.log")
    return _borne(say, readings, profile, told)


def gone_off(readings: Readings) -> bool:
    """Whether the rig went off in the middle of the step load."""
    begun, ended = (load.events(readings, event, STEP_LOAD) for event in ("load_started", "load_exited"))
    return rebooted(readings) and len(begun) > len(ended)


def _at(readings: Readings) -> str:
    stage = timetable.last_stage(readings, STEP_LOAD)
    return f" at {stage}" if stage else ""


def _borne(say: Say, readings: Readings, profile: ProfileSpec, told: Timetable) -> CheckVerdict:
    workers = [*(f"slot{gpu.slot}" for gpu in cards(readings)), timetable.CPU]
    if why := timetable.undone(told, step_load_stages(profile), workers):
        return say.error(why, f"look at step_load.log of {readings.rig} in the run directory")
    wrong = [(worker.what, stage.name) for stage in told.stages for worker in stage.workers if worker.wrong]
    if wrong:
        what, at = wrong[0]
        return say.failed(f"{what} computed wrongly when it was switched at {at}", "wrong bytes", _WRONG)
    swings = [_swing_w(readings, gpu.uuid) for gpu in cards(readings)]
    if why := next((swing for swing in swings if isinstance(swing, str)), None):
        return say.error(why, f"see telemetry of {readings.rig}, step {STEP_LOAD}")
    swing_w = sum(swing for swing in swings if isinstance(swing, float))
    return _together(replace(say, unit="W"), told, swing_w)


def _together(say: Say, told: Timetable, swing_w: float) -> CheckVerdict:
    """The load was switched and borne; where workers began too late, it was not switched as a whole."""
    late = {stage.name: max(worker.late_ms for worker in stage.workers) / 1000 for stage in told.stages}
    apart = [stage.name for stage in told.stages if late[stage.name] > TOGETHER * stage.on_s]
    count = sum(stage.times for stage in told.stages)
    paces = list(late)
    reason = f"switched {count} times at {paces[0]} to {paces[-1]}, {swing_w:.0f} W of the cards each time"
    fix = "was the rig busy with something else? accept it again"
    if len(apart) == len(paces):
        return say.error("cards and CPU never switched together: workers began too late", fix)
    if apart:
        return say.warned(f"{reason}; not together at {', '.join(apart)}: workers began too late", swing_w, fix)
    return say.passed(f"{reason}: no reboot, no power brake, nothing computed wrongly", swing_w)


def _swing_w(readings: Readings, uuid: str) -> float | str:
    """How far a card's power went up and down, W; in words what does not let it be told."""
    seen = [one for s in readings.of_step(STEP_LOAD) for one in s.gpus if one.uuid == uuid and one.error is None]
    watts = [one.power_w for one in seen if one.power_w is not None]
    if len(watts) < load.FEWEST:
        return f"the power of a card was read {len(watts)} times while it was switched"
    high, low = max(watts), min(watts)
    if low < 0 or high > _MOST_W:
        return f"{low:g} to {high:g} W is no power of a card"
    if high - low < LEAST_SWING * high:
        return f"a card drew {low:.0f} to {high:.0f} W: it was not seen to be switched"
    return high - low


def idle_to_load(spec: RigSpec, readings: Readings, profile: ProfileSpec) -> list[CheckVerdict]:
    """Each card that was left alone for a while wakes, and works as fast as ever."""
    say = Say("power.idle_to_load", expected=LEAST_PACE, unit="of its best wake", source="our proposal")
    told = timetable.read(readings, WAKES)
    asked = wake_stages(profile)

    def judge(gpu: GpuFacts, say: Say) -> CheckVerdict:
        if why := _lost(readings, told, gpu):
            return say.failed(why, "lost", _NOT_AWAKE)
        if isinstance(told, load.NoLoad):
            return say.error(*told)
        if told.error is not None:
            return say.error(f"it was not woken to the end: {told.error}", told.hint or "see idle_to_load.log")
        if why := timetable.undone(told, asked, [f"slot{gpu.slot}"]):
            return say.error(why, f"look at idle_to_load.log of {readings.rig} in the run directory")
        return _awake(say, told, gpu, profile)

    return each_card(say, spec, readings, judge)


def _lost(readings: Readings, told: Timetable | load.NoLoad, gpu: GpuFacts) -> str | None:
    """Say that a card was lost when it was to wake: its own work broke, or it could not be read any more."""
    at = timetable.last_stage(readings, WAKES)
    when = f"at {at}" if at else "when it was to wake"
    stops = load.events(readings, "guard_stopped", WAKES)
    if any(s.detail.get("reason") == "no_valid_sample" and s.detail.get("slot") == gpu.slot for s in stops):
        return f"the card could not be read any more {when}"
    if not isinstance(told, load.NoLoad) and told.error is not None and told.what == f"slot{gpu.slot}":
        return f"the card broke off {when}: {told.error}"
    return None


def _awake(say: Say, told: Timetable, gpu: GpuFacts, profile: ProfileSpec) -> CheckVerdict:
    own = [
        (stage.name, worker) for stage in told.stages for worker in stage.workers if worker.what == f"slot{gpu.slot}"
    ]
    if wrong := next((name for name, worker in own if worker.wrong), None):
        return say.failed(f"computed wrongly at {wrong}", "wrong bytes", _WRONG)
    slowest, worker = min(own, key=lambda one: one[1].done)
    pace = worker.done / max(one.done for _, one in own)
    reason = (
        f"{len(own)} wakes after {profile.wake_rest_seconds:g} s of rest each, the slowest did {pace:.0%} of the best"
    )
    if pace < LEAST_PACE:
        fix = "clocks that stay low after rest: `nvidia-smi -q -d CLOCK,PERFORMANCE`; persistence, driver, ASPM"
        return say.failed(f"{reason} ({slowest})", pace, fix)
    return say.passed(reason, pace)
