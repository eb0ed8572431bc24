"""One measured figure, and what several measurements of it come to."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from statistics import median
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Figure:
    """One line of bench/results.json."""

    name: str
    value: float
    unit: str
    goal: str
    """`≤ 180`, `= 10`; empty for a rival's figure, which has no goal."""
    holds: bool
    spread: str
    """Smallest and largest of the measurements, or `once`."""
    how: str

    def as_json(self) -> dict[str, Any]:
        """Return the figure as it stands in the file."""
        return asdict(self)


def figure(
    name: str,
    measured: Sequence[float],
    unit: str,
    how: str,
    *,
    goal: tuple[Literal["≤", "≥", "="], float] | None = None,
) -> Figure:
    """Return the median of `measured`, held against `goal`; without a goal it is a rival's figure and always holds."""
    value = median(measured)
    holds = goal is None or _holds(value, *goal)
    once = len(measured) == 1
    return Figure(
        name=name,
        value=rounded(value),
        unit=unit,
        goal="" if goal is None else f"{goal[0]} {goal[1]:g}",
        holds=holds,
        spread="once" if once else f"{rounded(min(measured)):g} to {rounded(max(measured)):g}, n={len(measured)}",
        how=how,
    )


def _holds(value: float, relation: str, limit: float) -> bool:
    return {"≤": value <= limit, "≥": value >= limit, "=": value == limit}[relation]


def rounded(value: float) -> float:
    """Three significant digits below a thousand, whole numbers above: more would not repeat."""
    return round(value) if abs(value) >= 1000 else float(f"{value:.3g}")  # noqa: PLR2004 - said above
