"""`rigctl compare`: two runs side by side."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from rigctl.cli.common import DEFAULT_RUNS, JsonOpt, RunsOpt, emit_json

EPILOG = "Example: rigctl compare 2026-11-29T2300Z-51c0 latest"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("compare", epilog=EPILOG)(compare_command)


def compare_command(
    before: Annotated[str, typer.Argument(metavar="RUN", help="The earlier run: id, directory or `latest`.")],
    after: Annotated[str, typer.Argument(metavar="RUN", help="The later run.")],
    runs: RunsOpt = DEFAULT_RUNS,
    as_json: JsonOpt = False,
) -> None:
    """Show what differs between two acceptances: parts, verdicts, and figures by more than repeats do."""
    from rigctl.report.compare import tables  # noqa: PLC0415 - keeps `rigctl --help` fast
    from rigctl.store import RunDir  # noqa: PLC0415
    from rigctl.trends.compare import compare  # noqa: PLC0415

    one, other = (RunDir.open(runs, run, kind="accept") for run in (before, after))
    found = compare(one, other)
    if as_json:
        emit_json([rig.as_json() for rig in found])
        return
    out = Console()
    for part in tables(one.run_id, other.run_id, found):
        out.print(part)
