"""Two runs side by side, for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from rigctl.report.text import figure, plain, word

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from rigctl.model.verdict import Verdict
    from rigctl.trends.compare import Compared

NOTHING = "–"


def tables(before: str, after: str, found: Sequence[Compared]) -> Iterator[RenderableType]:
    """For each rig what differs; or that nothing does."""
    for rig in found:
        if rig.same:
            yield f"[bold]{escape(rig.rig)}[/bold]: no difference but what repeats have"
            continue
        table = Table("what", escape(before), escape(after), "", title=escape(rig.rig), title_justify="left", box=None)
        for change in rig.parts:
            at = f" ({change.where})" if change.where != "rig" else ""
            table.add_row(*(escape(plain(text)) for text in (change.what + at, change.before, change.after)), "")
        for verdict in rig.verdicts:
            name = escape(f"{verdict.check}[{verdict.subject}]")
            table.add_row(name, _said(verdict.before), _said(verdict.after), escape(plain(verdict.reason)))
        for one in rig.figures:
            share = f"{one.share:+.1%}" if one.share is not None else ""
            name = escape(f"{one.check}[{one.subject}]")
            table.add_row(name, figure(one.before, one.unit), figure(one.after, one.unit), share)
        yield table


def _said(verdict: Verdict | None) -> str:
    return NOTHING if verdict is None else word(verdict)
