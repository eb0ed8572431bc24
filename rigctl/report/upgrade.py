"""An upgrade as a page and as text: how each rig ended, before and after, what changed, how long it took."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rigctl.model.upgrade import End
from rigctl.report.text import duration, figure, moment, plain, seconds_between, several

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rigctl.model.upgrade_summary import RigSummary, StepTime, UpgradeSummary
    from rigctl.store import RunDir

PAGE = "report.html"
_GOOD = (End.UPGRADED, End.AS_ASKED)
_SHOWN = ("thermals.", "power.", "throughput.", "training.", "compute.")
"""Subjects whose figures people compare: temperatures, watts, rates."""
FIGURE_COLUMNS = ("Figure", "Before", "After", "Change")
STEP_COLUMNS = ("Step", "Took", "State")
PACKAGE_COLUMNS = ("Package", "Before", "After")


def figure_rows(rig: RigSummary) -> list[tuple[str, str, str, str]]:
    """Name, before, after and change in per cent of each temperature, power and rate."""
    rows = []
    for one in rig.figures:
        if not one.name.startswith(_SHOWN):
            continue
        before, after = (figure(value, one.unit) or "—" for value in (one.before, one.after))
        change = f"{one.after / one.before - 1:+.1%}" if one.before and one.after is not None else ""
        rows.append((plain(one.name), before, after, change))
    return rows


def headline(summary: UpgradeSummary) -> str:
    """`driver 535: 3 of 3 rigs have it`, or how many have it and how the others ended."""
    good = sum(rig.end.end in _GOOD for rig in summary.rigs)
    ends = [rig.end.end for rig in summary.rigs if rig.end.end not in _GOOD]
    others = [f"{ends.count(end)} {end.value.replace('_', ' ')}" for end in End if end in ends]
    return f"{summary.wishes}: " + ", ".join([f"{good} of {several(len(summary.rigs), 'rig')} have it", *others])


def write_page(run: RunDir, summary: UpgradeSummary) -> Path:
    """Write the page into the run directory, atomically.

    Raises:
        UsageError: the place cannot be written.
        RigctlError: no room left.
    """
    return run.write_text_atomic(PAGE, render_page(summary))


def render_page(summary: UpgradeSummary) -> str:
    """Return the whole page; everything is in it."""
    # Its libraries take a quarter of a second to import: nobody else is to wait for them.
    from markupsafe import Markup  # noqa: PLC0415

    from rigctl.report.html import environment, template  # noqa: PLC0415

    return (
        environment()
        .get_template("upgrade.html.j2")
        .render(
            summary=summary,
            headline=headline(summary),
            tone="pass" if all(rig.end.end in _GOOD for rig in summary.rigs) else "fail",
            started=f"{moment(summary.started_at):%-d %B %Y, %H:%M}",
            ended=f"{moment(summary.ended_at):%H:%M} UTC",
            length=duration(seconds_between(summary.started_at, summary.ended_at)),
            simulated=[rig.end.rig for rig in summary.rigs if rig.simulated],
            views=[_view(rig) for rig in summary.rigs],
            figure_columns=FIGURE_COLUMNS,
            step_columns=STEP_COLUMNS,
            package_columns=PACKAGE_COLUMNS,
            style=Markup(template("page.css")),  # noqa: S704 - our own file
        )
    )


def _view(rig: RigSummary) -> dict[str, object]:
    return {
        "rig": rig,
        "good": rig.end.end in _GOOD,
        "word": rig.end.end.value.replace("_", " "),
        "took": duration(rig.seconds) if rig.seconds is not None else "",
        "own": f"{rig.own_seconds:.1f} s" if rig.own_seconds is not None else "",
        "figures": figure_rows(rig),
        "steps": [_step_row(one) for one in rig.steps],
        "packages": [(one.name, one.before or "—", one.after or "—") for one in rig.packages],
    }


def _step_row(one: StepTime) -> tuple[str, str, str]:
    words = {"done": "done", "failed": "failed", "cut": "cut off", "under_way": "not ended"}
    took = f"{one.seconds:.1f} s" if one.seconds is not None else "—"
    return one.step.value.replace("_", " "), took, words[one.state]


def render_text(summary: UpgradeSummary) -> str:
    """Return the same as Markdown: a terminal and a chat show it well."""
    lines = [f"# {headline(summary)}", "", f"upgrade {summary.run_id}"]
    for rig in summary.rigs:
        one = rig.end
        lines += ["", f"## {plain(one.rig)}: {one.end.value.replace('_', ' ')}", ""]
        lines += [plain(text) for text in (one.reason, f"do: {one.hint}" if one.hint else "") if text]
        lines += _markdown_table(FIGURE_COLUMNS, figure_rows(rig))
        lines += _markdown_table(PACKAGE_COLUMNS, [(p.name, p.before or "—", p.after or "—") for p in rig.packages])
        lines += [f"- {plain(text)}" for text in rig.other_changes]
        lines += _markdown_table(STEP_COLUMNS, [_step_row(step) for step in rig.steps])
        if rig.own_seconds is not None:
            lines += ["", f"rigctl's own time: {rig.own_seconds:.1f} s"]
    if summary.to_do:
        lines += ["", plain(summary.to_do)]
    return "\n".join(lines) + "\n"


def _markdown_table(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    if not rows:
        return []
    cells = [[plain(cell).replace("|", "\\|") for cell in row] for row in rows]
    return [
        "",
        f"| {' | '.join(columns)} |",
        f"|{'---|' * len(columns)}",
        *(f"| {' | '.join(row)} |" for row in cells),
        "",
    ]
