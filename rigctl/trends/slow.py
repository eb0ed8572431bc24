"""Slow trends: a figure that creeps towards its limit, found before it gets there."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from statistics import median
from typing import TYPE_CHECKING

from rigctl.trends.series import counted, day_of, sigma_of
from rigctl.trends.slope import direction, line, step, tamed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rigctl.model.past import Past, Point
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
WINDOWS_DAYS = (120, 60, 30)
"""Older nights say how it was, not where it goes. A part that was well for most of a long window and wears since shows
in a shorter one first, as does what grows ever faster; the longest that shows it is told."""
WINDOW_DAYS = WINDOWS_DAYS[0]
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
"""Nobody believes a line for longer; what has a limit and does not meet it by then is not said."""


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
    known = [(day_of(point.ended_at), point) for point in series.points if point.ended_at >= since]
    for window in WINDOWS_DAYS:
        nights = [(day, point) for day, point in known if until - window <= day <= until]
        days, points = [day for day, _ in nights], [point for _, point in nights]
        near = _worse(days, [point.found for point in points], series)
        finding = _finding(series, points, days, near, now) if near else None
        # What would not meet its limit within a year is the age of any rig: dust between two cleanings, a pump's year.
        if finding is not None and (finding.limit is None or finding.crosses_on is not None):
            return finding
    return None


def _worse(days: Sequence[float], values: Sequence[float], series: Series) -> Sequence[float]:
    """Return the values, bad nights tamed, where they creep for the worse, certainly and far enough; else none."""
    if len(days) < FEWEST or days[-1] - days[0] < SHORTEST_DAYS or min(values) == max(values):
        return ()
    if direction(values, CONFIDENCE) != WATCHED[series.check][0]:
        return ()
    near = tamed(values, sigma_of(values, series.unit))
    per_day, _ = line(days, near)
    middle = sum(days) / len(days)
    rest = [value - per_day * (day - middle) for day, value in zip(days, near, strict=True)]
    if abs(per_day) * (days[-1] - days[0]) < LEAST_SIGMAS * sigma_of(rest, series.unit):
        return ()
    # What jumped when something was changed that no fact tells of, and stays there, does not wear. Where it jumps is
    # one figure more that can be chosen, which counts against the two levels (Schwarz's criterion).
    even = _even(near, series.unit)
    return near if line(days, even)[1] <= step(even) * len(even) ** (1 / len(even)) else ()


def _even(values: Sequence[float], unit: str | None) -> Sequence[float]:
    """Return the values so that they differ alike wherever they are: counts, which differ by their roots, as roots."""
    return [math.sqrt(max(0.0, value)) for value in values] if counted(unit) else values


def _finding(
    series: Series, points: Sequence[Point], days: Sequence[float], near: Sequence[float], now: datetime
) -> TrendFinding:
    level, limit = median(point.found for point in points[-SMOOTHED:]), points[-1].limit
    pace, _ = line(days, _even(near, series.unit))
    return TrendFinding(
        check=series.check,
        subject=points[-1].subject,
        key=series.key,
        per_week=line(days, near)[0] * 7,
        unit=series.unit,
        now=level,
        limit=limit,
        crosses_on=_crossing(level, limit, pace, series.unit, now),
        nights=len(points),
        fix=WATCHED[series.check][1],
    )


def _crossing(level: float, limit: float | None, pace: float, unit: str | None, now: datetime) -> date | None:
    """When it meets its limit; counts are followed by their roots, for what wears damages ever more."""
    if limit is None or pace == 0:
        return None
    (begin,), (end,) = _even([level], unit), _even([limit], unit)
    days = (end - begin) / pace
    if days < 0:
        return now.astimezone(UTC).date()  # it is past its limit already
    return (now.astimezone(UTC) + timedelta(days=days)).date() if days <= FARTHEST_DAYS else None
