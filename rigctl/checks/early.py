"""Whether the verdict of a GPU burn is certain before its time, and when a burn is never ended early. Pure.

Certain means: for each figure that is judged, what it is now and what it can still become by the burn's end lie on the
same side of every limit that it is held against. Nothing here gives a verdict: the checks do, on what was measured.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from rigctl.checks import cooling, load, thermals
from rigctl.checks.burn import Burn, burns
from rigctl.checks.cards import cards
from rigctl.checks.curve import STEADY_C, Curve, read_curve, slope
from rigctl.checks.room import settled_limit_c

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rigctl.model.baseline import Baseline
    from rigctl.model.reading import Facts, GpuFacts, Readings
    from rigctl.model.spec import ProfileSpec, RigSpec
    from rigctl.model.verdict import CheckVerdict

STEP = "gpu_burn"
LEAST_S = 150.0
"""No burn ends before this, seconds: a loop takes a few minutes to warm up."""
WINDOW_S = 90.0
"""How far back the curve is looked at for where it goes, seconds."""
FLAT_C = 0.4
"""What the mean of a third of the window may move for its curve to count as flat, °C: less than the sensor's step."""
DOUBT_C = 0.8
"""What a flat curve may still do, °C."""
DOUBT_SHARE = 0.015
"""What power and rate may still do, as a share of themselves."""
DOUBT_RESISTANCE = 0.03
NEVER = ("full", "soak")
"""Profiles that look for what only shows after a long while."""


def why_not(profile_name: str, profile: ProfileSpec, facts: Facts, baseline: Baseline | None) -> str | None:
    """Say in words why this burn is not ended early; None where it may be."""
    if not profile.early_stop:
        return "the profile does not ask for it"
    if profile_name in NEVER:
        return f"profile {profile_name} never ends a burn early"
    if baseline is None:
        return "the rig was never accepted before"
    return _changed(facts, baseline.facts)


def _changed(now: Facts, then: Facts) -> str | None:
    """What was upgraded or exchanged since the accepted run, if anything."""
    pairs = (
        ("driver", (now.driver.loaded, now.driver.library), (then.driver.loaded, then.driver.library)),
        ("kernel", now.kernel, then.kernel),
        ("BIOS", (now.bios_version, now.board_name), (then.bios_version, then.board_name)),
        ("burner", now.tools.gpu_burn_build, then.tools.gpu_burn_build),
        ("cards", _cards(now), _cards(then)),
    )
    what = [name for name, one, other in pairs if one != other]
    return f"{', '.join(what)} changed since the rig's accepted run" if what else None


def _cards(facts: Facts) -> set[tuple[str, str | None, float | None]]:
    return {(gpu.uuid, gpu.vbios, gpu.power_limit_w) for gpu in facts.gpus}


class Figure(NamedTuple):
    """One judged figure: between what it can be at the burn's end, and what it is held against."""

    name: str
    low: float
    high: float
    limits: tuple[float | None, ...]

    @property
    def certain(self) -> bool:
        """Whether no limit lies within what it can be."""
        return all(limit is None or not self.low <= limit <= self.high for limit in self.limits)


class SoFar(NamedTuple):
    """A burn under way, read once for all cards."""

    spec: RigSpec
    readings: Readings
    baseline: Baseline | None
    left_s: float
    """Seconds of burning that are still to come."""
    burn: Burn | None
    compared: tuple[CheckVerdict, ...]
    """What the checks that compare cards and runs say now."""


def certain(spec: RigSpec, profile: ProfileSpec, readings: Readings, baseline: Baseline | None) -> str | None:
    """Return why the burn's verdict is certain with what was read so far; None while it is not.

    `readings` are those of a burn under way: facts, samples, and the burner's output so far.
    """
    samples = readings.of_step(STEP)
    if not samples or samples[-1].t_mono_s - samples[0].t_mono_s < LEAST_S or len(cards(readings)) == 0:
        return None
    so_far = SoFar(
        spec,
        readings,
        baseline,
        profile.gpu_burn_seconds - (samples[-1].t_mono_s - samples[0].t_mono_s),
        next((one for one in burns(readings, profile) if one.step == STEP), None),
        (*cooling.resistance(spec, readings, baseline), *cooling.card_spread(spec, readings)),
    )
    figures: list[Figure] = []
    for gpu in cards(readings):
        found = list(_of_card(so_far, gpu))
        if not found or not all(figure.certain for figure in found):
            return None
        figures += found
    if not _certain_wall(spec, readings) or _throttles_now(spec, profile, readings):
        return None
    return f"all {len(figures)} figures of {len(cards(readings))} cards had settled, each clear of its limits"


def _of_card(so_far: SoFar, gpu: GpuFacts) -> Iterator[Figure]:
    """Every figure of one card; none where one cannot be foretold yet, which is no certainty."""
    spec, readings, left_s = so_far.spec, so_far.readings, so_far.left_s
    core = _outlook(readings, gpu.uuid, "temp_c", left_s)
    power_w = cooling.settled_power_w(readings, gpu.uuid)
    if core is None or power_w is None:
        return
    yield Figure(
        "settled", *core, (spec.limits.max_settled_gpu_temp_c, settled_limit_c(spec, readings)[0], gpu.slowdown_temp_c)
    )
    low, high = _still_rises(readings, gpu.uuid, left_s)
    # What still moves may yet come to rest: only rest is certain.
    steady = max(abs(low), abs(high)) <= STEADY_C
    yield Figure("rise", low if steady else -STEADY_C, high if steady else STEADY_C, (STEADY_C, -STEADY_C))
    least = spec.limits.min_power_share_of_limit
    if least is not None and gpu.power_limit_w:
        share = power_w / gpu.power_limit_w
        yield Figure("power", share * (1 - DOUBT_SHARE), share * (1 + DOUBT_SHARE), (least,))
    yield from _of_verdicts(so_far, gpu)
    if any(one.gpu.memory_temp_c is not None for one in load.loaded(readings, STEP, gpu.uuid)):
        memory = _outlook(readings, gpu.uuid, "memory_temp_c", left_s)
        asked = (spec.limits.max_settled_gpu_memory_temp_c, gpu.memory_max_temp_c)
        yield Figure("memory", *(memory or (-1000.0, 1000.0)), asked)
    yield _rate(spec, so_far.burn, gpu)


def _of_verdicts(so_far: SoFar, gpu: GpuFacts) -> Iterator[Figure]:
    """What checks that compare say now, with what their figures can still do."""
    limits = so_far.spec.limits
    for verdict in so_far.compared:
        found = verdict.found
        if verdict.subject != gpu.subject or not isinstance(found, int | float):
            continue  # not judged now, and not later either: that the curve rests is a figure of its own
        if verdict.check == cooling.RESISTANCE:
            known = cooling.known_resistance(so_far.baseline, gpu.uuid, verdict.unit)
            most = None if known is None else known * (1 + limits.max_gpu_c_per_w_rise_share)
            asked = verdict.expected if isinstance(verdict.expected, int | float) else None
            yield Figure("resistance", found * (1 - DOUBT_RESISTANCE), found * (1 + DOUBT_RESISTANCE), (asked, most))
        else:
            yield Figure("spread", found - DOUBT_C, found + DOUBT_C, (limits.max_gpu_temp_spread_c,))


def _outlook(readings: Readings, uuid: str, sensor: str, left_s: float) -> tuple[float, float] | None:
    """Between what a temperature's verdict can lie: what the checks would read now, and where the curve goes."""
    curve = read_curve(readings, STEP, uuid, sensor)
    thirds = _thirds(readings, uuid, sensor)
    if not isinstance(curve, Curve) or thirds is None:
        return None
    ahead = _ahead_c(thirds, left_s)
    if ahead is None:
        return None
    ends = thirds[2] + ahead
    return min(curve.settled_c, ends) - DOUBT_C, max(curve.settled_c, ends) + DOUBT_C


def _thirds(readings: Readings, uuid: str, sensor: str) -> tuple[float, float, float] | None:
    """Means of the three thirds of the window, °C."""
    points = _points(readings, uuid, sensor)
    if not points or points[-1][0] - points[0][0] < WINDOW_S:
        return None
    end = points[-1][0]
    parts = [[c for t, c in points if low <= (end - t) / WINDOW_S * 3 < low + 1] for low in (2, 1, 0)]
    if any(len(part) < load.FEWEST for part in parts):
        return None
    return load.mean(parts[0]), load.mean(parts[1]), load.mean(parts[2])


def _points(readings: Readings, uuid: str, sensor: str) -> list[tuple[float, float]]:
    busy = load.loaded(readings, STEP, uuid)
    return [(one.t_s, float(c)) for one in busy if (c := getattr(one.gpu, sensor)) is not None]


def _ahead_c(thirds: Sequence[float], left_s: float) -> float | None:
    """How far a curve still goes, °C: what slows down goes on slowing down; None where nothing can be said.

    The steps between three means of equal time shrink by a constant share when one heat capacity fills up.
    """
    first, second = thirds[1] - thirds[0], thirds[2] - thirds[1]
    if abs(second) <= FLAT_C:
        return second
    kept = second / first if first else 1.0
    if not 0 < kept < 0.9:  # noqa: PLR2004 - nearly straight: it may go anywhere
        return None
    steps = left_s / (WINDOW_S / 3)
    return second * kept * (1 - float(kept**steps)) / (1 - kept)


def _still_rises(readings: Readings, uuid: str, left_s: float) -> tuple[float, float]:
    """Between what the rise over the last third of the whole burn can lie, °C."""
    points = _points(readings, uuid, "temp_c")
    end = points[-1][0]
    recent = [(t, c) for t, c in points if end - t <= WINDOW_S]
    now = read_curve(readings, STEP, uuid)
    third_s = (end - points[0][0] + left_s) / 3
    # A curve that settles loses its slope: by the last third there is a part of it left, by now there is all of it.
    expected = slope(recent) * third_s / 3
    rise = now.rise_c if isinstance(now, Curve) else 0.0
    return min(expected, rise), max(expected, rise)


def _rate(spec: RigSpec, burn: Burn | None, gpu: GpuFacts) -> Figure:
    """The burner's rate in the stretch that the check would take; one that is falling is not certain."""
    unknown = Figure("rate", 0.0, 1e9, (spec.limits.min_burn_gflops, 1.0))
    if burn is None or burn.log is None or not burn.log.rows:
        return unknown
    worker = next((card.index for card in burn.log.cards if card.uuid == gpu.uuid), None)
    last = burn.log.rows[-1].percent
    rates = [] if worker is None else burn.log.gflops(worker, from_percent=last * 2 / 3, to_percent=last)
    begin = [] if worker is None else burn.log.gflops(worker, from_percent=last * 0.15, to_percent=last * 0.5)
    if len(rates) < load.FEWEST or not begin:
        return unknown
    found = median(rates)
    fallen, most = 1 - found / median(begin), spec.limits.max_burn_gflops_drift
    if most is not None and abs(fallen - most) < DOUBT_SHARE:
        return unknown
    return Figure("rate", found * (1 - DOUBT_SHARE), found * (1 + DOUBT_SHARE), (spec.limits.min_burn_gflops,))


def _throttles_now(spec: RigSpec, profile: ProfileSpec, readings: Readings) -> bool:
    """Whether a share of throttling is near its limit: neither clearly none nor clearly too much."""
    most = spec.limits.max_bad_throttle_share
    shares = [v.found for v in thermals.throttle(spec, readings, profile) if isinstance(v.found, int | float)]
    # By the burn's end a share can be diluted by all that is left: only what is twice too much stays too much.
    return any(0 < share < max(2 * most, 0.5) for share in shares)


def _certain_wall(spec: RigSpec, readings: Readings) -> bool:
    """Whether the wall meter is clear of its bounds, where the burn alone is judged at the wall."""
    asked = spec.limits.wall_power_gpu_burn_w
    if asked is None:
        return True
    busy = load.last_third(load.all_busy(readings, STEP))
    watts = [sample.wall_power_w for sample in busy if sample.wall_power_w is not None]
    if len(watts) < load.FEWEST:
        return False
    off = load.mean(watts) / asked - 1
    return abs(abs(off) - spec.limits.wall_power_tolerance_share) > DOUBT_SHARE
