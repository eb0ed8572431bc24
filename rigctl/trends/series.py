"""One figure over time: its usual value, how far repeats differ, and the smallest change that this could show."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from statistics import NormalDist, median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rigctl.model.past import Point

PRIOR = {"°C": 1.0, "°C/W": 0.003, "W": 5.0, "share": 0.01, "MHz": 15.0, "rpm": 40.0}
"""How far repeats of a figure differ before a rig's own have shown it, as a standard deviation in the figure's unit: a
core's sensor counts whole degrees, which over 440 W is 0.0023 °C/W; meters of plugs are good for 1 % of 500 W."""
COUNTED = ("errors", "replays", "uncorrected errors")
"""Units of what is counted: repeats of it differ by its root at least (Poisson), and by one where none was counted."""
PRIOR_SHARE = 0.015
"""So for rates and all else, as a share: repeats of one rig months apart were 3 to 6 % apart from highest to lowest
(mli/transformers-benchmarks)."""
PRIOR_WEIGHT = 4
"""The prior counts like so many repeats; so two runs are enough to say something."""
FALSE_SHARE = 0.001
"""A change is called one when chance alone would bring it in so few cases (each way)."""
MAD_FROM = 5
"""From so many values on, one bad night does not count: the median absolute deviation is taken."""
_MAD_TO_SIGMA = 1.4826


@dataclass(frozen=True)
class Series:
    """One check's figures on one subject, oldest first."""

    check: str
    key: str
    """A card's UUID or its slot, as asked for, else the subject."""
    subject: str
    """As the newest verdict names it."""
    unit: str | None
    points: tuple[Point, ...]

    @property
    def values(self) -> tuple[float, ...]:
        """The figures."""
        return tuple(point.found for point in self.points)

    @property
    def days(self) -> tuple[float, ...]:
        """When each was found, days since 1970."""
        return tuple(day_of(point.ended_at) for point in self.points)

    @property
    def usual(self) -> float:
        """The median."""
        return median(self.values)

    @property
    def sigma(self) -> float:
        """Standard deviation of a repeat, in the figure's unit; from two values on the rig's own, with the prior."""
        return sigma_of(self.values, self.unit)

    @property
    def detectable(self) -> float:
        """The smallest change of one new value from the usual one that is not chance, in the figure's unit."""
        count = len(self.values)
        return student(1 - FALSE_SHARE, PRIOR_WEIGHT + count - 1) * self.sigma * math.sqrt(1 + 1 / count)


def all_series(points: Iterable[Point], *, by: str = "card") -> tuple[Series, ...]:
    """Sort figures into series, of cards by `card` (UUID) or by `slot`; other subjects by their name."""
    found: defaultdict[tuple[str, str], list[Point]] = defaultdict(list)
    for point in points:
        own = point.uuid if by == "card" else point.slot
        found[point.check, own or point.subject].append(point)
    return tuple(
        Series(check, key, many[-1].subject, many[-1].unit, tuple(many)) for (check, key), many in found.items()
    )


def sigma_of(values: Sequence[float], unit: str | None) -> float:
    """Standard deviation of a repeat: the values' own, weighed with what is known before there are any."""
    usual = median(values)
    prior = _prior(usual, unit or "")
    count = len(values)
    if count >= MAD_FROM:
        own = _MAD_TO_SIGMA * median(abs(value - usual) for value in values)
    else:
        mean = sum(values) / count
        own = math.sqrt(sum((value - mean) ** 2 for value in values) / (count - 1)) if count > 1 else 0.0
    free = count - 1
    return math.sqrt((PRIOR_WEIGHT * prior**2 + free * own**2) / (PRIOR_WEIGHT + free))


def _prior(usual: float, unit: str) -> float:
    """Standard deviation of a repeat as far as it is known before there is one, by the unit's first word.

    `°C/W over its own rest` is °C/W.
    """
    if counted(unit):
        return math.sqrt(max(1.0, abs(usual)))
    return PRIOR.get(unit.partition(" ")[0], abs(usual) * PRIOR_SHARE)


def counted(unit: str | None) -> bool:
    """Whether figures of a unit are counts."""
    return unit in COUNTED


def student(share: float, freedom: int) -> float:
    """Quantile of Student's t, by the expansion in Abramowitz & Stegun 26.7.5; good to 1 % from 4 degrees on."""
    z = NormalDist().inv_cdf(share)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    fourth = (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92_160
    return z + first / freedom + second / freedom**2 + third / freedom**3 + fourth / freedom**4


@lru_cache(maxsize=1 << 14)
def day_of(iso: str) -> float:
    """An ISO 8601 time as days since 1970; UTC where it names no zone."""
    when = datetime.fromisoformat(iso)
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() / 86_400
