"""`rigctl baseline`: what a rig is compared with, and people's word on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from rigctl.cli.common import DEFAULT_RUNS, JsonOpt, RunsOpt, emit_json

if TYPE_CHECKING:
    from rigctl.baselines import Shown
    from rigctl.trends import Series

SHOW = "Example: rigctl baseline show rig1"
ACCEPT = 'Example: rigctl baseline accept latest rig1 --reason "new card in slot 2, ticket 4711"'
RESET = 'Example: rigctl baseline reset rig1 --reason "moved to another room"'

RigsArg = Annotated[
    str,
    typer.Argument(metavar="RIGS", help="Rigs or classes that runs know: 'rig1,rig2', 'rig*', 'class_x:!rig3', all."),
]
ReasonOpt = Annotated[
    str, typer.Option("--reason", metavar="TEXT", help="Why, in a few words; kept with your name and the time.")
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True, help="What rigs are compared with: shown, accepted anew, or forgotten.")
    group.command("show", epilog=SHOW)(show_command)
    group.command("accept", epilog=ACCEPT)(accept_command)
    group.command("reset", epilog=RESET)(reset_command)
    app.add_typer(group, name="baseline")


def show_command(rigs: RigsArg = "all", runs: RunsOpt = DEFAULT_RUNS, as_json: JsonOpt = False) -> None:
    """Show which accepted runs make up rigs' baselines, with parts, and figures with median, range and number."""
    from rigctl.baselines import show  # noqa: PLC0415 - keeps `rigctl --help` fast
    from rigctl.report.baseline import of_one, of_rigs  # noqa: PLC0415

    found = show(runs, rigs)
    if as_json:
        emit_json([_as_data(one) for one in found])
        return
    out = Console()
    if len(found) == 1:
        one = found[0]
        for part in of_one(one.rig, one.runs, one.figures, one.since, one.decision):
            out.print(part)
        return
    for part in of_rigs([(one.rig, one.runs, one.since, one.decision) for one in found]):
        out.print(part)
    typer.echo("figures of one rig: rigctl baseline show RIG")


def accept_command(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run: its id, its directory, or `latest`.")],
    reason: ReasonOpt,
    rigs: RigsArg = "all",
    runs: RunsOpt = DEFAULT_RUNS,
    as_json: JsonOpt = False,
) -> None:
    """Accept what a run showed as the new reference, although it differs from before; limits of the spec stay.

    From then on rigs are compared with this run and the accepted ones after it. An earlier run takes it back.
    """
    from rigctl.baselines import accept  # noqa: PLC0415

    done = accept(runs, run, rigs, reason)
    if as_json:
        emit_json(
            {"decisions": [one.model_dump(mode="json") for one in done.decisions], "failed_in_that_run": done.failed}
        )
        return
    for one in done.decisions:
        typer.echo(f"{one.rig}: {one.sentence}")
        if failed := done.failed.get(one.rig):
            typer.echo(f"  failed in that run: {', '.join(failed)}; what is beyond a limit of the spec fails again")


def reset_command(
    rig: Annotated[str, typer.Argument(metavar="RIG", help="The rig, as its runs name it.")],
    reason: ReasonOpt,
    runs: RunsOpt = DEFAULT_RUNS,
    as_json: JsonOpt = False,
) -> None:
    """Forget a rig's past: the next run that accepts it is the first. Runs stay, and so does its history."""
    from rigctl.baselines import reset  # noqa: PLC0415

    decision = reset(runs, rig, reason)
    if as_json:
        emit_json(decision)
    else:
        typer.echo(f"{rig}: {decision.sentence}")


def _as_data(one: Shown) -> dict[str, Any]:
    parts = one.runs[-1].parts if one.runs else None
    return {
        "rig": one.rig,
        "rig_class": one.rig_class,
        "since": one.since,
        "decision": one.decision.model_dump(mode="json") if one.decision is not None else None,
        "runs": [
            {
                "run_id": past.run_id,
                "ended_at": past.ended_at,
                "profile": past.profile,
                "verdict": past.verdict.value if past.verdict is not None else None,
            }
            for past in one.runs
        ],
        "parts": parts.model_dump(mode="json") if parts is not None else None,
        "figures": [_figure(series) for series in one.figures],
    }


def _figure(one: Series) -> dict[str, Any]:
    return {
        "check": one.check,
        "subject": one.subject,
        "key": one.key,
        "unit": one.unit,
        "median": one.usual,
        "lowest": min(one.values),
        "highest": max(one.values),
        "n": len(one.values),
        "newest": one.values[-1],
    }
