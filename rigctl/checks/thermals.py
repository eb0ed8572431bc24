"""Heat: what the cards and the CPU settle at, and whether heat (or power) held the cards back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rigctl.checks import load
from rigctl.checks.cards import ABSENT, each_card
from rigctl.checks.say import Say

if TYPE_CHECKING:
    from rigctl.model.reading import GpuFacts, Readings
    from rigctl.model.spec import ProfileSpec, RigSpec
    from rigctl.model.verdict import CheckVerdict

_COOLING = "check the pump, then the cold plate's seating, then fans, coolant and room temperature"

BAD_THROTTLE = {
    0x8: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
}
"""NVML's clocks throttle (event) reasons that are a fault under load; a mask, so bits are tested.

The software power cap (0x4) is normal in a burn that reaches its limit.
"""


def settled_gpu_temp(spec: RigSpec, readings: Readings) -> list[CheckVerdict]:
    """The mean core temperature of each card in the last third of the GPU burn."""
    key = "limits.max_settled_gpu_temp_c"
    say = Say("thermals.settled_gpu_temp", "rig", spec.limits.max_settled_gpu_temp_c, "°C", spec.source(key))

    def judge(gpu: GpuFacts, say: Say) -> CheckVerdict:
        limit = spec.limits.max_settled_gpu_temp_c
        if gpu.slowdown_temp_c is not None and (limit is None or gpu.slowdown_temp_c < limit):
            limit = gpu.slowdown_temp_c
            say = Say(say.check, say.subject, limit, say.unit, "the card's own slowdown temperature")
        busy = load.loaded(readings, "gpu_burn", gpu.uuid)
        temps = [one.gpu.temp_c for one in load.last_third(busy) if one.gpu.temp_c is not None]
        if len(temps) < load.FEWEST:
            return say.error(*load.why_no_load(readings, "gpu_burn"))
        settled = load.mean(temps)
        hottest = max(one.gpu.temp_c for one in busy if one.gpu.temp_c is not None)
        reason = f"{settled:.1f} °C in the burn's last third, {hottest:.0f} °C at most"
        if limit is not None and settled > limit:
            return say.failed(f"{reason}; the limit is {limit:g} °C", settled, _COOLING)
        if cut := load.cut_short(readings, "gpu_burn"):
            return say.error(f"nothing settled: {cut.reason}", cut.fix)
        if spec.limits.max_settled_gpu_temp_c is None:
            return say.unlearned(reason, settled, readings.rig)
        return say.passed(reason, settled)

    return each_card(say, spec, readings, judge)


def throttle(spec: RigSpec, readings: Readings, profile: ProfileSpec) -> list[CheckVerdict]:
    """How much of the load each card was held back by a fault: heat, hardware slowdown, power brake."""
    most = spec.limits.max_bad_throttle_share
    say = Say("thermals.throttle", expected=most, unit="share", source=spec.source("limits.max_bad_throttle_share"))

    def judge(gpu: GpuFacts, say: Say) -> CheckVerdict:
        steps = load.gpu_steps(profile)
        busy = [one.gpu for step in steps for one in load.loaded(readings, step, gpu.uuid)]
        if not busy:
            return say.error(*load.why_no_load(readings, steps[0]))
        masks = [one.throttle for one in busy if one.throttle is not None]
        if not masks:
            return say.blind("this card or driver does not tell why it throttles")
        if len(masks) < load.FEWEST:
            return say.error(
                f"only {len(masks)} of {len(busy)} loaded samples tell it", f"see {readings.rig}'s telemetry"
            )
        bad = [mask for mask in masks if any(mask & bit for bit in BAD_THROTTLE)]
        share = len(bad) / len(masks)
        names = [name for bit, name in BAD_THROTTLE.items() if any(mask & bit for mask in bad)]
        if share > most:
            reason = f"{', '.join(names)} in {share:.0%} of {len(masks)} loaded samples"
            return say.failed(reason, share, _remedy(bad))
        return say.passed(
            f"no fault held it back in {len(masks)} loaded samples"
            if not bad
            else f"{', '.join(names)} in {share:.1%}, within the limit",
            share,
        )

    return each_card(say, spec, readings, judge)


def _remedy(bad: list[int]) -> str:
    if any(mask & 0x80 for mask in bad):
        return "power supply or its cables to the card: power brake was signalled; one cable per connector"
    return _COOLING


def cpu_temp(spec: RigSpec, readings: Readings, profile: ProfileSpec) -> list[CheckVerdict]:
    """The CPU's highest temperature in the steps that burn it."""
    limit = spec.limits.max_cpu_temp_c
    say = Say("thermals.cpu_temp", "rig", limit, "°C", spec.source("limits.max_cpu_temp_c"))
    if limit is None:
        return [say.skipped("the spec sets no limit for the CPU")]
    steps = [step for step in ("cpu_burn", "all_burn") if load.asked_seconds(profile, step) > 0]
    samples = [sample for step in steps for sample in readings.of_step(step)]
    temps = [sample.cpu_temp_c for sample in samples if sample.cpu_temp_c is not None]
    hottest = max(temps, default=None)
    if hottest is None or (hottest <= limit and len(temps) < max(load.FEWEST, len(samples) / 2)):
        fix = f"rigctl provision {readings.rig} --tags cpu_burn; then `sensors` there must show the CPU"
        reason = f"{len(temps)} of {len(samples)} samples show a CPU temperature"
        return [say.error(reason, fix) if samples else say.error(*load.why_no_load(readings, steps[0]))]
    if hottest > limit:
        fix = "check the CPU cooler's pump or fan, its seating and paste"
        return [say.failed(f"the CPU reached {hottest:.0f} °C, the limit is {limit:g} °C", hottest, fix)]
    whys = [load.cut_short(readings, step) for step in steps]
    whys += [load.why_no_load(readings, step) for step in steps if not readings.of_step(step)]
    if why := next(filter(None, whys), None):
        return [say.error(*why)]
    return [say.passed(f"the CPU reached {hottest:.0f} °C", hottest)]


def hotspot_temp(spec: RigSpec, readings: Readings) -> list[CheckVerdict]:
    """The hot spot of each die: NVML shows it for no GeForce, and for no other card that we know."""
    say = Say("thermals.hotspot_temp", unit="°C")

    def judge(gpu: GpuFacts, say: Say) -> CheckVerdict:
        return say.blind(f"NVML does not show a hot spot on {gpu.name}")

    return [v for v in each_card(say, spec, readings, judge) if v.subject != ABSENT]
