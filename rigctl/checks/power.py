"""Power: the asked limit is set, the cards reach it, and the wall agrees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rigctl.checks import load
from rigctl.checks import wall as at_wall
from rigctl.checks.cards import ABSENT, each_card
from rigctl.checks.say import Say

if TYPE_CHECKING:
    from rigctl.model.reading import GpuFacts, Readings, Sample
    from rigctl.model.spec import ProfileSpec, RigSpec
    from rigctl.model.verdict import CheckVerdict

_ROUNDING_W = 1.0
"""Limits are set in whole watts."""
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
        if gpu.power_max_w is not None and expected > gpu.power_max_w + _ROUNDING_W:
            reason = f"{expected:g} W were asked for, this board allows {gpu.power_max_w:g} W at most"
            return say.failed(reason, gpu.power_limit_w, "correct nvidia_driver_power_limit_w, or the board differs")
        seen = [gpu.power_limit_w, *_limits_seen(readings, gpu.uuid)]
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


def share_of_limit(spec: RigSpec, readings: Readings) -> list[CheckVerdict]:
    """Each card draws most of its limit in the burn's last third: a card that cannot is held back by something."""
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
        share = load.mean(watts) / bound
        reason = f"{load.mean(watts):.0f} W of {bound:g} W in the burn's last third ({share:.0%})"
        if least is None:
            return say.unlearned(reason, share, readings.rig)
        if share < least:
            fix = "see throttle reasons and temperature first; then power cables, and gpu-burn's own rate"
            return say.failed(f"{reason}; at least {least:.0%} were expected", share, fix)
        return say.passed(reason, share)

    return each_card(say, spec, readings, judge)


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
        return _unread(say, spec, readings, samples, len(watts))
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


def _unread(say: Say, spec: RigSpec, readings: Readings, samples: list[Sample], count: int) -> CheckVerdict:
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
