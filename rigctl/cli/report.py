"""`rigctl report`: a judged run, or an upgrade, as a page, or as data."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from rigctl.cli.common import DEFAULT_RUNS, RunsOpt, console
from rigctl.errors import UsageError
from rigctl.report.write import OWN_FILE, Format, render, write
from rigctl.store import RunDir, dumps
from rigctl.store.files import replace_durably
from rigctl.store.ids import LATEST
from rigctl.store.pruned import said_of

_STDOUT = Path("-")


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command(
        epilog="Example: rigctl report latest · rigctl report 2026-11-30T2300Z-7f3a --format md --output night.md"
    )(report)


def report(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="A run's id, its directory, or `latest`: the last acceptance.")
    ],
    form: Annotated[
        Format,
        typer.Option("--format", help="html and junit go into the run directory, json, csv and md to stdout."),
    ] = Format.HTML,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="PATH", help="Write there instead; - is stdout.")
    ] = None,
    runs: RunsOpt = DEFAULT_RUNS,
) -> None:
    """Make a report of a run from its directory; prints the path of the file it wrote."""
    run_dir = RunDir.open(runs, run, kind="accept" if run == LATEST else None)
    if run_dir.read_info().kind == "upgrade":
        _report_upgrade(run_dir, form, output)
        return
    record = run_dir.read_record()
    if output == _STDOUT or (output is None and form not in OWN_FILE):
        sys.stdout.write(render(run_dir, record, form))
        return
    page = run_dir.path / OWN_FILE[Format.HTML]
    if form is Format.HTML and output is None and page.is_file() and _pruned(run_dir):
        # It shows curves that nobody could draw again.
        console.print("its page was made before telemetry was pruned, and stays; --output PATH: of what is left")
        sys.stdout.write(f"{page}\n")
        return
    sys.stdout.write(f"{write(run_dir, record, form, output)}\n")


def _pruned(run_dir: RunDir) -> bool:
    return any(said_of(run_dir.path, rig.name) for rig in run_dir.read_info().rigs)


def _report_upgrade(run_dir: RunDir, form: Format, output: Path | None) -> None:
    from rigctl.report.upgrade import PAGE, render_page, render_text  # noqa: PLC0415 - keeps `rigctl --help` fast
    from rigctl.upgrade.summary import upgrade_summary  # noqa: PLC0415

    summary = upgrade_summary(run_dir)
    render = {
        Format.HTML: lambda: render_page(summary),
        Format.MD: lambda: render_text(summary),
        Format.JSON: lambda: dumps(summary) + "\n",
    }.get(form)
    if render is None:
        raise UsageError(f"an upgrade has no report of the form {form.value}", "html, md and json are there for it")
    target = output or (run_dir.path / PAGE if form is Format.HTML else _STDOUT)
    if target == _STDOUT:
        sys.stdout.write(render())
        return
    replace_durably(target, render().encode("utf-8", "replace"))
    sys.stdout.write(f"{target}\n")
