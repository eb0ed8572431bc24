"""A record in the terminal: the cause first, then what follows from it, coverage, state left, exit code and path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from rigctl.model.verdict import Verdict
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
    tally,
    waived,
    warnings_apart,
)
from rigctl.report.text import counts, duration, plain, seconds_between, span, word

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from rigctl.model.verdict import CheckVerdict, Record

STYLE = {
    Verdict.PASS: "green",
    Verdict.WARN: "yellow",
    Verdict.FAIL: "bold red",
    Verdict.ERROR: "bold magenta",
    Verdict.WAIVED: "cyan",
    Verdict.BLIND: "blue",
    Verdict.SKIP: "dim",
}
_INDENT = 6


def print_record(console: Console, record: Record, *, path: Path | None = None) -> None:
    """Print `record` for a person; `path` is the run directory or the report to name at the end."""
    out = _Printer(console)
    length = duration(seconds_between(record.started_at, record.ended_at))
    run = f"{record.kind} {record.run_id}" + (f" · {record.profile}" if record.profile else "")
    out.line((f"{run} · {span(record.started_at, record.ended_at)} ({length})", "dim"))
    if names := simulated(record):
        out.line((f"SIMULATED hardware: {', '.join(names)}", "bold black on yellow"))
    style = "bold green"
    if not record.rigs or tally(record)["unmeasured"]:
        style = "bold magenta"
    if tally(record)["failed"]:
        style = "bold red"
    out.line((headline(record), style))
    for cause in all_causes(record):
        out.cause(cause)
    for warning in warnings_apart(record):
        out.cause(warning)
    out.rigs(record)
    shown = f" · {path}" if path else ""
    out.line((f"exit code {int(record.exit_code)}{shown}", "bold" if record.exit_code else ""))


class _Printer:
    """Prints whole lines: text from rigs is never read as markup."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def line(self, *parts: tuple[str, str], indent: int = 0) -> None:
        text = Text(" " * indent)
        for words, style in parts:
            text.append(words, style=style or None)
        self._console.print(text, soft_wrap=True, highlight=False)

    def cause(self, cause: Cause) -> None:
        self.line()
        v = cause.verdict
        name = word(v.verdict).upper()
        self.line(
            (f"{name:<{_INDENT}}", STYLE[v.verdict]),
            (f"{cause.where} ", "bold"),
            (f"{plain(v.check)}: ", "dim"),
            (cause.sentence, ""),
        )
        if cause.verdict.source:
            self.line((f"limit from {plain(cause.verdict.source)}", "dim"), indent=_INDENT)
        self.fix(cause.verdict)
        if cause.follows:
            self.line((f"from this follows ({len(cause.follows)}):", "dim"), indent=_INDENT)
        for follow in follows_together(cause):
            self.line(
                (f"{word(follow.verdict):<{_INDENT}}", STYLE[follow.verdict]),
                (f"{some(follow.checks)}: ", "dim"),
                (follow.reason, ""),
                indent=_INDENT + 2,
            )

    def fix(self, verdict: CheckVerdict) -> None:
        if verdict.fix:
            self.line(("do: ", "bold"), (plain(verdict.fix), ""), indent=_INDENT)

    def rigs(self, record: Record) -> None:
        table = Table(box=None, show_header=True, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
        for column in ("rig", "verdict", "coverage", "left"):
            table.add_column(column, overflow="fold")
        for rig in rigs_worst_first(record):
            table.add_row(
                Text(plain(rig.name)),
                Text(word(rig_verdict(rig)), style=STYLE[rig_verdict(rig)]),
                Text(counts(rig_counts(rig))),
                Text(plain(rig.left) or "not known"),
            )
        self.line()
        self._console.print(table)
        for left_out in record.busy:
            self.line(
                (f"{plain(left_out.name)} ", "bold"),
                ("busy, left out and not counted: ", "cyan"),
                (plain(left_out.users), ""),
            )
        for one in waived(record):
            self.line((f"waived {one.where} {plain(one.verdict.check)}: {one.sentence}", STYLE[Verdict.WAIVED]))
        for rig in record.rigs:
            for note in rig.notes:
                self.line((f"{plain(rig.name)}: {plain(note)}", "dim"))
