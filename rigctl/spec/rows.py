"""The table of what can be learned: from which check a figure comes, which margin it gets, and why.

A new limit is one row of `ROWS`. Its figure is what the check itself says that it found, so that what is learned and
what is judged are one thing. A check that says nothing while its limit is not set (`skip`) is asked again with the
row's `opened` figure, which no rig exceeds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Literal

from rigctl.checks.burn import burns
from rigctl.checks.cards import cards
from rigctl.checks.compute import FIGURES
from rigctl.spec.parts import joined_pairs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rigctl.model.reading import Facts, GpuSample, Readings
    from rigctl.model.spec import ProfileSpec
    from rigctl.model.verdict import CheckVerdict

_DIGITS = 3
"""Significant digits of a figure that has no step of its own."""
_EARLY_PERCENT, _SETTLED_PERCENT = (15.0, 50.0), 100 * 2 / 3
_DRIFT_NEEDS_S = 120
"""As `throughput.burn_gflops` judges drift: a shorter burn tells only the noise of its few rows."""
_LONG = "a GPU burn of two minutes or more"
_JOINED = "cards that NVLinks join"
_BELOW_SLOWDOWN_C = 5
_NO_TEMPERATURE = 119.9
"""°C; above every rig, within the spec's bounds."""
_NO_SPREAD, _NO_REST = 59.9, 89.9
"""°C; above every rig, within the spec's bounds."""
_NO_IDLE_W = 999.0
"""W; above every card at rest, within the spec's bounds."""
_ANY_SIZE_GB = 0.001
"""GB; below every disk."""
_NO_WATTS, _ALL_WATTS = 20_000.0, 0.999
"""A nominal power and a tolerance between which every rig's power lies: 20 W to 40 kW."""


@dataclass(frozen=True)
class Seen:
    """What one run shows of the rig."""

    verdicts: tuple[CheckVerdict, ...]
    readings: Readings
    profile: ProfileSpec


@dataclass(frozen=True)
class Margin:
    """How a limit follows from a figure: `figure × factor + add`, never beyond what `cap` says."""

    words: str
    """As people read it, such as `+ 7 °C`; empty for a figure that is taken as it is."""
    why: str
    """Behind `because of`, or behind the figure where there are no words."""
    factor: float = 1.0
    add: float = 0.0
    cap: Callable[[Facts], tuple[float, str] | None] | None = None


@dataclass(frozen=True)
class Row:
    """One figure that can be learned."""

    key: str
    """Dotted key of the spec."""
    check: str
    """The check that judges it; its words say why there is no figure."""
    sense: Literal["at most", "at least", "exactly", "around"]
    """How it is judged: the largest or smallest figure counts, the smallest for `exactly`, the mean for `around`."""
    unit: str
    margin: Margin
    step: float | None = None
    """The limit is rounded to a multiple of it, away from the figure; None: to three significant digits."""
    seen: Callable[[Seen], Mapping[str, float]] | None = None
    """Subject → figure, empty where the run shows none; None: what the check says that it found."""
    opened: Mapping[str, float] = field(default_factory=dict)
    """Dotted keys and figures with which the check speaks of a rig that has no such limit yet."""
    when: Callable[[Readings], bool] = lambda _readings: True
    """Whether the run can hold such a figure at all."""

    needs: str = ""
    """What a run must have had for it, in words, where that is more than the check's own step."""

    def figures(self, seen: Seen) -> Mapping[str, float]:
        """Return subject → figure; empty where the run shows none."""
        return (self.seen or found(self.check))(seen) if self.when(seen.readings) else {}

    def limit(self, figure: float, facts: Facts | None) -> tuple[float, str]:
        """Return the limit that follows from a figure, and in words how."""
        limit, words = figure * self.margin.factor + self.margin.add, self.margin.words
        capped = self.margin.cap(facts) if self.margin.cap is not None and facts is not None else None
        if capped is not None and capped[0] < limit:
            limit, words = capped
        return _rounded(limit, self.sense, self.step), words


def _rounded(limit: float, sense: str, step: float | None) -> float:
    """Round away from the figure, so that the margin is never less than its words say."""
    if limit == 0:
        return 0.0
    unit = step if step is not None else 10.0 ** (math.floor(math.log10(abs(limit))) - _DIGITS + 1)
    turn = {"at most": math.ceil, "at least": math.floor}.get(sense, round)
    # 65.00000001 is 65: what floats add must not cost a whole step.
    return float(round(turn(round(limit / unit, 6)) * unit, 6))


def found(check: str, subject: str | None = None) -> Callable[[Seen], Mapping[str, float]]:
    """Take what a check says that it found, on each of its subjects or on one."""

    def take(seen: Seen) -> Mapping[str, float]:
        own = [v for v in seen.verdicts if v.check == check and subject in (None, v.subject)]
        return {v.subject: float(v.found) for v in own if isinstance(v.found, int | float)}

    return take


def _of_joined(check: str) -> Callable[[Seen], Mapping[str, float]]:
    """Take what a check found between cards that NVLinks join; other pairs go through the host and set no floor."""

    def take(seen: Seen) -> Mapping[str, float]:
        joined = joined_pairs(cards(seen.readings))
        return {subject: figure for subject, figure in found(check)(seen).items() if subject in joined}

    return take


def _drift(seen: Seen) -> Mapping[str, float]:
    """How far each card's rate fell from the burn's first half to its last third."""
    burn = next((one for one in burns(seen.readings, seen.profile) if one.step == "gpu_burn"), None)
    if burn is None or burn.log is None or burn.asked_s < _DRIFT_NEEDS_S:
        return {}
    fell = {}
    for gpu in cards(seen.readings):
        worker = next((card.index for card in burn.log.cards if card.uuid == gpu.uuid), None)
        if worker is None:
            continue
        first = burn.log.gflops(worker, from_percent=_EARLY_PERCENT[0], to_percent=_EARLY_PERCENT[1])
        last = burn.log.gflops(worker, from_percent=_SETTLED_PERCENT)
        if first and last and median(first) > 0:
            fell[gpu.subject] = max(0.0, 1 - median(last) / median(first))
    return fell


def _below_slowdown(facts: Facts) -> tuple[float, str] | None:
    own = [gpu.slowdown_temp_c for gpu in facts.gpus if gpu.slowdown_temp_c is not None]
    return (
        (min(own) - _BELOW_SLOWDOWN_C, f"the card's own slowdown temperature − {_BELOW_SLOWDOWN_C} °C") if own else None
    )


def _has_coolant(readings: Readings) -> bool:
    return any(sample.coolant_temps_c for sample in readings.samples)


def _shows(sensor: Callable[[GpuSample], float | None]) -> Callable[[Readings], bool]:
    return lambda readings: any(sensor(gpu) is not None for sample in readings.samples for gpu in sample.gpus)


def _has_wall(readings: Readings) -> bool:
    return any(sample.wall_power_w is not None for sample in readings.samples)


_REPEATS = "repeats, which differ by 3 to 6 % on one rig (mli/transformers-benchmarks)"
_AS_BUILT = Margin("", "as the board wires the slot, exactly as seen")
_WARMER = Margin(
    "+ 7 °C",
    "a warmer room and dust until the next cleaning; the reference class has as much (58 °C seen, 65 °C asked)",
    add=7,
    cap=_below_slowdown,
)
_NO_LONGER_HEALTHY = Margin(
    "+ 15 °C", "the guard: what settles so far above a healthy run is no longer healthy", add=15, cap=_below_slowdown
)
_MEMORY = Margin("+ 10 °C", "a warmer room, and pads that age", add=10)
_SPREAD = Margin("+ 4 °C", "one degree of each sensor, and cards that change places in the air", add=4)
_HEAT_PATH = Margin(
    "× 1.25",
    "dust until the next cleaning and its sensor; against its history it is × 1.2",
    factor=1.25,
)
_ROOM = Margin("+ 8 °C", "a warmer day", add=8)
_LOUD = Margin("+ 15 %", "a warmer room", add=15, cap=lambda _facts: (100.0, "all that can be asked of a fan"))
_CPU = Margin(
    "+ 10 °C", "a warmer room; a processor's hottest moment repeats less well than a settled temperature", add=10
)
_SENSORS = Margin(
    "− 0.02", "differences between power sensors; the reference class has as much (0.92 seen, 0.90 asked)", add=-0.02
)
_AT_REST = Margin("+ 15 W", "its sensor's ± 5 W, a display, or a driver that rests less deeply", add=15)
_SUPPLY = Margin("+ 0.05", "the meter itself, a warmer supply, fans that turn faster", add=0.05)
_NOT_SLOWED = Margin("", "a healthy card is not slowed down for heat or power brake more than this one was")
_TWO_SIDED = Margin("", "judged in both directions, with wall_power_tolerance_share on either side")
_RATE = Margin("× 0.93", _REPEATS, factor=0.93)
_DRIFT = Margin("+ 0.02", "the reading itself, about 1 % at either end of the burn", add=0.02)
_CLOCK = Margin("× 0.93", "a warmer room, and burns of another length, which settle at other clocks", factor=0.93)
_FILLS = Margin("× 0.50", "a disk gets slower as it fills, and its cache makes figures uneven", factor=0.50)
_AS_LINKED = Margin("", "what both ends of the cable negotiated, exactly as seen")
_AS_MADE = Margin("", "as the disk tells it")
_TOKENS = Margin("× 0.90", f"{_REPEATS}, with one outlier of 14 %", factor=0.90)

_COUNTER = "a healthy run counts none, and none is no limit; what may be counted is a choice"

ROWS: tuple[Row, ...] = (
    Row("parts.pcie_gen_under_load", "topology.pcie_gen", "exactly", "", _AS_BUILT, step=1),
    Row("parts.pcie_width_under_load", "topology.pcie_width", "exactly", "lanes", _AS_BUILT, step=1),
    Row("parts.min_disk_gb", "disk.size", "at least", "GB", _AS_MADE, opened={"parts.min_disk_gb": _ANY_SIZE_GB}),
    Row("limits.max_settled_gpu_temp_c", "thermals.settled_gpu_temp", "at most", "°C", _WARMER, step=1),
    Row(
        "limits.max_settled_gpu_memory_temp_c",
        "thermals.memory_temp",
        "at most",
        "°C",
        _MEMORY,
        step=1,
        when=_shows(lambda gpu: gpu.memory_temp_c),
    ),
    Row(
        "limits.max_gpu_temp_spread_c",
        "thermals.card_spread",
        "at most",
        "°C",
        _SPREAD,
        step=1,
        opened={"limits.max_gpu_temp_spread_c": _NO_SPREAD},
        when=lambda readings: len(cards(readings)) > 1,
    ),
    Row(
        "limits.max_gpu_c_per_w",
        "thermals.resistance",
        "at most",
        "°C/W",
        _HEAT_PATH,
        when=lambda readings: not _has_coolant(readings),
    ),
    Row(
        "limits.max_gpu_c_per_w_coolant",
        "thermals.resistance",
        "at most",
        "°C/W",
        _HEAT_PATH,
        when=_has_coolant,
    ),
    Row(
        "limits.max_rest_temp_c",
        "thermals.rest_temp",
        "at most",
        "°C",
        _ROOM,
        step=1,
        opened={"limits.max_rest_temp_c": _NO_REST},
    ),
    Row(
        "limits.max_fan_pct",
        "thermals.fan_speed",
        "at most",
        "%",
        _LOUD,
        step=1,
        opened={"limits.max_fan_pct": 100.0},
        when=_shows(lambda gpu: gpu.fan_pct),
    ),
    Row("limits.guard_max_gpu_temp_c", "thermals.settled_gpu_temp", "at most", "°C", _NO_LONGER_HEALTHY, step=1),
    Row(
        "limits.max_cpu_temp_c",
        "thermals.cpu_temp",
        "at most",
        "°C",
        _CPU,
        step=1,
        opened={"limits.max_cpu_temp_c": _NO_TEMPERATURE},
    ),
    Row("limits.min_cpu_mhz", "throughput.cpu_clock", "at least", "MHz", _CLOCK),
    *(
        Row(f"limits.min_disk_{way}_mb_per_s", "disk.speed", "at least", "MB/s", _FILLS, seen=found("disk.speed", way))
        for way in ("read", "write")
    ),
    Row("limits.min_network_mbit_per_s", "network.link", "at least", "Mbit/s", _AS_LINKED, step=1),
    Row("limits.min_power_share_of_limit", "power.share_of_limit", "at least", "share", _SENSORS, step=0.01),
    Row(
        "limits.max_idle_power_w",
        "power.idle",
        "at most",
        "W",
        _AT_REST,
        step=1,
        opened={"limits.max_idle_power_w": _NO_IDLE_W},
    ),
    Row("limits.max_bad_throttle_share", "thermals.throttle", "at most", "share", _NOT_SLOWED, step=0.01),
    Row("limits.min_burn_gflops", "throughput.burn_gflops", "at least", "Gflop/s", _RATE),
    Row(
        "limits.max_burn_gflops_drift",
        "throughput.burn_gflops",
        "at most",
        "share",
        _DRIFT,
        step=0.01,
        seen=_drift,
        needs=_LONG,
    ),
    *(
        Row(
            f"limits.wall_power_{step}_w",
            "power.wall",
            "around",
            "W",
            _TWO_SIDED,
            step=5,
            seen=found("power.wall", step),
            opened={f"limits.wall_power_{step}_w": _NO_WATTS, "limits.wall_power_tolerance_share": _ALL_WATTS},
            when=_has_wall,
        )
        for step in ("gpu_burn", "all_burn")
    ),
    *(
        Row(f"limits.min_p2p_{ways}_gb_per_s", check, "at least", "GB/s", _RATE, seen=_of_joined(check), needs=_JOINED)
        for ways, check in (("one_way", "throughput.p2p_one_way"), ("both_ways", "throughput.p2p_both_ways"))
    ),
    Row(
        "limits.max_wall_residual_share",
        "power.residual",
        "at most",
        "share",
        _SUPPLY,
        step=0.01,
        opened={"limits.max_wall_residual_share": _ALL_WATTS},
        when=_has_wall,
    ),
    Row("training.min_tokens_per_s", "throughput.training", "at least", "tokens/s", _TOKENS),
    Row("training.min_all_tokens_per_s", "throughput.train_all", "at least", "tokens/s", _TOKENS),
    Row("training.min_scaling_share", "throughput.scaling", "at least", "share", _RATE, step=0.01),
    Row("training.min_p2p_gain", "throughput.p2p_gain", "at least", "×", _RATE, step=0.01),
    Row("training.min_tokens_per_joule", "throughput.tokens_per_joule", "at least", "tokens/J", _TOKENS),
    *(Row(f"compute.{one.key}", check, "at least", one.unit, _RATE) for check, one in FIGURES.items()),
)
"""In the order of the spec."""

NOT_LEARNED: Mapping[str, str] = {
    "limits.max_nvlink_crc_errors": _COUNTER,
    "limits.max_pcie_replays": _COUNTER,
    "limits.max_aer_corrected_per_min": _COUNTER,
    "limits.max_probe_seconds": "how long a driver takes differs from boot to boot; a bound is a choice",
    "limits.max_gpu_c_per_w_rise_share": "a choice of people, not a reading",
    "limits.max_power_share_of_limit": "a choice of people, not a reading",
    "limits.max_rate_fall_share": "a choice of people, not a reading",
    "limits.max_twin_gap_share": "a choice of people, not a reading",
    "limits.wall_power_tolerance_share": "a choice of people, not a reading",
    "limits.max_ecc_corrected": _COUNTER,
    "limits.max_clock_offset_s": "a choice of people, not a reading",
    "limits.settled_at_room_temp_c": "of which room a class's limit was measured in only people can tell",
    "limits.max_disk_used_pct": "what a disk's maker calls its endurance; a tighter one is a choice",
    "limits.max_disk_media_errors": _COUNTER,
    "limits.min_disk_free_gb": "a choice of people, not a reading",
    "limits.guard_max_gpu_memory_temp_c": "the card's own limit − 5 °C holds without it; a tighter one is a choice",
    "limits.guard_max_cpu_temp_c": "what the sensor calls critical − 5 °C holds without it; a tighter one is a choice",
}
"""Limits that no reading gives, and why; a class's own figures for them are kept."""
