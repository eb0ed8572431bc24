"""What the metrics are made of, as the index and the last night say it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from rigctl.nightly import last as last_night
from rigctl.store.decisions import newest_decisions
from rigctl.trends import known_of
from rigctl.trends.slow import WINDOW_DAYS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rigctl.model.decision import BaselineDecision
    from rigctl.model.night import LastNight
    from rigctl.model.past import Past, Point
    from rigctl.store.index import Index
    from rigctl.trends import TrendFinding

DAYS = 365
"""A rig without any acceptance for longer has left the fleet, unless an inventory names it."""


@dataclass(frozen=True)
class RigSeen:
    """One rig."""

    rig: str
    rig_class: str
    last: Past | None = None
    """Its newest judged acceptance."""
    busy: bool = False
    """Whether the newest acceptance of all left it out."""
    points: tuple[Point, ...] = ()
    """What that judged acceptance found."""
    trends: tuple[TrendFinding, ...] = ()


@dataclass(frozen=True)
class Seen:
    """Everything."""

    rigs: tuple[RigSeen, ...]
    night: LastNight | None = None
    """None: no night was carried out yet."""
    unreadable: int = 0


def look(index: Index, now: datetime, *, rigs: Mapping[str, str] | None = None, unreadable: int = 0) -> Seen:
    """Ask the index.

    Args:
        index: Brought up to date.
        now: UTC.
        rigs: The fleet, each rig with its class; None takes every rig of the index that was accepted within a year.
        unreadable: How many run directories bringing it up to date left out.

    Raises:
        UsageError: what people decided about baselines, or the last night's file, is damaged.
        RigctlError: the index cannot be used.
    """
    decided = newest_decisions(index.runs)
    since = (now - timedelta(days=DAYS)).astimezone(UTC).isoformat()
    names = dict(rigs) if rigs is not None else dict.fromkeys(sorted({cell.rig for cell in index.cells(since=since)}))
    seen = tuple(_rig(index, name, known or "", now, decided.get(name)) for name, known in names.items())
    return Seen(seen, last_night.read(index.runs), unreadable)


def _rig(index: Index, rig: str, rig_class: str, now: datetime, decision: BaselineDecision | None) -> RigSeen:
    newest = index.newest(rig, judged=False)
    if newest is None:
        return RigSeen(rig, rig_class)
    busy = newest.verdict is None
    last = index.newest(rig) if busy else newest
    if last is None:
        return RigSeen(rig, rig_class or newest.rig_class, busy=busy)
    # Trends look no farther back than this, and a rig's whole past takes long to read.
    window = (now - timedelta(days=WINDOW_DAYS)).astimezone(UTC).isoformat()
    points = index.points(rig, since=window)
    known = known_of(rig, index.pasts(rig, since=window), points, now, decision)
    found = points if last.ended_at >= window else index.points(rig, since=last.ended_at)
    return RigSeen(
        rig, rig_class or last.rig_class, last, busy, tuple(p for p in found if p.run_id == last.run_id), known.trends
    )
