"""`rigctl prune`: thin and drop the telemetry of old runs; records stay."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from rigctl.cli.common import DEFAULT_RUNS, JsonOpt, RunsOpt, console, emit_json, print_error
from rigctl.errors import ExitCode, UsageError
from rigctl.model.pruned import Retention

if TYPE_CHECKING:
    from rigctl.prune import Outcome

EPILOG = "Example: rigctl prune --dry-run --whole-days 30 --thin-days 365"
_KEPT = Retention()
CERTIFICATES = Path("certificates")
"""Where `rigctl certificate create` writes unless it is told otherwise."""

WholeOpt = Annotated[
    int, typer.Option("--whole-days", metavar="N", min=1, help="Telemetry is kept whole for so many days.")
]
ThinOpt = Annotated[
    int,
    typer.Option("--thin-days", metavar="N", min=1, help="It is thinned then, and dropped from so many days on."),
]
PagesOpt = Annotated[
    bool, typer.Option("--pages", help="Remove report.html too where telemetry is not kept whole any more.")
]
CertificatesOpt = Annotated[
    Path,
    typer.Option("--certificates", metavar="DIR", help="Certificates whose runs are kept whole."),
]
DryRunOpt = Annotated[bool, typer.Option("--dry-run", help="Say what would be freed, and change nothing.")]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("prune", epilog=EPILOG)(prune_command)


def prune_command(
    whole_days: WholeOpt = _KEPT.whole_days,
    thin_days: ThinOpt = _KEPT.thin_days,
    pages: PagesOpt = False,
    certificates: CertificatesOpt = CERTIFICATES,
    dry_run: DryRunOpt = False,
    runs: RunsOpt = DEFAULT_RUNS,
    as_json: JsonOpt = False,
) -> None:
    """Thin the telemetry of old runs, and drop it in the end; records, facts, journals and raw outputs stay."""
    from rigctl.prune import prune  # noqa: PLC0415 - keeps `rigctl --help` fast

    if thin_days < whole_days:
        raise UsageError(
            f"--thin-days {thin_days} is less than --whole-days {whole_days}",
            "both are ages of a run; with the same figure telemetry is dropped without being thinned before",
        )
    retention = Retention(whole_days=whole_days, thin_days=thin_days, pages=pages)
    with console.status("looking at the runs") as status:
        outcome = prune(
            runs,
            retention,
            certificates,
            datetime.now(UTC),
            dry_run=dry_run,
            tell=lambda done, due: status.update(f"{done} of {due} runs"),
        )
    if as_json:
        emit_json(_as_json(outcome, retention, dry_run=dry_run))
    else:
        _print(outcome, dry_run=dry_run)
    raise typer.Exit(print_left_out(outcome))


def total(outcome: Outcome, *, dry_run: bool = False) -> str:
    """A pruning in one line."""
    from rigctl.report.text import room, several  # noqa: PLC0415

    runs = len({one.folder for one in outcome.done})
    if not runs:
        return "nothing is old enough to be pruned"
    what = "would be freed" if dry_run else "freed"
    return f"{room(outcome.freed)} {what} of {room(outcome.bytes_before)} in {several(runs, 'run')}"


def print_left_out(outcome: Outcome) -> ExitCode:
    """Print which runs could not be pruned and why, and return what that makes of the exit code."""
    for one in outcome.left_out:
        print_error(f"{one.folder} was left out: {one.why}", one.fix)
    return ExitCode.CHANGE_INCOMPLETE if outcome.left_out else ExitCode.OK


def _print(outcome: Outcome, *, dry_run: bool) -> None:
    from rich.table import Table  # noqa: PLC0415

    from rigctl.report.text import plain, room  # noqa: PLC0415

    table = Table("run", "days", "what", "would be" if dry_run else "was", "before", "after", box=None, pad_edge=False)
    for one in outcome.done:
        table.add_row(
            one.folder,
            str(one.days),
            plain(one.what),
            one.action,
            room(one.bytes_before),
            room(one.bytes_after),
        )
    if outcome.done:
        Console(markup=False).print(table)
    for kept in outcome.kept:
        typer.echo(f"kept whole: {kept.folder}: {plain(kept.why)}")
    typer.echo(total(outcome, dry_run=dry_run))


def _as_json(outcome: Outcome, retention: Retention, *, dry_run: bool) -> dict[str, Any]:
    return {
        "dry_run": dry_run,
        **retention.model_dump(),
        "files": [
            {
                "run": one.folder,
                "days": one.days,
                "what": one.what,
                "action": one.action,
                "bytes_before": one.bytes_before,
                "bytes_after": one.bytes_after,
            }
            for one in outcome.done
        ],
        "kept": [{"run": one.folder, "why": one.why} for one in outcome.kept],
        "left_out": [{"run": one.folder, "why": one.why, "fix": one.fix} for one in outcome.left_out],
        "bytes_before": outcome.bytes_before,
        "bytes_freed": outcome.freed,
    }
