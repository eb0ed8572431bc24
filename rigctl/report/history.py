"""The history of rigs, a rig, or one of its figures, as tables for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from rigctl.model.verdict import Verdict
from rigctl.report.text import counts, figure, moment, plain, rig_word, word

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rigctl.model.decision import BaselineDecision
    from rigctl.model.past import Past, Point
    from rigctl.trends import Series

STYLES = {Verdict.PASS: "green", Verdict.FAIL: "bold red", Verdict.ERROR: "magenta", Verdict.WARN: "yellow"}


def of_fleet(newest: Iterable[tuple[Past, int]]) -> Table:
    """One row a rig: its newest run, and how many runs there are."""
    shown = table("rig", "class", "last run", "verdict", "runs", "cause")
    for past, runs in newest:
        shown.add_row(*cells(past.rig, past.rig_class, when(past.ended_at)), _verdict(past), str(runs), _cause(past))
    return shown


def of_rig(pasts: Sequence[Past], decisions: Sequence[BaselineDecision] = ()) -> Table:
    """One row a run, and one where people decided about the rig's baseline, in the order of time."""
    shown = table("ended", "run", "profile", "verdict", "checks", "cause")
    rows = [(moment(past.ended_at), _of_run(past)) for past in pasts]
    for one in decisions:
        said = cells(when(one.at), one.run or "", "", "baseline", "", one.words)
        rows.append((moment(one.at), said))
    for _, row in sorted(rows, key=lambda row: row[0]):
        shown.add_row(*row)
    return shown


def _of_run(past: Past) -> tuple[str, ...]:
    known = cells(when(past.ended_at), past.run_id, past.profile)
    return (*known, _verdict(past), counts(past.counts), _cause(past))


def of_series(series: Sequence[Series], points: Sequence[Point]) -> Table:
    """One row a figure that was found."""
    shown = table("ended", "run", "subject", "found", "usual", "limit", "verdict")
    usual = {(one.check, point.subject): one for one in series for point in one.points}
    for point in points:
        known = usual[point.check, point.subject]
        found, limit = figure(point.found, point.unit), figure(point.limit, point.unit)
        said = cells(when(point.ended_at), point.run_id, point.subject, found, figure(known.usual), limit)
        shown.add_row(*said, _styled(word(point.verdict), point.verdict))
    return shown


def what_could_be_seen(series: Sequence[Series]) -> list[str]:
    """For each series the smallest change that its history can tell from chance."""
    return [
        f"{one.subject}: usually {figure(one.usual, one.unit)} over {len(one.points)} runs; "
        f"a change of {figure(float(f'{one.detectable:.2g}'), one.unit)} or more would show"
        for one in series
    ]


def table(*columns: str, wide: Sequence[str] = ("cause", "checks")) -> Table:
    """An empty table; only the columns that may be wide are folded."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        made.add_column(column, no_wrap=column not in wide)
    return made


def cells(*texts: str) -> tuple[str, ...]:
    """Texts as cells, made harmless."""
    return tuple(escape(plain(text)) for text in texts)


def when(iso: str) -> str:
    """A time in UTC, to the minute."""
    return f"{moment(iso):%Y-%m-%d %H:%M}"


def _verdict(past: Past) -> str:
    text = rig_word(past.verdict)
    style = STYLES.get(past.verdict) if past.verdict is not None else None
    return f"[{style}]{text}[/{style}]" if style else text


def _styled(text: str, verdict: Verdict) -> str:
    style = STYLES.get(verdict)
    return f"[{style}]{text}[/{style}]" if style else text


def _cause(past: Past) -> str:
    if past.verdict is None:
        return escape(plain(past.busy or ""))
    if not past.causes:
        return ""
    first, *others = past.causes
    more = f" (and {len(others)} more)" if others else ""
    return escape(plain(f"{first.check}[{first.subject}]: {first.reason}{more}"))
