"""The history of rigs, a rig, or one of its figures, as tables for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from rigctl.model.verdict import Verdict
from rigctl.report.text import counts, figure, moment, plain, rig_word, word

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rigctl.model.past import Past, Point
    from rigctl.trends import Series

STYLES = {Verdict.PASS: "green", Verdict.FAIL: "bold red", Verdict.ERROR: "magenta", Verdict.WARN: "yellow"}


def of_fleet(newest: Iterable[tuple[Past, int]]) -> Table:
    """One row a rig: its newest run, and how many runs there are."""
    table = _table("rig", "class", "last run", "verdict", "runs", "cause")
    for past, runs in newest:
        table.add_row(*_cells(past.rig, past.rig_class, _when(past.ended_at)), _verdict(past), str(runs), _cause(past))
    return table


def of_rig(pasts: Sequence[Past]) -> Table:
    """One row a run."""
    table = _table("ended", "run", "profile", "verdict", "checks", "cause")
    for past in pasts:
        cells = _cells(_when(past.ended_at), past.run_id, past.profile)
        table.add_row(*cells, _verdict(past), counts(past.counts), _cause(past))
    return table


def of_series(series: Sequence[Series], points: Sequence[Point]) -> Table:
    """One row a figure that was found."""
    table = _table("ended", "run", "subject", "found", "usual", "limit", "verdict")
    usual = {(one.check, point.subject): one for one in series for point in one.points}
    for point in points:
        known = usual[point.check, point.subject]
        found, limit = figure(point.found, point.unit), figure(point.limit, point.unit)
        cells = _cells(_when(point.ended_at), point.run_id, point.subject, found, figure(known.usual), limit)
        table.add_row(*cells, _styled(word(point.verdict), point.verdict))
    return table


def what_could_be_seen(series: Sequence[Series]) -> list[str]:
    """For each series the smallest change that its history can tell from chance."""
    return [
        f"{one.subject}: usually {figure(one.usual, one.unit)} over {len(one.points)} runs; "
        f"a change of {figure(float(f'{one.detectable:.2g}'), one.unit)} or more would show"
        for one in series
    ]


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, no_wrap=column not in ("cause", "checks"))
    return table


def _cells(*texts: str) -> tuple[str, ...]:
    return tuple(escape(plain(text)) for text in texts)


def _when(iso: str) -> str:
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
