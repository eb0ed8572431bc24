"""Cooling: how well heat gets from each card to water or room, normalised, so that winter passes no bad cooling.

The resistance in °C/W does not depend on how warm the room is: against a coolant sensor where the rig has one, else
against a room sensor, else against the card's own temperature and power at rest before the load.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from rigctl.checks import load
from rigctl.checks.cards import cards, each_card, why_no_card
from rigctl.checks.curve import BELIEVED_C, REST, Curve, at_rest, read_curve
from rigctl.checks.say import Say
from rigctl.model.verdict import CheckVerdict, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from rigctl.model.baseline import Baseline
    from rigctl.model.reading import GpuFacts, Readings, Sample
    from rigctl.model.spec import ProfileSpec, RigSpec

STEP = "gpu_burn"
_HEAT_PATH = "cold plate or heat sink of this card: seating, paste, dust; all cards alike: pump, radiator, fans, air"
_LEAST_W = 50.0
"""A card that draws less than this above its rest shows no resistance, W: the sensor's whole degrees are too coarse."""
_COOLING_DOWN_C = 1.5
"""A card that loses more than this while it is at rest was still warm from earlier work, °C."""
RESISTANCE = "thermals.resistance"


class Against(NamedTuple):
    """What a resistance is measured against."""

    unit: str
    key: str
    """The limit in the spec."""
    temp_c: float
    power_w: float
    """What the card drew there, W: 0 for a sensor, which stays what it is when a card rests."""


def resistance(spec: RigSpec, readings: Readings, baseline: Baseline | None) -> list[CheckVerdict]:
    """Judge the thermal resistance of each card, against the spec and the rig's newest accepted run."""
    say = Say(RESISTANCE, "rig", None, "°C/W", "")

    def judge(gpu: GpuFacts, say: Say) -> CheckVerdict:
        curve = read_curve(readings, STEP, gpu.uuid)
        if not isinstance(curve, Curve):
            return say.error(*curve)
        cut, measured = load.cut_short(readings, STEP), _measured(say, readings, gpu, curve)
        if isinstance(measured, CheckVerdict):
            return measured if cut is None else say.error(*cut)
        against, found = measured
        limit: float | None = getattr(spec.limits, against.key)
        say = Say(say.check, say.subject, limit, against.unit, spec.source(f"limits.{against.key}"))
        by_spec = _of_spec(say, readings, curve, found)
        by_history = _of_baseline(say, gpu, found, spec.limits.max_gpu_c_per_w_rise_share, baseline)
        if cut is not None:
            return _stopped(curve, by_spec, by_history) or say.error(*cut)
        return (
            by_spec
            or by_history
            or (say.unlearned(_figure(found, say), found, readings.rig) if limit is None else None)
            or say.passed(_figure(found, say), found)
        )

    return each_card(say, spec, readings, judge)


def _measured(say: Say, readings: Readings, gpu: GpuFacts, curve: Curve) -> tuple[Against, float] | CheckVerdict:
    """Return what the card was measured against and its °C/W, or the verdict that neither is known."""
    power_w = settled_power_w(readings, gpu.uuid)
    if power_w is None:
        return say.error("no power of the card was read in the burn", f"see telemetry of {readings.rig}")
    against = _against(readings, gpu.uuid)
    if isinstance(against, str):
        return say.warned(f"not judged: {against}", None, "longer idle_seconds in the profile, on a rig at rest")
    drawn_w = power_w - against.power_w
    if drawn_w < _LEAST_W:
        return say.error(f"the card drew only {drawn_w:.0f} W more than at rest", "see power.share_of_limit")
    return against, (curve.settled_c - against.temp_c) / drawn_w


def _stopped(curve: Curve, *judged: CheckVerdict | None) -> CheckVerdict | None:
    """What failed in a burn that was stopped while the card still got warmer: it would have come to more than that."""
    if curve.rise_c < 0:
        return None
    return next((one for one in judged if one is not None and one.verdict is Verdict.FAIL), None)


def settled_power_w(readings: Readings, uuid: str) -> float | None:
    """Return a card's mean power in the burn's last third, W; None where too few samples show it."""
    busy = load.last_third(load.loaded(readings, STEP, uuid))
    powers = [one.gpu.power_w for one in busy if one.gpu.power_w is not None]
    return load.mean(powers) if len(powers) >= load.FEWEST else None


def _of_spec(say: Say, readings: Readings, curve: Curve, found: float) -> CheckVerdict | None:
    """What the spec says against the card; a card that is too warm already need not have settled."""
    limit = say.expected
    if isinstance(limit, float | int) and found > limit:
        reason = f"{_figure(found, say)}, at most {limit:g} was expected: heat does not get away"
        return say.failed(reason, found, _HEAT_PATH)
    if not curve.steady:
        fix = f"a longer gpu_burn_seconds in the profile of {readings.rig}"
        return say.warned("not judged: the burn ended before the card had settled", None, fix)
    return None


def _of_baseline(say: Say, gpu: GpuFacts, found: float, most: float, baseline: Baseline | None) -> CheckVerdict | None:
    """What the rig's own history says, where it has any: `most` is how far a figure may be above it."""
    known = known_resistance(baseline, gpu.uuid, say.unit)
    if known is None or baseline is None:
        return None
    share = found / known - 1
    reason = f"{_figure(found, say)}, {share:+.0%} against {known:.4f} in the rig's accepted run"
    if share > most:
        own = Say(say.check, say.subject, round(known * (1 + most), 4), say.unit, f"accepted run {baseline.run_id}")
        return own.failed(reason, found, f"what changed since {baseline.ended_at[:10]}? {_HEAT_PATH}")
    return say.passed(reason, found)


def _figure(found: float, say: Say) -> str:
    return f"{found:.4f} {say.unit}"


def known_resistance(baseline: Baseline | None, uuid: str, unit: str | None) -> float | None:
    """Return what the accepted run found, where it measured against the same thing."""
    for figure in baseline.figures if baseline is not None else ():
        if (figure.check, figure.subject, figure.unit) == (RESISTANCE, uuid, unit) and figure.found > 0:
            return figure.found
    return None


def _against(readings: Readings, uuid: str) -> Against | str:
    """What to measure against, or in words why there is nothing."""
    settled = load.last_third(load.all_busy(readings, STEP))
    for name, key, of in (
        ("coolant", "max_gpu_c_per_w_coolant", lambda s: s.coolant_temps_c),
        ("room", "max_gpu_c_per_w", lambda s: s.room_temps_c),
    ):
        temp_c = _mean_of(settled, of)
        if temp_c is not None:
            return Against(f"°C/W over the {name}", key, temp_c, 0.0)
    return _own_rest(readings, uuid)


def _mean_of(samples: list[Sample], of: Callable[[Sample], dict[str, float]]) -> float | None:
    """Mean of all such sensors, °C; None where less than half of the samples show any."""
    found = [load.mean(list(temps.values())) for sample in samples if (temps := of(sample))]
    return load.mean(found) if len(found) >= max(load.FEWEST, len(samples) / 2) else None


def _own_rest(readings: Readings, uuid: str) -> Against | str:
    resting = [one for one in at_rest(readings, uuid) if one.gpu.power_w is not None]
    temps = [one.gpu.temp_c for one in resting if one.gpu.temp_c is not None]
    powers = [one.gpu.power_w for one in resting if one.gpu.power_w is not None]
    if len(temps) < load.FEWEST:
        return "no sensor shows coolant or room, and the card was not seen at rest"
    half = len(temps) // 2 or 1
    if load.mean(temps[:half]) - load.mean(temps[-half:]) > _COOLING_DOWN_C:
        return "the card was still cooling down from earlier work"
    return Against("°C/W over its own rest", "max_gpu_c_per_w", load.mean(temps), load.mean(powers))


def card_spread(spec: RigSpec, readings: Readings) -> list[CheckVerdict]:
    """Judge how much warmer than its twins each card settles."""
    key = "limits.max_gpu_temp_spread_c"
    limit = spec.limits.max_gpu_temp_spread_c
    say = Say("thermals.card_spread", "rig", limit, "°C", spec.source(key))
    if spec.parts.gpu_count < 2:  # noqa: PLR2004 - one card has no twin
        return [say.skipped("the spec names one card, which has no twin")]
    if limit is None:
        return [say.skipped("the spec sets no limit for the spread between cards")]
    curves = {gpu.uuid: read_curve(readings, STEP, gpu.uuid) for gpu in cards(readings)}
    settled = {uuid: curve.settled_c for uuid, curve in curves.items() if isinstance(curve, Curve)}

    def judge(gpu: GpuFacts, say: Say) -> CheckVerdict:
        own = curves[gpu.uuid]
        others = [c for uuid, c in settled.items() if uuid != gpu.uuid]
        if not isinstance(own, Curve):
            return say.error(*own)
        if not others:
            return say.error("no other card settled to compare with", "see the other cards' verdicts")
        twins_c = median(others)
        warmer = own.settled_c - twins_c
        reason = f"{own.settled_c:.1f} °C, the others {twins_c:.1f} °C"
        if warmer > limit:
            return say.failed(f"{reason}: {warmer:.1f} °C warmer, at most {limit:g} was expected", warmer, _HEAT_PATH)
        if cut := load.cut_short(readings, STEP):
            return say.error(*cut)
        return say.passed(reason, warmer)

    return each_card(say, spec, readings, judge)


def rest_temp(spec: RigSpec, readings: Readings, profile: ProfileSpec) -> list[CheckVerdict]:
    """Judge the room: its sensor, or else the coolest card at rest, than which no room is warmer."""
    limit = spec.limits.max_rest_temp_c
    say = Say("thermals.rest_temp", "rig", limit, "°C", spec.source("limits.max_rest_temp_c"))
    if limit is None:
        return [say.skipped("the spec sets no limit for room or rest")]
    coolest = _coolest(readings)
    if coolest is None:
        return [_nothing_at_rest(say, readings, profile)]
    what, room_c = coolest
    return [_judge_rest(say, limit, what, room_c)]


def _nothing_at_rest(say: Say, readings: Readings, profile: ProfileSpec) -> CheckVerdict:
    if not cards(readings):
        return say.error(*why_no_card(readings))
    if profile.idle_seconds == 0:
        return say.skipped("the profile takes no time at rest, and no sensor shows the room")
    return say.error("no card was seen at rest", f"see telemetry of {readings.rig} in the run directory")


def _judge_rest(say: Say, limit: float, what: str, room_c: float) -> CheckVerdict:
    reason = f"{room_c:.1f} °C at rest ({what})"
    if not BELIEVED_C[0] < room_c < BELIEVED_C[1]:
        return say.error(reason, "a sensor that says so is broken")
    if room_c > limit:
        fix = "room or intake air is too warm, or the rig had no rest: air conditioning, exhaust, then accept it again"
        return say.failed(f"{reason}, at most {limit:g} was expected", room_c, fix)
    return say.passed(reason, room_c)


def _coolest(readings: Readings) -> tuple[str, float] | None:
    """What shows the room before any load, and its temperature, °C; None where nothing does."""
    resting = [sample for sample in readings.samples if sample.step in REST]
    room_c = _mean_of(resting, lambda sample: sample.room_temps_c)
    if room_c is not None:
        return "the room's sensor", room_c
    known = []
    for gpu in cards(readings):
        temps = [one.gpu.temp_c for one in at_rest(readings, gpu.uuid) if one.gpu.temp_c is not None]
        if len(temps) >= load.FEWEST:
            known.append((gpu.subject, load.mean(temps)))
    return min(known, key=lambda one: one[1], default=None)
