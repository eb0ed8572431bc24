"""Power: the asked limit is set, the cards reach it, and the wall agrees."""

from __future__ import annotations

from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING

from rigctl.checks import load
from rigctl.checks import wall as at_wall
from rigctl.checks.cards import ABSENT, each_card
from rigctl.checks.say import Say

if TYPE_CHECKING:
    from rigctl.model.baseline import Baseline
    from rigctl.model.reading import GpuFacts, Readings, Sample
    from rigctl.model.spec import ProfileSpec, RigSpec
    from rigctl.model.verdict import CheckVerdict

_ROUNDING_W = 1.0
"""Limits are set in whole watts."""
_IDLE_RISE = 1.5
"""A card may draw so many times what it drew at rest in its newest accepted run: sensors read ± 5 W there."""
_MOST_W = 2000.0
"""No card draws as much."""
_POWER_CAP = 0x4
"""NVML's bit for a clock that the power limit holds."""
_CAPPED_SHARE, _CAPPED_BELOW = 0.9, 0.1
"""A card that is capped in so many of its samples may stay so far below the declared share."""
_RAMP = "ramp"
"""The step of samples that are taken while the guard raises the limits to their own."""


def limit(spec: RigSpec, readings: Readings) -> list[CheckVerdict]:
    """Each card's power limit is the asked one, or the board's default, and stayed so under load."""
    asked = spec.software.power_limit_w
    say = Say("power.limit", expected=asked, unit="W", source="the roles' variable nvidia_driver_power_limit_w")

    def judge(gpu: GpuFacts, say: Say) -> CheckVerdict:
        expected = asked if asked is not None else gpu.power_default_w
        if asked is None:
            say = Say(say.check, say.subject, expected, say.unit, "the card's own default limit")
        fix = f"rigctl provision {readings.rig} --tags nvidia_driver"
        if gpu.power_limit_w is None or expected is None:
            why = gpu.missing.get("power_limit_w") or gpu.missing.get("power_default_w") or "no reason given"
            return say.error(f"the card does not tell its limit: {why}", f"nvidia-smi -q -d POWER on {readings.rig}")
        seen = [gpu.power_limit_w, *_limits_seen(readings, gpu.uuid)]
        told = [*seen, expected, *([] if gpu.power_max_w is None else [gpu.power_max_w])]
        if absurd := [watts for watts in told if not 0 < watts <= _MOST_W]:
            return say.error(f"{absurd[0]:g} W is no card's power limit", f"nvidia-smi -q -d POWER on {readings.rig}")
        if gpu.power_max_w is not None and expected > gpu.power_max_w + _ROUNDING_W:
            reason = f"{expected:g} W were asked for, this board allows {gpu.power_max_w:g} W at most"
            return say.failed(reason, gpu.power_limit_w, "correct nvidia_driver_power_limit_w, or the board differs")
        furthest = max(seen, key=lambda watts: abs(watts - expected))
        if abs(furthest - expected) > _ROUNDING_W:
            when = "" if furthest == gpu.power_limit_w else " during the run"
            return say.failed(f"the limit is {furthest:g} W{when} instead of {expected:g} W", furthest, fix)
        return say.passed(f"{furthest:g} W", furthest)

    return [v for v in each_card(say, spec, readings, judge) if v.subject != ABSENT]


def _limits_seen(readings: Readings, uuid: str) -> list[float]:
    samples = [sample for sample in readings.samples if sample.step != _RAMP]
    seen = {gpu.limit_w for s in samples for gpu in s.gpus if gpu.uuid == uuid and gpu.limit_w is not None}
    return sorted(seen)


def idle(spec: RigSpec, readings: Readings, baseline: Baseline | None) -> list[CheckVerdict]:
    """A card at rest draws little; one that does not rest is awake, busy, or its supply or memory is at fault."""

    def judge(gpu: GpuFacts, say: Say) -> CheckVerdict:
        most, source = spec.limits.max_idle_power_w, spec.source("limits.max_idle_power_w")
        before = baseline.figure("power.idle", gpu.uuid) if baseline is not None else None
        if most is None and before is not None and baseline is not None:
            most, source = before * _IDLE_RISE, f"{_IDLE_RISE:g} × this card's {before:.0f} W in run {baseline.run_id}"
        rest = [one for s in readings.of_step("idle") for one in s.gpus if one.uuid == gpu.uuid and one.error is None]
        watts = [one.power_w for one in rest if one.power_w is not None]
        if most is None:
            return say.skipped("the spec sets no idle power, and no accepted run of this card shows one")
        say = replace(say, expected=round(most, 1), source=source)
        if len(watts) < load.FEWEST:
            return say.error(f"{len(watts)} readings of its power at rest", f"nvidia-smi -q -d POWER on {readings.rig}")
        found = median(watts)
        if not 0 < found <= _MOST_W:
            return say.error(f"{found:g} W at rest is no power of a card", "its sensor is wrong: reboot, then RMA")
        busy = [one.util_pct for one in rest if (one.util_pct or 0) > 0]
        reason = f"{found:.0f} W at rest, at most {most:.0f} W are expected"
        if found > most:
            fix = "`nvidia-smi` on the rig: who uses the card, does its memory clock come down (P8), is persistence on?"
            return say.failed(reason + (f"; it was at work in {len(busy)} samples" if busy else ""), found, fix)
        return say.passed(reason, found)

    return each_card(Say("power.idle", unit="W"), spec, readings, judge)


def share_of_limit(spec: RigSpec, readings: Readings) -> list[CheckVerdict]:
    """Each card draws its limit in the burn's last third: less is held back by something, more is not limited.

    A card whose driver says nearly all the time that its power cap holds it has reached what it may take, though its
    mean stays a little below: the cap is about moments, and about each of several rails.
    """
    least = spec.limits.min_power_share_of_limit
    source = spec.source("limits.min_power_share_of_limit")
    say = Say("power.share_of_limit", expected=least, unit="share", source=source)

    def judge(gpu: GpuFacts, say: Say) -> CheckVerdict:
        settled = load.last_third(load.loaded(readings, "gpu_burn", gpu.uuid))
        watts = [one.gpu.power_w for one in settled if one.gpu.power_w is not None]
        limits = [one.gpu.limit_w for one in settled if one.gpu.limit_w]
        bound = load.mean(limits) if limits else gpu.power_limit_w
        if len(watts) < load.FEWEST:
            return say.error(*load.why_no_load(readings, "gpu_burn"))
        if not bound:
            return say.error("the card does not tell its limit", f"nvidia-smi -q -d POWER on {readings.rig}")
        if cut := load.cut_short(readings, "gpu_burn"):
            return say.error(f"nothing settled: {cut.reason}", cut.fix)
        if not 0 <= load.mean(watts) <= _MOST_W:
            return say.error(f"{load.mean(watts):g} W is no power of a card", "its sensor is wrong: reboot, then RMA")
        masks = [one.gpu.throttle for one in settled if one.gpu.throttle is not None]
        capped = sum(bool(mask & _POWER_CAP) for mask in masks) / len(masks) if masks else 0.0
        share = load.mean(watts) / bound
        reason = f"{load.mean(watts):.0f} W of {bound:g} W in the burn's last third ({share:.0%})"
        reason += f", power cap in {capped:.0%} of samples"
        if least is None and share <= spec.limits.max_power_share_of_limit:
            return say.unlearned(reason, share, readings.rig)
        return _share(say, spec, share, capped, reason)

    return each_card(say, spec, readings, judge)


def _share(say: Say, spec: RigSpec, share: float, capped: float, reason: str) -> CheckVerdict:
    least, most = spec.limits.min_power_share_of_limit or 0.0, spec.limits.max_power_share_of_limit
    if share > most:
        say = replace(say, expected=most, source=spec.source("limits.max_power_share_of_limit"))
        fix = "its limit does not hold, or its power sensor is wrong: compare the wall meter; VBIOS, then RMA"
        return say.failed(f"{reason}; at most {most:.0%} are expected", share, fix)
    if share >= least or (capped >= _CAPPED_SHARE and share >= least - _CAPPED_BELOW):
        return say.passed(reason, share)
    fix = "see throttle reasons and temperature first; then power cables, and gpu-burn's own rate"
    return say.failed(f"{reason}; at least {least:.0%} were expected", share, fix)


def wall(spec: RigSpec, readings: Readings, profile: ProfileSpec) -> list[CheckVerdict]:
    """The power at the wall is what this class draws under each load: more is a fault as well as less."""
    say = Say("power.wall", unit="W")
    limits = {"gpu_burn": spec.limits.wall_power_gpu_burn_w, "all_burn": spec.limits.wall_power_all_burn_w}
    steps = [step for step in load.gpu_steps(profile) if limits[step] is not None]
    if spec.wall_meter is None or not steps:
        why = "the spec names no wall meter" if spec.wall_meter is None else "the spec sets no wall power for this load"
        return [say.skipped(why)]
    return [_wall(spec, readings, step, limits[step] or 0.0) for step in steps]


def _wall(spec: RigSpec, readings: Readings, step: str, nominal: float) -> CheckVerdict:
    tolerance = spec.limits.wall_power_tolerance_share
    low, high = nominal * (1 - tolerance), nominal * (1 + tolerance)
    key = f"limits.wall_power_{step}_w"
    say = Say("power.wall", step, f"{low:.0f}–{high:.0f}", "W", spec.source(key))
    samples = load.last_third(load.all_busy(readings, step))
    watts = [sample.wall_power_w for sample in samples if sample.wall_power_w is not None]
    if len(samples) < load.FEWEST:
        return say.error(*load.why_no_load(readings, step))
    if cut := load.cut_short(readings, step):
        return say.error(f"nothing settled: {cut.reason}", cut.fix)
    if len(watts) < max(load.FEWEST, at_wall.FEWEST_SHARE * len(samples)):
        return unread(say, spec, readings, samples, len(watts))
    if doubt := at_wall.doubt(readings, step):
        return unbelieved(say, spec, doubt)
    found = load.mean(watts)
    reason = f"{found:.0f} W at the wall in the last third of step {step}, {low:.0f} to {high:.0f} W are expected"
    if low <= found <= high:
        return say.passed(reason, found)
    too_little = "something draws less than it should: compare each card's power and rate"
    too_much = "compare the cards' own power: supply losses, or another device on the meter"
    return say.failed(reason, found, too_little if found < low else too_much)


def unbelieved(say: Say, spec: RigSpec, doubt: str) -> CheckVerdict:
    """Say that a meter was read and cannot be believed."""
    if spec.wall_meter is not None and not spec.wall_meter.required:
        return say.blind(doubt)
    fix = "look at the meter's own display, and restart it; does it feed this rig alone, and in watts?"
    return say.error(doubt, fix)


def unread(say: Say, spec: RigSpec, readings: Readings, samples: list[Sample], count: int) -> CheckVerdict:
    """Say that a meter was read too seldom: `count` times in `samples`."""
    meter = spec.wall_meter
    said = next((sample.wall_error for sample in reversed(samples) if sample.wall_error), None)
    if meter is not None and meter.asked is None:
        reason = f"the wall meter has no {'address' if meter.key == 'url' else meter.key}"
        fix = f"set rig_spec_host.wall_meter.{meter.key} in host_vars/{readings.rig}/"
    else:
        asked = (meter.asked if meter is not None else None) or "it"
        reason = f"the wall meter was read in {count} of {len(samples)} samples" + (f": {said}" if said else "")
        fix = f"is the meter on, and can {readings.rig} reach {asked if isinstance(asked, str) else ' '.join(asked)}?"
    return say.error(reason, fix) if meter is None or meter.required else say.blind(reason)
