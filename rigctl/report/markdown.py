"""A record as Markdown, for a ticket or a chat: verdict, causes with fixes, rigs, what was not tested."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rigctl.report.summary import (
    Cause,
    all_causes,
    follows_together,
    headline,
    rig_counts,
    rig_verdict,
    rigs_worst_first,
    simulated,
    some,
    untested,
    waived,
    warnings_apart,
)
from rigctl.report.text import counts, duration, moment, plain, seconds_between, span, word

if TYPE_CHECKING:
    from rigctl.model.verdict import Record

_SPECIAL = re.compile(r"([\\`*_\[\]<>|#~&@])")


def render(record: Record) -> str:
    """Return the document; text from rigs is escaped, so that it stays text."""
    length = duration(seconds_between(record.started_at, record.ended_at))
    parts = [f"`{record.run_id}`", record.kind, escaped(record.profile), f"{moment(record.started_at):%-d %B %Y}"]
    lines = [f"# {headline(record)}", ""]
    lines += [f"{' · '.join(p for p in parts if p)}, {span(record.started_at, record.ended_at)} ({length})", ""]
    if names := simulated(record):
        lines += [f"**SIMULATED hardware:** {', '.join(escaped(n) for n in names)}", ""]
    for cause in [*all_causes(record), *warnings_apart(record)]:
        lines += _cause(cause)
    lines += ["| Rig | Verdict | Coverage | Left |", "|---|---|---|---|"]
    for rig in rigs_worst_first(record):
        left = escaped(rig.left) or "not known"
        lines.append(f"| {escaped(rig.name)} | {word(rig_verdict(rig))} | {counts(rig_counts(rig))} | {left} |")
    lines += ["", *_busy(record), *_waived(record), *_notes(record), *_untested(record)]
    lines.append(f"Exit code {int(record.exit_code)}, rigctl {escaped(record.rigctl_version)}.")
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """Return one line of text that Markdown shows as it is."""
    return _SPECIAL.sub(r"\\\1", plain(text))


def _cause(cause: Cause) -> list[str]:
    v = cause.verdict
    lines = [f"## {word(v.verdict)}: {escaped(cause.where)}", "", escaped(cause.sentence), ""]
    if v.fix:
        lines += [f"**Do:** {escaped(v.fix)}", ""]
    source = f", limit from {escaped(v.source)}" if v.source else ""
    lines += [f"Check {escaped(v.check)}{source}.", ""]
    if cause.follows:
        lines += ["From this follows:", ""]
        for follow in follows_together(cause):
            lines.append(f"- {word(follow.verdict)} {escaped(some(follow.checks))}: {escaped(follow.reason)}")
        lines.append("")
    return lines


def _busy(record: Record) -> list[str]:
    lines = [f"- {escaped(one.name)}: {escaped(one.users)}" for one in record.busy]
    return ["## Busy", "", "Left out because somebody uses them, and not counted:", "", *lines, ""] if lines else []


def _waived(record: Record) -> list[str]:
    lines = [f"- {escaped(one.where)} {escaped(one.verdict.check)}: {escaped(one.sentence)}" for one in waived(record)]
    return ["## Waived", "", *lines, ""] if lines else []


def _notes(record: Record) -> list[str]:
    lines = [f"- {escaped(rig.name)}: {escaped(note)}" for rig in record.rigs for note in rig.notes]
    return [*lines, ""] if lines else []


def _untested(record: Record) -> list[str]:
    found = untested(record)
    if not found:
        return []
    lines = ["## Not tested", ""]
    for item in found:
        what = f"{escaped(some(item.checks))} on {escaped(some(item.where))}"
        lines.append(f"- {word(item.verdict)} {what}: {escaped(item.reason)}")
    return [*lines, ""]
