"""How a figure moves over time: whether it moves at all, how fast, and whether it only jumped.

Sensors count whole degrees, so many nights show the same figure, and what creeps looks like stairs. Statistics of ranks
(Kendall's) say whether it moves at all; means, which see what lies between two stairs, say how fast, once single bad
nights are tamed.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections import Counter
from itertools import accumulate
from statistics import NormalDist, median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

SIDE = 3
"""A level is one from so many nights on."""
AROUND = 3
"""A night is bad when it is far from the median of itself and so many before and after."""
FAR_SIGMAS = 3.0


def direction(values: Sequence[float], confidence: float) -> int:
    """Return 1 where the values rise for certain, −1 where they fall, 0 where they may as well stay.

    Kendall's test (Mann 1945): how many pairs rise against how many fall; ties count for neither.
    """
    count, more = len(values), 0
    earlier: list[float] = []
    for value in values:
        more += bisect_left(earlier, value) - (len(earlier) - bisect_right(earlier, value))
        insort(earlier, value)
    chance = (_term(count) - sum(map(_term, Counter(values).values()))) / 18
    reach = NormalDist().inv_cdf((1 + confidence) / 2) * math.sqrt(chance)
    return 1 if more > reach else -1 if more < -reach else 0


def tamed(values: Sequence[float], sigma: float) -> list[float]:
    """Return the values with each that is farther than `FAR_SIGMAS` times `sigma` from its neighbours drawn near."""
    far = FAR_SIGMAS * sigma
    near = [median(values[max(0, at - AROUND) : at + AROUND + 1]) for at in range(len(values))]
    return [min(max(value, level - far), level + far) for value, level in zip(values, near, strict=True)]


def line(days: Sequence[float], values: Sequence[float]) -> tuple[float, float]:
    """Return the slope a day of the least squares' line, and the sum of squares beside it; at least two days differ."""
    middle, level = sum(days) / len(days), sum(values) / len(values)
    wide = sum((day - middle) ** 2 for day in days)
    joint = sum((day - middle) * (value - level) for day, value in zip(days, values, strict=True))
    return joint / wide, sum((value - level) ** 2 for value in values) - joint**2 / wide


def step(values: Sequence[float]) -> float:
    """Return the sum of squares beside the best two levels, one before and one after a single jump."""
    count, level = len(values), sum(values) / len(values)
    centred = [value - level for value in values]
    total = sum(value**2 for value in centred)
    before = list(accumulate(centred))
    # Two levels explain the more, the farther the sum of either side is from zero.
    gains = [before[at - 1] ** 2 * count / (at * (count - at)) for at in range(SIDE, count - SIDE + 1)]
    return total - max(gains, default=0.0)


def _term(count: int) -> int:
    """Return 18 times the variance of how many more of so many values' pairs rise than fall by chance."""
    return count * (count - 1) * (2 * count + 5)
