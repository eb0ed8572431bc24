"""What a rig's past says of it now: changes since the last pass, slow trends, and whether a swap would tell more."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, timedelta
from typing import TYPE_CHECKING

from rigctl.store.decisions import newest_decisions
from rigctl.trends.changes import changes
from rigctl.trends.series import all_series
from rigctl.trends.slow import WATCHED, WINDOW_DAYS, slow_trends

if TYPE_CHECKING:
    from datetime import datetime

    from rigctl.model.decision import BaselineDecision
    from rigctl.model.past import Past, Point
    from rigctl.store.index import Index
    from rigctl.trends.changes import Change
    from rigctl.trends.series import Series
    from rigctl.trends.slow import TrendFinding

OF_ONE_CARD = ("thermals.", "throughput.burn", "power.share", "memory.")
"""Checks whose finding on one card may be the card's or its place's: cooling, supply, slot."""


@dataclass(frozen=True)
class Knowledge:
    """Of one rig."""

    rig: str
    last: Past | None
    """Its newest judged run."""
    last_pass: Past | None
    """The newest accepted run before that one, accepted by its verdict or by people; none from before a reset."""
    changes: tuple[Change, ...]
    """What differs between the two."""
    trends: tuple[TrendFinding, ...]
    swap: str | None
    """A swap of cards that would tell a card from its place; None where nothing asks for one."""
    series: tuple[Series, ...]
    decision: BaselineDecision | None = None
    """What people decided last about its baseline."""

    @property
    def what_changed(self) -> str:
        """In words, for the message."""
        if self.last_pass is None and self.decision is not None:
            return f"never accepted since {self.decision.since[:10]}, from when on its past counts"
        if self.last_pass is None:
            return "never accepted before"
        if not self.changes:
            return "nothing else changed"
        return "; ".join(change.sentence for change in self.changes)

    def usual(self, check: str, subject: str) -> Series | None:
        """The series behind a verdict, by its subject; None where there is no earlier figure."""
        return next((one for one in self.series if one.check == check and one.subject == subject), None)


def know(index: Index, rig: str, *, now: datetime) -> Knowledge:
    """Ask the index what it knows of a rig, up to `now`; the series are those in which slow trends are looked for.

    Raises RigctlError as the index, and UsageError where what people decided about its baseline cannot be read.
    """
    # As runs say it; the index compares their words.
    until, since = (one.astimezone(UTC).isoformat() for one in (now, now - timedelta(days=WINDOW_DAYS)))
    pasts, points = index.pasts(rig, until=until), index.points(rig, *WATCHED, since=since, until=until)
    return known_of(rig, pasts, points, now, newest_decisions(index.runs).get(rig))


def known_of(
    rig: str,
    pasts: tuple[Past, ...],
    points: tuple[Point, ...],
    now: datetime,
    decision: BaselineDecision | None = None,
) -> Knowledge:
    """What these runs and figures say, and since people moved its baseline, those of the time since. Pure."""
    judged = [past for past in pasts if past.verdict is not None]
    last = judged[-1] if judged else None
    last_pass = next((past for past in reversed(judged[:-1]) if _passed(past, decision)), None)
    series = all_series(points)
    return Knowledge(
        rig=rig,
        last=last,
        last_pass=last_pass,
        changes=changes(last_pass, last) if last is not None and last_pass is not None else (),
        trends=slow_trends(series, judged, now, since=decision.since if decision is not None else ""),
        swap=_swap(judged, last),
        series=series,
        decision=decision,
    )


def _passed(past: Past, decision: BaselineDecision | None) -> bool:
    """Whether a later run is compared with this one: accepted, and of the time that people let count."""
    if decision is None:
        return past.accepted
    accepted = past.accepted or decision.accepts(past.run_id)
    return accepted and decision.covers(past.run_id, past.started_at, past.ended_at)


def _swap(judged: list[Past], last: Past | None) -> str | None:
    """Say how a swap would tell a card from its place, or what a swap that was made has told."""
    if last is None:
        return None
    cause = next((one for one in last.causes if one.check.startswith(OF_ONE_CARD)), None)
    card = next((one for one in last.parts.cards if cause is not None and one.subject == cause.subject), None)
    if cause is None or card is None or len(last.parts.cards) < 2:  # noqa: PLR2004 - two cards
        return None
    earlier = [past for past in judged[:-1] if any(one.check == cause.check for one in past.causes)]
    for past in reversed(earlier):
        was = next((one for one in past.parts.cards for c in past.causes if one.subject == c.subject), None)
        if was is None:
            continue
        if was.uuid == card.uuid and was.slot != card.slot:
            return f"it moved with the card {card.subject} from {was.slot} to {card.slot}: it is the card"
        if was.uuid != card.uuid and was.slot == card.slot:
            return f"it stayed in {card.slot} when the card was changed: it is the place (cooling, supply, slot)"
    other = next(one for one in last.parts.cards if one.uuid != card.uuid)
    return (
        f"swap the cards of {card.slot} and {other.slot} and accept again: "
        f"if {cause.check} moves along it is the card, if it stays it is the place"
    )
