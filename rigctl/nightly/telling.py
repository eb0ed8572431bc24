"""Who is told what: on change only, a reminder while a rig stays bad, one all-clear. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from rigctl.model.verdict import Record, Verdict
from rigctl.nightly.told import Message, RigTold, Told
from rigctl.report.line import morning_line, rig_lines
from rigctl.report.text import plain, several

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rigctl.model.nightly import NightlySpec
    from rigctl.model.verdict import RigRecord
    from rigctl.nightly.told import Absence
    from rigctl.trends import Knowledge

BAD = (Verdict.FAIL, Verdict.ERROR)
LEFT_OUT = "left out"
REMEMBERED_DAYS = 60
"""A slow trend that was said is not said anew while it was last seen less than so many days ago."""
_UNKNOWN = (
    "nobody knows how it is; make room for it (`rigctl nightly plan`), or accept it by day (`rigctl accept {rig}`)"
)


@dataclass(frozen=True)
class Found:
    """What a night found."""

    record: Record
    """All rigs that were measured."""
    known: Mapping[str, Knowledge] = field(default_factory=dict)
    """What the past says of each."""
    absences: Mapping[str, Absence] = field(default_factory=dict)
    """The rigs that it left out."""


@dataclass
class _Said:
    """What a night says, on the way to its messages; by rig."""

    rigs: dict[str, RigTold]
    changed: dict[str, str] = field(default_factory=dict)
    crept: list[str] = field(default_factory=list)
    cleared: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)


def after_night(told: Told, found: Found, spec: NightlySpec, now: datetime) -> tuple[Told, tuple[Message, ...]]:
    """Decide what a night asks to be told.

    Args:
        told: What people know.
        found: What the night found.
        spec: The park's wishes.
        now: Local time.
    """
    said = _Said(dict(told.rigs))
    for rig in found.record.rigs:
        _measured(said, rig, found.known.get(rig.name), spec, now)
    for name, absence in sorted(found.absences.items()):
        _left_out(said, name, absence, spec, now)
    digest = spec.digest_weekday == now.weekday() and told.digest_at[:10] != now.date().isoformat()
    messages = _messages(said, found, spec, digest=digest)
    known_now = told.model_copy(update={"rigs": said.rigs})
    if messages:
        known_now = known_now.model_copy(update={"digest_at": now.isoformat()})
    return known_now, messages


def _measured(said: _Said, rig: RigRecord, known: Knowledge | None, spec: NightlySpec, now: datetime) -> None:
    before = said.rigs.get(rig.name, RigTold())
    bad, trends = _bad(rig), _trend_keys(known)
    lines = lines_of(rig, known, spec) if bad else ""
    told_at = before.told_at if bad else ""
    remembered = _remembered(before, now)
    if set(trends) - set(before.trends) - remembered.keys():
        said.crept.append(rig.name)
    if bad and bad != before.bad:
        said.changed[rig.name] = lines
        told_at = now.isoformat()
    elif before.bad and not bad:
        said.cleared.append(rig.name)
    seen = remembered | dict.fromkeys(trends, now.date().isoformat())
    said.rigs[rig.name] = RigTold(bad=bad, lines=lines, told_at=told_at, trends=trends, trends_seen=seen)


def _remembered(before: RigTold, now: datetime) -> dict[str, str]:
    """The trends that people know of, with the day on which each was seen last; what is long gone is forgotten."""
    since = (now - timedelta(days=REMEMBERED_DAYS)).date().isoformat()
    return {key: day for key, day in before.trends_seen.items() if day >= since}


def _left_out(said: _Said, rig: str, absence: Absence, spec: NightlySpec, now: datetime) -> None:
    """One night without a rig is said once; so many in a row are a finding, for silence is not health."""
    before = said.rigs.get(rig, RigTold())
    if absence.nights < spec.left_out_nights:
        if not before.left_out:
            said.left_out[rig] = absence.line(rig)
        said.rigs[rig] = before.model_copy(update={"left_out": True})
        return
    lines = f"??   {absence.line(rig)}\n  do: {_UNKNOWN.format(rig=rig)}"
    told_at = before.told_at
    if before.bad != LEFT_OUT:
        said.changed[rig] = lines
        told_at = now.isoformat()
    known = {"trends": before.trends, "trends_seen": before.trends_seen}
    said.rigs[rig] = RigTold(bad=LEFT_OUT, lines=lines, told_at=told_at, left_out=True, **known)


def _messages(said: _Said, found: Found, spec: NightlySpec, *, digest: bool) -> tuple[Message, ...]:
    head, *_ = morning_line(found.record).splitlines()
    absent, absent_rigs = tuple(said.left_out.values()), tuple(said.left_out)
    messages = []
    if said.changed or said.crept:
        body = "\n".join([*said.changed.values(), *_trends(found.known), *absent])
        rigs = (*said.changed, *said.crept, *absent_rigs)
        messages.append(Message(kind="change", title=head, body=body, rigs=rigs))
    if said.cleared:
        title = f"rigctl: {', '.join(said.cleared)} well again"
        body, rigs = "\n".join([head, *absent]), (*said.cleared, *absent_rigs)
        if messages:
            body, rigs = head, tuple(said.cleared)
        messages.append(Message(kind="clear", title=title, body=body, rigs=rigs))
    if not messages and digest:
        body = "\n".join([morning(found, spec), *_trends(found.known)])
        messages.append(Message(kind="digest", title=head, body=body, rigs=absent_rigs))
    elif not messages and absent:
        title = f"rigctl: {', '.join(absent_rigs)} left out tonight"
        messages.append(Message(kind="left_out", title=title, body="\n".join([*absent, head]), rigs=absent_rigs))
    return tuple(messages)


def reminders(told: Told, spec: NightlySpec, now: datetime) -> tuple[Told, tuple[Message, ...]]:
    """Decide whether rigs that stay bad are told again; never in the quiet hours."""
    if spec.quiet_hours is not None and spec.quiet_hours.holds(now.time()):
        return told, ()
    due = {
        name: rig
        for name, rig in told.rigs.items()
        if rig.bad and now - datetime.fromisoformat(rig.told_at) >= timedelta(hours=spec.reminder_hours)
    }
    if not due:
        return told, ()
    title = f"rigctl: {several(len(due), 'rig')} still bad: {', '.join(due)}"
    again = {name: rig.model_copy(update={"told_at": now.isoformat()}) for name, rig in due.items()}
    body = "\n".join(rig.lines for rig in due.values())
    message = Message(kind="reminder", title=title, body=body, rigs=tuple(due))
    return told.model_copy(update={"rigs": {**told.rigs, **again}}), (message,)


def morning(found: Found, spec: NightlySpec) -> str:
    """The morning line of a night, with what else changed on each rig that needs somebody, and who was left out."""
    head, *_ = morning_line(found.record).splitlines()
    told = [lines_of(rig, found.known.get(rig.name), spec) for rig in _worst_first(found.record.rigs) if _bad(rig)]
    return "\n".join([head, *told, *left_out_lines(found.absences)])


def left_out_lines(absences: Mapping[str, Absence]) -> list[str]:
    """Who was left out and why, one line each."""
    return [one.line(rig) for rig, one in sorted(absences.items())]


def lines_of(rig: RigRecord, known: Knowledge | None, spec: NightlySpec) -> str:
    """What is said of one rig that needs somebody."""
    link = f"{spec.link.rstrip('/')}/rigs/{rig.name}.html" if spec.link else ""
    text = rig_lines(rig, known.what_changed if known is not None else "", link)
    return f"{text}\n  card or place: {plain(known.swap)}" if known is not None and known.swap else text


def merged(records: Sequence[Record]) -> Record:
    """One record of a night in which rigs were accepted one by one. Raises ValueError where there is none."""
    if not records:
        message = "no run of this night has a record"
        raise ValueError(message)
    first = min(records, key=lambda one: one.started_at)
    return first.model_copy(
        update={
            "ended_at": max(one.ended_at for one in records),
            "rigs": tuple(rig for one in records for rig in one.rigs),
            "busy": tuple(rig for one in records for rig in one.busy),
        }
    )


def nothing_measured(absences: Mapping[str, Absence]) -> Message:
    """What is sent after a night in which no rig was measured; every time, for silence is not health."""
    body = "\n".join(left_out_lines(absences)) or "the plan held no rig"
    return Message(kind="change", title="rigctl: no rig was measured tonight", body=body)


def _trend_keys(known: Knowledge | None) -> tuple[str, ...]:
    return tuple(sorted(f"{one.check}[{one.key}]" for one in known.trends)) if known is not None else ()


def _bad(rig: RigRecord) -> str:
    if rig.verdict not in BAD:
        return ""
    causes = sorted(f"{one.key}={one.verdict.value}" for one in rig.causes)
    return ", ".join(causes) or rig.verdict.value


def _worst_first(rigs: Sequence[RigRecord]) -> list[RigRecord]:
    return sorted(rigs, key=lambda rig: (BAD.index(rig.verdict) if rig.verdict in BAD else len(BAD), rig.name))


def _trends(known: Mapping[str, Knowledge]) -> list[str]:
    return [
        f"trend {name} {trend.sentence}\n  do: {trend.fix}."
        for name, one in sorted(known.items())
        for trend in one.trends
    ]
