"""Slow trends: a figure that creeps towards its limit, found before it gets there."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from statistics import median
from typing import TYPE_CHECKING

from rigctl.trends.series import day_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rigctl.model.past import Past
    from rigctl.trends.series import Series

WORSE_UP, WORSE_DOWN = 1, -1
WATCHED = {
    "thermals.resistance": (WORSE_UP, "pump and flow first, then the cold plate's paste; dust on radiators"),
    "power.residual": (
        WORSE_UP,
        "a supply that ages, or fans and pumps that turn faster: compare the wall meter",
    ),
    "topology.nvlink_errors": (WORSE_UP, "reseat the bridge, clean its contacts"),
    "topology.pcie_replays": (WORSE_UP, "reseat the card; another riser or slot"),
    "memory.ecc": (WORSE_UP, "a card whose memory ages: plan its replacement"),
    "throughput.burn_gflops": (WORSE_DOWN, "see °C/W and throttle reasons of this card"),
    "throughput.training": (WORSE_DOWN, "see the cards' own rates and °C/W"),
    "disk.speed": (WORSE_DOWN, "see disk.health: a worn drive, or a full one"),
}
"""Figures that say something of wear whatever the season: which way is worse, and what to do."""
WINDOW_DAYS = 120
"""Older nights say how it was, not where it goes."""
FEWEST = 12
"""So many nights are needed, over `SHORTEST_DAYS` at least."""
SHORTEST_DAYS = 14
CONFIDENCE = 0.9999
"""Of the slope's interval (Theil and Sen): thousands of series are looked at every night."""
LEAST_SIGMAS = 3.0
"""A drift that repeats could hide is none: it is so many standard deviations of a repeat over the window at least."""
SMOOTHED = 7
"""Where it stands now is the median of so many nights."""
FARTHEST_DAYS = 365
"""Nobody believes a line for longer."""


@dataclass(frozen=True)
class TrendFinding:
    """A figure that gets worse."""

    check: str
    subject: str
    key: str
    per_week: float
    """Change a week, in `unit`."""
    unit: str | None
    now: float
    limit: float | None
    crosses_on: date | None
    """When it meets its limit if it goes on like this; None where it has none, or not within a year."""
    nights: int
    fix: str

    @property
    def sentence(self) -> str:
        """In words."""
        unit = f" {self.unit}" if self.unit else ""
        said = f"{self.subject}: {self.check} {self.per_week:+.3g}{unit} a week over {self.nights} nights"
        said += f", now {self.now:.4g}{unit}"
        if self.crosses_on is not None and self.limit is not None:
            return f"{said}; meets its limit {self.limit:.4g} about {self.crosses_on:%-d %B %Y}"
        return said


def slow_trends(
    series: Sequence[Series], pasts: Sequence[Past], now: datetime, *, since: str = ""
) -> tuple[TrendFinding, ...]:
    """Find the series that get worse, since the last change that explains another level.

    Args:
        series: Of one rig, cards by UUID.
        pasts: The rig's runs, oldest first: what its parts were.
        now: Nights after this are not looked at.
        since: Nor those before this (ISO 8601, UTC): from when on people let the rig's past count.
    """
    found = []
    for one in series:
        if one.check in WATCHED:
            finding = _trend(one, max(since, _since(one, pasts)), now)
            if finding is not None:
                found.append(finding)
    return tuple(sorted(found, key=lambda f: (f.crosses_on or date.max, f.check, f.subject)))


def _since(series: Series, pasts: Sequence[Past]) -> str:
    """When the level began that holds now: a driver, a limit, a slot or a VBIOS that changed begins a new one."""
    began, last = "", None
    for past in pasts:
        cards = past.parts.cards
        if not cards:
            continue
        card = next((one for one in cards if one.uuid == series.key), None)
        level = (
            past.parts.driver,
            past.parts.bios,
            (card.slot, card.vbios, card.power_limit_w) if card is not None else tuple(one.uuid for one in cards),
        )
        if level != last:
            began, last = past.ended_at, level
    return began


def _trend(series: Series, since: str, now: datetime) -> TrendFinding | None:
    until = now.timestamp() / 86_400
    points = [
        point
        for point in series.points
        if point.ended_at >= since and until - WINDOW_DAYS <= day_of(point.ended_at) <= until
    ]
    if len(points) < FEWEST:
        return None
    days, values = [day_of(point.ended_at) for point in points], [point.found for point in points]
    span = days[-1] - days[0]
    if span < SHORTEST_DAYS or min(values) == max(values):
        return None
    from scipy.stats import theilslopes  # noqa: PLC0415 - slow to load, and seldom needed

    slope, _, low, high = theilslopes(values, days, CONFIDENCE)
    worse, fix = WATCHED[series.check]
    certain = low > 0 if worse == WORSE_UP else high < 0
    if not certain or abs(slope) * span < LEAST_SIGMAS * _repeat(values, days, slope, series.unit):
        return None
    level = median(values[-SMOOTHED:])
    limit = points[-1].limit
    return TrendFinding(
        check=series.check,
        subject=points[-1].subject,
        key=series.key,
        per_week=float(slope) * 7,
        unit=series.unit,
        now=level,
        limit=limit,
        crosses_on=_crossing(level, limit, float(slope), now),
        nights=len(points),
        fix=fix,
    )


def _repeat(values: Sequence[float], days: Sequence[float], slope: float, unit: str | None) -> float:
    """Standard deviation of a repeat once the trend is taken out."""
    from rigctl.trends.series import sigma_of  # noqa: PLC0415 - one name, beside its use

    usual = median(values)
    rest = [value - slope * (day - days[0]) for value, day in zip(values, days, strict=True)]
    shift = usual - median(rest)
    return sigma_of([value + shift for value in rest], unit)


def _crossing(level: float, limit: float | None, slope: float, now: datetime) -> date | None:
    if limit is None or slope == 0:
        return None
    days = (limit - level) / slope
    if days < 0:
        return now.astimezone(UTC).date()  # it is past its limit already
    return (now.astimezone(UTC) + timedelta(days=days)).date() if days <= FARTHEST_DAYS else None
