"""Who is told what: on change only, a reminder while a rig stays bad, one all-clear. Pure."""

from __future__ import annotations

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
    from rigctl.trends import Knowledge

BAD = (Verdict.FAIL, Verdict.ERROR)


def after_night(
    told: Told, record: Record, known: Mapping[str, Knowledge], spec: NightlySpec, now: datetime
) -> tuple[Told, tuple[Message, ...]]:
    """Decide what a night's record asks to be told.

    Args:
        told: What people know.
        record: All rigs of the night.
        known: What the past says of each.
        spec: The park's wishes.
        now: Local time.
    """
    rigs, changed, cleared, crept = dict(told.rigs), {}, [], []
    for rig in record.rigs:
        before = rigs.get(rig.name, RigTold())
        bad = _bad(rig)
        lines = lines_of(rig, known.get(rig.name), spec) if bad else ""
        trends = _trend_keys(known.get(rig.name))
        if set(trends) - set(before.trends):
            crept.append(rig.name)
        if bad and bad != before.bad:
            changed[rig.name] = lines
            rigs[rig.name] = RigTold(bad=bad, lines=lines, told_at=now.isoformat(), trends=trends)
        elif bad:
            rigs[rig.name] = before.model_copy(update={"lines": lines, "trends": trends})
        else:
            if before.bad:
                cleared.append(rig.name)
            rigs[rig.name] = RigTold(trends=trends)
    messages = []
    head, *_ = morning_line(record).splitlines()
    if changed or crept:
        body = "\n".join([*changed.values(), *_trends(known)])
        messages.append(Message(kind="change", title=head, body=body, rigs=(*changed, *crept)))
    if cleared:
        names = ", ".join(cleared)
        title = f"rigctl: {names} well again"
        messages.append(Message(kind="clear", title=title, body=head, rigs=tuple(cleared)))
    known_now = told.model_copy(update={"rigs": rigs})
    if not messages and spec.digest_weekday == now.weekday() and told.digest_at[:10] != now.date().isoformat():
        body = "\n".join([morning(record, known, spec), *_trends(known)])
        messages.append(Message(kind="digest", title=head, body=body))
    if messages:
        known_now = known_now.model_copy(update={"digest_at": now.isoformat()})
    return known_now, tuple(messages)


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


def morning(record: Record, known: Mapping[str, Knowledge], spec: NightlySpec) -> str:
    """The morning line of a night, with what else changed on each rig that needs somebody."""
    head, *rest = morning_line(record).splitlines()
    busy = [line for line in rest if line.startswith("busy ")]
    told = [lines_of(rig, known.get(rig.name), spec) for rig in _worst_first(record.rigs) if _bad(rig)]
    return "\n".join([head, *told, *busy])


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


def nothing_measured(left_out: Mapping[str, str]) -> Message:
    """What is sent after a night in which no rig was measured; every time, for silence is not health."""
    body = "\n".join(f"left out {rig}: {why}" for rig, why in sorted(left_out.items()))
    return Message(kind="change", title="rigctl: no rig was measured tonight", body=body or "the plan held no rig")


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
