"""The morning line: a whole night in a few lines, for a chat or a mail's subject and body."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rigctl.model.verdict import Verdict
from rigctl.report.summary import busy_said, causes, of_verdict, rigs_worst_first, tally, waivers_said
from rigctl.report.text import plain, several, span

if TYPE_CHECKING:
    from rigctl.model.verdict import Record, RigRecord


def morning_line(record: Record) -> str:
    """Return one line for the fleet and, for each rig that needs somebody, what was seen and what to do."""
    numbers, total = tally(record), len(record.rigs)
    when = span(record.started_at, record.ended_at)
    if numbers["failed"] or numbers["unmeasured"] or not total:
        head = _bad_head(numbers, total)
        told = [rig_lines(r) for r in rigs_worst_first(record) if causes(r)]
        return "\n".join([f"rigctl: {head} ({when})", *told, *_busy_lines(record)])
    extras = [
        f"{several(len(of_verdict(record, Verdict.WARN)), 'warning')}",
        waivers_said(record),
        *([busy_said(record)] if record.busy else []),
    ]
    return f"rigctl: {total} of {total} ok · {' · '.join(extras)} ({when})"


def _busy_lines(record: Record) -> list[str]:
    return [f"busy {plain(one.name)}: {plain(one.users)}" for one in record.busy]


def _bad_head(numbers: dict[str, int], total: int) -> str:
    if not total:
        return "no rig was measured"
    parts = [f"{numbers['failed']} of {total} FAILED"] if numbers["failed"] else []
    if numbers["unmeasured"]:
        parts.append(
            f"{numbers['unmeasured']} not measured" if parts else f"{numbers['unmeasured']} of {total} NOT MEASURED"
        )
    return " · ".join([*parts, f"{numbers['ok']} ok"])


def rig_lines(rig: RigRecord, changed: str = "", link: str = "") -> str:
    """Return what was seen on a rig that needs somebody, and what to do.

    Args:
        rig: The rig; it has a cause.
        changed: What else changed since the last pass; left out where empty.
        link: Where more stands; left out where empty.
    """
    first, *others = causes(rig)
    mark = "FAIL" if rig.verdict is Verdict.FAIL else "??  "
    more = f"; and {several(len(others), 'other cause')}" if others else ""
    left = f" Left: {plain(rig.left)}." if rig.left else ""
    since = f"  since last pass: {plain(changed)}\n" if changed else ""
    more_at = f" → {link}" if link else ""
    do = f"  do: {plain(first.verdict.fix) or 'see the report'}.{left}{more_at}"
    return f"{mark} {first.where}: {first.sentence}{more}\n{since}{do}"
