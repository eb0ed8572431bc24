"""Fans and pumps: whether they turn, as fast as they did, whether a tachometer can be believed, and how loud it is.

NVML tells what is asked of a card's fans, not what they do; only a tachometer does. 0 % is right on cards that rest
their fans, and on cards that water cools.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from rigctl.checks import load
from rigctl.checks.cards import cards, each_card, why_no_card
from rigctl.checks.curve import REST
from rigctl.checks.say import Say

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rigctl.model.baseline import Baseline
    from rigctl.model.reading import GpuFacts, Readings, Sample
    from rigctl.model.spec import RigSpec
    from rigctl.model.verdict import CheckVerdict

STEP = "gpu_burn"
_CHECK = "thermals.fans"
_MOST_RPM = 30_000
"""Faster than any fan or pump of a rig; a tachometer that says more counts noise."""
_MOST_PCT = 150
"""Some cards drive their fans beyond what they call 100 %."""
_ALIVE_SAMPLES = 20
"""A tachometer counts pulses of something that turns: so many samples of one and the same figure are none."""
_ASKED_MORE_PCT = 15
"""So much more asked of a fan must show on its tachometer."""
_PUMP = re.compile(r"pump", re.IGNORECASE)
_LEAST_OF_KNOWN = 0.7
"""A pump that turns slower than this share of what it did in the accepted run has lost flow. Fans are not held against
their history: a cooler room lets them turn slower, and that is right."""
_TURN = "plug, then bearing: replace the fan or pump; a pump also for air in the loop"
_TACHOMETER = "the tachometer's wire or the controller that reads it; look whether the fan turns"


class Tachometer(NamedTuple):
    """What one tachometer said."""

    name: str
    """As in the verdict: the card's subject, or the sensor's `CHIP LABEL`."""
    key: str
    """As in the baseline: the card's UUID, or the sensor's name."""
    rest: list[int]
    burn: list[int]
    asked_pct: list[int]
    """What was asked of it in rest and burn; empty where nobody tells."""
    expected: int | None
    """What the spec asks of it, rpm."""

    @property
    def settled(self) -> float:
        """Mean of the burn's last third, rpm."""
        third = self.burn[len(self.burn) * 2 // 3 :]
        return load.mean(third)


def fans(spec: RigSpec, readings: Readings, baseline: Baseline | None) -> list[CheckVerdict]:
    """Judge every tachometer of the rig; a header that never turned and that nobody asks for has no fan."""
    say = Say(_CHECK, "rig", "turning", "rpm", "its own tachometer")
    if not cards(readings):
        return [say.error(*why_no_card(readings))]
    burn = load.all_busy(readings, STEP)
    if len(burn) < load.FEWEST:
        return [say.error(*load.why_no_load(readings, STEP))]
    asked = spec.cooling.min_rpm if spec.cooling is not None else {}
    known = {figure.subject: figure.found for figure in baseline.figures if figure.check == _CHECK} if baseline else {}
    found = [one for one in _tachometers(readings, burn, asked) if _counts(one, known)]
    missing = [name for name in (*asked, *known) if name not in {one.key for one in found}]
    verdicts = [_judge(say.of(one.name), one, known.get(one.key), readings.rig) for one in found]
    verdicts += [_gone(say.of(_name(readings, key)), key) for key in dict.fromkeys(missing)]
    if not verdicts:
        return [say.blind("no tachometer of fans or pump can be read; NVML tells only what is asked of a fan")]
    return verdicts


def _counts(one: Tachometer, known: dict[str, float]) -> bool:
    """Whether there is a fan behind it: it turned, is asked to, or did so in the accepted run."""
    return any(one.rest + one.burn) or one.expected is not None or bool(one.asked_pct) or one.key in known


def _judge(say: Say, one: Tachometer, known: float | None, rig: str) -> CheckVerdict:
    if len(one.burn) < load.FEWEST:
        return say.error(f"{len(one.burn)} samples of the burn show it", f"see telemetry of {rig}")
    if lie := _lie(one):
        return say.error(lie, _TACHOMETER)
    settled = one.settled
    if settled == 0 and one.asked_pct and not any(one.asked_pct):
        return say.passed("nothing is asked of it, and it rests", 0.0)
    if settled == 0:
        return say.failed("it stands still under load", 0.0, _TURN)
    return _too_slow(say, one, known) or say.passed(f"{settled:.0f} rpm under load", settled)


def _too_slow(say: Say, one: Tachometer, known: float | None) -> CheckVerdict | None:
    """What spec or history say against its speed, if anything."""
    settled = one.settled
    if one.expected is not None and settled < one.expected:
        least = Say(say.check, say.subject, one.expected, say.unit, "cooling.min_rpm of the spec")
        return least.failed(f"{settled:.0f} rpm under load, at least {one.expected} were expected", settled, _TURN)
    if known is not None and _PUMP.search(one.name) and settled < known * _LEAST_OF_KNOWN:
        least = Say(say.check, say.subject, round(known * _LEAST_OF_KNOWN), say.unit, "the rig's newest accepted run")
        return least.failed(f"{settled:.0f} rpm under load, it was {known:.0f} in the accepted run", settled, _TURN)
    return None


def _lie(one: Tachometer) -> str | None:
    """Why the tachometer cannot be believed, if it cannot."""
    everything = one.rest + one.burn
    if any(not 0 <= rpm <= _MOST_RPM for rpm in everything):
        return f"it says {max(everything, key=abs)} rpm, which nothing in a rig does"
    if len(everything) < _ALIVE_SAMPLES or set(everything) == {0} or len(set(everything)) > 1:
        return None
    swing = max(one.asked_pct) - min(one.asked_pct) if one.asked_pct else 0
    if swing >= _ASKED_MORE_PCT:
        return f"{everything[0]} rpm in every sample, while what was asked of it moved by {swing} %"
    if not one.asked_pct:
        return (
            f"{everything[0]} rpm in each of {len(everything)} samples, at rest and under load: nothing turns so evenly"
        )
    return None


def _gone(say: Say, key: str) -> CheckVerdict:
    return say.error(f"no tachometer {key} can be read on the rig", "is its controller plugged in, its driver loaded?")


def _name(readings: Readings, key: str) -> str:
    return next((gpu.subject for gpu in cards(readings) if gpu.uuid == key), key)


def _tachometers(readings: Readings, burn: list[Sample], asked: dict[str, int]) -> Iterable[Tachometer]:
    rest = [sample for sample in readings.samples if sample.step in REST]
    names = dict.fromkeys(name for sample in (*rest, *burn) for name in sample.fans_rpm)
    for name in names:
        shown = [[s.fans_rpm[name] for s in samples if name in s.fans_rpm] for samples in (rest, burn)]
        yield Tachometer(name, name, shown[0], shown[1], [], asked.get(name))
    for gpu in cards(readings):
        at = [
            [g for s in samples for g in s.gpus if g.uuid == gpu.uuid and g.error is None] for samples in (rest, burn)
        ]
        rpm = [[g.fan_rpm for g in some if g.fan_rpm is not None] for some in at]
        if any(rpm):
            pct = [g.fan_pct for some in at for g in some if g.fan_pct is not None]
            yield Tachometer(gpu.subject, gpu.uuid, rpm[0], rpm[1], pct, asked.get(gpu.uuid))


def fan_speed(spec: RigSpec, readings: Readings) -> list[CheckVerdict]:
    """How fast each card's fans are asked to turn while it settles: the nearest thing to noise that can be read."""
    limit = spec.limits.max_fan_pct
    say = Say("thermals.fan_speed", "rig", limit, "%", spec.source("limits.max_fan_pct"))

    def judge(gpu: GpuFacts, say: Say) -> CheckVerdict:
        busy = load.loaded(readings, STEP, gpu.uuid)
        if len(busy) < load.FEWEST:
            return say.error(*load.why_no_load(readings, STEP))
        asked = [one.gpu.fan_pct for one in load.last_third(busy) if one.gpu.fan_pct is not None]
        if len(asked) < load.FEWEST:
            return say.blind(f"NVML shows no fan on {gpu.name}")
        if any(not 0 <= pct <= _MOST_PCT for pct in asked):
            return say.error(f"{max(asked, key=abs)} % are asked of its fans", "no fan can be asked for that: reboot")
        return _loudness(say, readings, limit, load.mean(asked))

    return each_card(say, spec, readings, judge)


def _loudness(say: Say, readings: Readings, limit: float | None, found: float) -> CheckVerdict:
    reason = f"{found:.0f} % asked of its fans" if found else "its fans are asked for nothing"
    if limit is None:
        return say.skipped(f"the spec sets no limit for noise ({reason})")
    if found > limit:
        fix = "dust, air that comes back, the room; or a limit that this cooler cannot keep"
        return say.failed(f"{reason}, at most {limit:g} was expected", found, fix)
    if cut := load.cut_short(readings, STEP):
        return say.error(*cut)
    return say.passed(reason, found)
