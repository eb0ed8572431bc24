"""`rigctl evidence`: what a repair needs, in one archive."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from rigctl.cli.common import (
    DEFAULT_RUNS,
    AskBecomeOpt,
    InventoryOpt,
    JsonOpt,
    RunsOpt,
    console,
    emit_json,
    with_sudo_password,
)
from rigctl.cli.one import RigArg, one_rig
from rigctl.errors import ExitCode

EPILOG = "Example: rigctl evidence rig1 --output rig1.tar.gz"
OutputOpt = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="The archive to write.", show_default="./evidence-RIG-TIME.tar.gz"
    ),
]
BugReportOpt = Annotated[
    bool, typer.Option("--bug-report", help="Run nvidia-bug-report.sh on the rig too; it takes minutes.")
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("evidence", epilog=EPILOG)(evidence_command)


def evidence_command(
    rig: RigArg,
    inventory: InventoryOpt = None,
    output: OutputOpt = None,
    runs: RunsOpt = DEFAULT_RUNS,
    bug_report: BugReportOpt = False,
    ask_become_pass: AskBecomeOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Bundle identity, logs, sensors and the last runs of a rig; changes nothing there."""
    from rigctl import evidence  # noqa: PLC0415 - keeps `rigctl --help` fast

    (known,) = with_sudo_password((one_rig(inventory, rig),), asked=ask_become_pass)
    found = evidence.collect(
        known, runs, lambda text: console.print(text, markup=False, soft_wrap=True), bug_report=bug_report
    )
    path = output or Path(f"evidence-{known.name}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.tar.gz")
    evidence.write(found, path)
    if as_json:
        emit_json({"path": str(path), **found.manifest()})
    else:
        for piece in found.problems:
            console.print(f"{piece.file}: {piece.problem}", markup=False, soft_wrap=True)
        typer.echo(str(path))
    raise typer.Exit(ExitCode.OK if found.unreached is None else ExitCode.UNMEASURED)
