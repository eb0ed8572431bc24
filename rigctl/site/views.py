"""What the pages show: rows of nights, incidents, curves. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from rigctl.model.verdict import Verdict
from rigctl.report.text import moment, plain, rig_word

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from rigctl.model.past import Point
    from rigctl.store.index import Cell
    from rigctl.trends import TrendFinding

STALE_HOURS = 36
"""A last verdict that is older says nothing of today: a night was left out, as `rigctl nightly status` has it."""
DAYS = 365
"""A year of nights."""
CHARTED = {
    "thermals.resistance": "Thermal resistance",
    "thermals.settled_gpu_temp": "Settled core temperature",
    "throughput.burn_gflops": "gpu-burn",
    "throughput.training": "Training",
    "power.wall": "Power at the wall",
    "power.residual": "Power that is neither cards nor processor",
}
"""The figures whose nights are drawn, with their titles."""
_WELL = (Verdict.PASS, Verdict.BLIND, Verdict.SKIP)
_WORST = ("fail", "error", "warn", "waived", "pass", "busy")


@dataclass(frozen=True)
class NightCell:
    """One day of a rig's year."""

    x: int
    """From 0, the oldest day."""
    kind: str
    title: str


@dataclass(frozen=True)
class Row:
    """One rig on the fleet's page."""

    rig: str
    verdict: Verdict | None
    when: str
    cause: str
    cells: tuple[NightCell, ...]
    label: str
    trends: tuple[TrendFinding, ...]
    stale: bool
    """Whether its last verdict is old: silence is not health."""
    silent: bool = False
    """Whether the year has no night of it at all: it may be out of use, and is not counted."""


@dataclass(frozen=True)
class Incident:
    """A night in which something was wrong."""

    rig: str
    when: str
    verdict: Verdict
    cause: str
    link: str
    """The run's page without its ending; empty where the run is another controller's."""


def kind_of(verdict: Verdict | None) -> str:
    """The class of a cell."""
    if verdict is None:
        return "busy"
    return "pass" if verdict in _WELL else verdict.value


def row_of(
    rig: str, cells: Sequence[Cell], trends: tuple[TrendFinding, ...], now: datetime, *, silent: bool = False
) -> Row:
    """One rig's year, oldest night first; of several runs of a day the worst counts. At least one, of any time."""
    first = now.date() - timedelta(days=DAYS - 1)
    days: dict[int, Cell] = {}
    for cell in cells:
        x = (moment(cell.ended_at).date() - first).days
        if 0 <= x < DAYS and (x not in days or _rank(cell) < _rank(days[x])):
            days[x] = cell
    shown = tuple(NightCell(x, kind_of(cell.verdict), _title(cell)) for x, cell in sorted(days.items()))
    counted = {kind: sum(one.kind == kind for one in shown) for kind in _WORST}
    label = ", ".join(f"{number} {kind}" for kind, number in counted.items() if number)
    last = next((cell for cell in reversed(cells) if cell.verdict is not None), cells[-1])
    stale = last.verdict is None or now - moment(last.ended_at) > timedelta(hours=STALE_HOURS)
    since = f"no verdict since {moment(last.ended_at):%-d %B %Y}" if last.verdict is not None else "never judged"
    return Row(
        rig=rig,
        verdict=last.verdict,
        when=f"{moment(last.ended_at):%-d %B %Y, %H:%M}",
        cause="; ".join(text for text in (since if stale else "", plain(last.cause)) if text),
        cells=shown,
        label=f"{rig}, {len(shown)} nights: {label or 'none'}",
        trends=trends,
        stale=stale,
        silent=silent,
    )


def incidents_of(cells: Iterable[Cell]) -> list[Incident]:
    """Nights that failed or were not measured, newest first."""
    return [
        Incident(
            rig=cell.rig,
            when=f"{moment(cell.ended_at):%-d %B %Y, %H:%M}",
            verdict=cell.verdict,
            cause=plain(cell.cause),
            link=cell.folder if cell.here else "",
        )
        for cell in reversed(tuple(cells))
        if cell.verdict in (Verdict.FAIL, Verdict.ERROR)
    ]


def charts_of(points: dict[str, tuple[Point, ...]]) -> list[dict[str, Any]]:
    """The curves of a rig's page, one chart a check that has figures; each card is a line, by its UUID."""
    charts = []
    for check, title in CHARTED.items():
        found = points.get(check, ())
        if not found:
            continue
        lines: dict[str, list[Point]] = {}
        for point in found:
            lines.setdefault(point.uuid or point.subject, []).append(point)
        limit = found[-1].limit
        charts.append(
            {
                "title": title,
                "unit": found[-1].unit or "",
                "words": f"{title}: {len(found)} figures, the last {found[-1].found:g}",
                "limit": limit,
                "series": [
                    {
                        "name": many[-1].subject,
                        "x": [point.ended_at for point in many],
                        "y": [point.found for point in many],
                    }
                    for many in lines.values()
                ],
            }
        )
    return charts


def _rank(cell: Cell) -> int:
    return _WORST.index(kind_of(cell.verdict))


def _title(cell: Cell) -> str:
    more = f": {plain(cell.cause)}" if cell.cause else ""
    return f"{moment(cell.ended_at):%-d %B %Y}: {rig_word(cell.verdict)}{more}"
