"""Heat: what the cards and the CPU settle at, and whether heat (or power) held the cards back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rigctl.checks import load
from rigctl.checks.cards import ABSENT, each_card
from rigctl.checks.curve import BELIEVED_C, STEADY_C, Curve, Spoilt, read_curve
from rigctl.checks.room import settled_limit_c
from rigctl.checks.say import Say
from rigctl.model.verdict import Verdict

if TYPE_CHECKING:
    from rigctl.model.reading import GpuFacts, Readings
    from rigctl.model.spec import ProfileSpec, RigSpec
    from rigctl.model.verdict import CheckVerdict

SETTLES_S = 300
"""A card that has not settled in a burn of so many seconds does not settle: loops take a few minutes."""
MARGIN_C = 5.0
"""A hot spot that settles closer to slowdown than this would be stopped by the guard, °C."""
_LONGER = "a longer gpu_burn_seconds in the profile tells what it settles at"
_HEAT_BUILDS = "heat builds up faster than it gets away: pump and flow, then radiator, fans and the room"
_SEATING = "the cold plate's seating and paste, then everything that cools the card"
_ROOM = "the room or its air: air conditioning, exhaust air that comes back; see thermals.rest_temp"
_COOLING = "check the pump, then the cold plate's seating, then fans, coolant and room temperature"

OTHER_THROTTLE = {0x2: "application clocks", 0x4: "power cap", 0x10: "sync boost", 0x100: "display clocks"}
"""Reasons that are no fault: told with their share of the time, never judged."""
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
    asked, room = settled_limit_c(spec, readings)
    say = Say("thermals.settled_gpu_temp", "rig", asked, "°C", spec.source(key))

    def judge(gpu: GpuFacts, say: Say) -> CheckVerdict:
        limit = asked
        if gpu.slowdown_temp_c is not None and (limit is None or gpu.slowdown_temp_c < limit):
            limit = gpu.slowdown_temp_c
            say = Say(say.check, say.subject, limit, say.unit, "the card's own slowdown temperature")
        curve = read_curve(readings, "gpu_burn", gpu.uuid)
        found = _settled(say, readings, curve, limit, learned=asked is not None)
        return found if not room or limit != asked else _in_this_room(found, spec.limits.max_settled_gpu_temp_c, room)

    return each_card(say, spec, readings, judge)


def _in_this_room(found: CheckVerdict, stated: float | None, room: str) -> CheckVerdict:
    """Say what the room did to the limit; a card that is over the stated one, and well for this room, warns of it."""
    if found.verdict not in (Verdict.PASS, Verdict.FAIL):
        return found
    reason = f"{found.reason} ({room})"
    if found.verdict is Verdict.PASS and isinstance(found.found, int | float) and stated is not None:
        if found.found <= stated:
            return found
        warned = {
            "verdict": Verdict.WARN,
            "reason": f"{reason}: the room is too warm, the cooling is well",
            "fix": _ROOM,
        }
        return found.model_copy(update=warned)
    return found.model_copy(update={"reason": reason})


def _settled(
    say: Say, readings: Readings, curve: Curve | Spoilt | load.NoLoad, limit: float | None, *, learned: bool
) -> CheckVerdict:
    """Judge what one sensor settled at; `learned`: whether the limit is one of people rather than the card's own."""
    if not isinstance(curve, Curve):
        return say.error(*curve)
    settled = curve.settled_c
    reason = f"{settled:.1f} °C in the burn's last third, {curve.hottest_c:.0f} °C at most"
    if limit is not None and settled > limit:
        return say.failed(f"{reason}; the limit is {limit:g} °C", settled, _COOLING)
    if cut := load.cut_short(readings, "gpu_burn"):
        return say.error(f"nothing settled: {cut.reason}", cut.fix)
    return say.passed(reason, settled) if learned else say.unlearned(reason, settled, readings.rig)


def steady_state(spec: RigSpec, readings: Readings, profile: ProfileSpec) -> list[CheckVerdict]:
    """Whether each card's temperature came to rest in the burn: what still rises has settled at nothing yet."""
    source = "twice what a sensor in whole degrees cannot tell, over the burn's last third"
    say = Say("thermals.steady_state", "rig", STEADY_C, "°C", source)
    long_enough = profile.gpu_burn_seconds >= SETTLES_S

    def judge(gpu: GpuFacts, say: Say) -> CheckVerdict:
        curve = read_curve(readings, "gpu_burn", gpu.uuid)
        if not isinstance(curve, Curve):
            return say.error(*curve)
        if cut := load.cut_short(readings, "gpu_burn"):
            return say.error(f"nothing settled: {cut.reason}", cut.fix)
        if curve.steady:
            return say.passed(
                f"steady after {curve.steady_after_s:.0f} of {curve.seconds:.0f} s at {curve.settled_c:.1f} °C",
                curve.rise_c,
            )
        moved = f"moved by {curve.rise_c:+.1f} °C over the burn's last third"
        if not long_enough:
            return say.warned(f"{moved}: the burn was too short to settle", curve.rise_c, _LONGER)
        return say.failed(f"{moved} and did not settle in {curve.seconds:.0f} s", curve.rise_c, _HEAT_BUILDS)

    return each_card(say, spec, readings, judge)


def memory_temp(spec: RigSpec, readings: Readings) -> list[CheckVerdict]:
    """What the memory of each card settles at, where card and driver show it."""
    key = "limits.max_settled_gpu_memory_temp_c"
    asked = spec.limits.max_settled_gpu_memory_temp_c
    say = Say("thermals.memory_temp", "rig", asked, "°C", spec.source(key))

    def judge(gpu: GpuFacts, say: Say) -> CheckVerdict:
        busy = load.loaded(readings, "gpu_burn", gpu.uuid)
        if busy and all(one.gpu.memory_temp_c is None for one in busy):
            return _not_shown(say, required=asked is not None, what=f"the memory's temperature on {gpu.name}")
        limit, own = asked, gpu.memory_max_temp_c
        if own is not None and (limit is None or own < limit):
            limit = own
            say = Say(say.check, say.subject, limit, say.unit, "what the card calls the highest of its memory")
        curve = read_curve(readings, "gpu_burn", gpu.uuid, "memory_temp_c")
        return _settled(say, readings, curve, limit, learned=limit is not None)

    return each_card(say, spec, readings, judge)


def _not_shown(say: Say, *, required: bool, what: str) -> CheckVerdict:
    """Blind; an error where the spec sets a limit for it all the same: then a person counts on it."""
    if required:
        return say.error(f"NVML does not show {what}", "take the limit out of the spec: this card cannot report it")
    return say.blind(f"NVML does not show {what}")


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
        told = _shares(masks, BAD_THROTTLE)
        if share > most:
            return say.failed(f"{told} of {len(masks)} loaded samples", share, _remedy(bad))
        others = _shares(masks, OTHER_THROTTLE)
        reason = f"{told}, within the limit" if bad else f"no fault held it back in {len(masks)} loaded samples"
        return say.passed(reason + (f"; {others}" if others else ""), share)

    return each_card(say, spec, readings, judge)


def _shares(masks: list[int], names: dict[int, str]) -> str:
    """Each reason and the share of samples that show its bit, in words."""
    counts = {name: sum(bool(mask & bit) for mask in masks) for bit, name in names.items()}
    return ", ".join(f"{name} in {count / len(masks):.0%}" for name, count in counts.items() if count)


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
    if bad := _no_temperature(readings, temps):
        return [say.error(bad, f"look at `sensors` on {readings.rig}: the CPU's sensor, or its driver, is wrong")]
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


def _no_temperature(readings: Readings, under_load: list[float]) -> str | None:
    """Say why what the CPU's sensor says is no temperature; None where nothing speaks against it."""
    rest = [sample.cpu_temp_c for sample in readings.of_step("idle") if sample.cpu_temp_c is not None]
    if absurd := [c for c in under_load if not BELIEVED_C[0] < c < BELIEVED_C[1]]:
        return f"{absurd[0]:g} °C in {len(absurd)} of {len(under_load)} samples is no temperature of a CPU"
    if min(len(rest), len(under_load)) >= load.FEWEST and len({*rest, *under_load}) == 1:
        return f"the CPU's sensor says {rest[0]:g} °C at rest and under load alike, in every sample"
    return None


def hotspot_temp(spec: RigSpec, readings: Readings) -> list[CheckVerdict]:
    """How far the hot spot of each die stays from slowing the card down: newer cards and drivers show that much."""
    say = Say("thermals.hotspot_temp", "rig", MARGIN_C, "°C from slowdown", "our proposal: as the guard's own margin")

    def judge(gpu: GpuFacts, say: Say) -> CheckVerdict:
        busy = load.loaded(readings, "gpu_burn", gpu.uuid)
        if all(one.gpu.margin_c is None for one in busy):
            return say.blind(f"NVML does not show a hot spot on {gpu.name}")
        curve = read_curve(readings, "gpu_burn", gpu.uuid, "margin_c")
        if not isinstance(curve, Curve):
            return say.error(*curve)
        reason = f"its hottest spot stays {curve.settled_c:.1f} °C from slowing the card down"
        if curve.settled_c < MARGIN_C:
            return say.failed(f"{reason}, at least {MARGIN_C:g} °C were expected", curve.settled_c, _SEATING)
        if cut := load.cut_short(readings, "gpu_burn"):
            return say.error(f"nothing settled: {cut.reason}", cut.fix)
        return say.passed(reason, curve.settled_c)

    return [v for v in each_card(say, spec, readings, judge) if v.subject != ABSENT]
