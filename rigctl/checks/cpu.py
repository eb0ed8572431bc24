"""The processor under its burn: whether it keeps the clock that it should.

The clock is measured where it settles: a processor may run faster in the first half minute than it may for ever.
"""

from __future__ import annotations

import math
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from rigctl.checks import load
from rigctl.checks.say import Say

if TYPE_CHECKING:
    from rigctl.model.baseline import Baseline
    from rigctl.model.reading import Readings, Sample
    from rigctl.model.spec import ProfileSpec, RigSpec
    from rigctl.model.verdict import CheckVerdict

STEPS = ("cpu_burn", "all_burn")
BELIEVED_MHZ = (100.0, 10_000.0)
"""No core that works is outside this."""
NOMINAL_SHARE = 0.98
"""Clocks are means of what was measured, and a spread spectrum takes half a percent."""
ACCEPTED_SHARE = 0.93
"""A processor of a rig keeps within 7 % of what it showed when the rig was accepted."""


class _Limit(NamedTuple):
    mhz: float
    source: str


def clock(spec: RigSpec, readings: Readings, profile: ProfileSpec, baseline: Baseline | None) -> list[CheckVerdict]:
    """Mean clock of the cores in the last third of the CPU burn; of the burn of everything where there is no other."""
    step = next(one for one in STEPS if load.asked_seconds(profile, one) > 0)
    # Burns of other lengths settle at other clocks: only the same one is compared with.
    subject = f"{step} of {load.asked_seconds(profile, step):g} s"
    limit = _limit(spec, readings, baseline, subject)
    say = Say("throughput.cpu_clock", subject, limit and limit.mhz, "MHz", limit.source if limit else "")
    samples = readings.of_step(step)
    if not samples:
        return [say.error(*load.why_no_load(readings, step))]
    known = [one for one in samples if one.cpu_mhz is not None]
    if not known:
        return [_not_shown(say, spec, readings)]
    if _stuck(readings):
        reason = f"the clock stood at {known[0].cpu_mhz:g} MHz at rest and under load: it is not measured"
        return [say.error(reason, f"`cat /sys/devices/system/cpu/cpu0/cpufreq/scaling_driver` on {readings.rig}")]
    if any(two.t_mono_s <= one.t_mono_s for one, two in pairwise(known)):
        return [say.error("the samples are out of order in time", f"see measure.telemetry of {readings.rig}")]
    ended_s = _ended_s(readings, step)
    burnt = [one for one in known if one.t_mono_s <= ended_s]
    busy = load.last_third([one for one in burnt if one.cpu_util_pct is None or one.cpu_util_pct >= load.BUSY_PCT])
    if len(busy) < load.FEWEST or len(known) < len(samples) / 2:
        reason = f"{len(busy)} samples of the burn's last third show the clock of a busy processor"
        return [say.error(reason, f"look at telemetry.jsonl of {readings.rig} in the run directory")]
    return [_judge(say, spec, readings, step, busy)]


def _ended_s(readings: Readings, step: str) -> float:
    """When the processor's own load ended: that of the cards goes on after it, and the clock comes down."""
    exits = load.events(readings, "load_exited", step)
    return min((one.t_mono_s for one in exits if one.detail.get("load") == "cpu"), default=math.inf)


def _limit(spec: RigSpec, readings: Readings, baseline: Baseline | None, subject: str) -> _Limit | None:
    """The spec's limit; else the tighter one of what the maker promises and what the rig itself has shown."""
    asked = spec.limits.min_cpu_mhz
    if asked is not None:
        return _Limit(asked, spec.source("limits.min_cpu_mhz"))
    limits = []
    nominal = readings.facts.cpu_nominal_mhz if readings.facts is not None else None
    if nominal is not None and BELIEVED_MHZ[0] <= nominal <= BELIEVED_MHZ[1]:
        limits.append(
            _Limit(nominal * NOMINAL_SHARE, f"{NOMINAL_SHARE:.0%} of the processor's nominal {nominal:,.0f} MHz")
        )
    shown = baseline.figure("throughput.cpu_clock", subject) if baseline is not None else None
    if shown is not None:
        limits.append(_Limit(shown * ACCEPTED_SHARE, f"{ACCEPTED_SHARE:.0%} of {shown:,.0f} MHz in the accepted run"))
    return max(limits, default=None)


def _not_shown(say: Say, spec: RigSpec, readings: Readings) -> CheckVerdict:
    why = readings.facts.missing.get("cpu_mhz") if readings.facts is not None else None
    if spec.limits.min_cpu_mhz is not None or why is None:
        return say.error(
            f"no sample shows the processor's clock{f': {why}' if why else ''}",
            f"`ls /sys/devices/system/cpu/cpu0/cpufreq` on {readings.rig}; take the limit out of the spec of a rig "
            "that cannot tell it",
        )
    return say.blind(why)


def _stuck(readings: Readings) -> bool:
    """Whether rest and load show one and the same clock to the last digit: nothing that is measured does."""
    rest = {one.cpu_mhz for one in readings.samples if one.step not in STEPS and one.cpu_mhz is not None}
    work = {one.cpu_mhz for step in STEPS for one in readings.of_step(step) if one.cpu_mhz is not None}
    return len(rest) == 1 and rest == work


def _judge(say: Say, spec: RigSpec, readings: Readings, step: str, busy: list[Sample]) -> CheckVerdict:
    clocks = [one.cpu_mhz for one in busy if one.cpu_mhz is not None]
    if odd := [mhz for mhz in clocks if not BELIEVED_MHZ[0] <= mhz <= BELIEVED_MHZ[1]]:
        return say.error(f"a sample says {odd[0]:g} MHz", f"look at telemetry.jsonl of {readings.rig}")
    found = median(clocks)
    slowed, reason = _slowed(readings, step), f"{found:,.0f} MHz in the burn's last third"
    heat = f"; it slowed itself down for heat {slowed} times" if slowed else ""
    least = say.expected if isinstance(say.expected, float | int) else None
    if least is not None and found < least:
        return say.failed(f"{reason}, at least {least:,.0f} were expected{heat}", found, _remedy(spec, busy, slowed))
    if cut := load.cut_short(readings, step):
        return say.error(f"nothing settled: {cut.reason}", cut.fix)
    if slowed:
        return say.warned(reason + heat, found, "the cooler's fan or pump, its seating and paste")
    return say.unlearned(reason, found, readings.rig) if least is None else say.passed(reason, found)


def _slowed(readings: Readings, step: str) -> int:
    """How often the processor slowed down for heat in the step, by its own count; 0 where it does not count."""
    counts = [one.cpu_throttles for one in readings.of_step(step) if one.cpu_throttles is not None]
    return max(0, counts[-1] - counts[0]) if counts else 0


def _remedy(spec: RigSpec, busy: list[Sample], slowed: int) -> str:
    """Heat where the processor says so or is near its limit; else something holds a cool processor back."""
    hottest = max((one.cpu_temp_c for one in busy if one.cpu_temp_c is not None), default=None)
    limit = spec.limits.max_cpu_temp_c
    if slowed or (hottest is not None and limit is not None and hottest > limit):
        return "the cooler's fan or pump, its seating and paste"
    return "power limit, governor and energy profile (BIOS, tuned, TLP); then the board's voltage regulators, supply"
