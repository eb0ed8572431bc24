"""`rigctl accept`: burn, train, judge and report a fleet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rigctl.cli.common import (
    DEFAULT_RUNS,
    AskBecomeOpt,
    EvictOpt,
    IgnoreLockOpt,
    InventoryOpt,
    JsonOpt,
    RigsArg,
    RunsOpt,
    console,
    emit_json,
    with_sudo_password,
)

if TYPE_CHECKING:
    from rigctl.model.rig import Rig

EPILOG = "Example: rigctl accept rig1,rig2 --profile smoke -i ./inventory"

ProfileOpt = Annotated[
    str, typer.Option("--profile", metavar="NAME", help="Which profile of the inventory's rig_profiles to run.")
]
TestsOpt = Annotated[
    list[Path] | None,
    typer.Option(
        "--acceptance-tests",
        metavar="DIR",
        help="A folder of your own testinfra files; may be repeated.",
        show_default="acceptance/ beside the inventory, where it holds any",
    ),
]


AcrossOpt = Annotated[
    bool, typer.Option("--across", help="Let the rigs train together too, over the network between them.")
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("accept", epilog=EPILOG)(accept_command)


def accept_command(
    rigs: RigsArg = "all",
    profile: ProfileOpt = "standard",
    inventory: InventoryOpt = None,
    runs: RunsOpt = DEFAULT_RUNS,
    acceptance_tests: TestsOpt = None,
    across: AcrossOpt = False,
    evict_users: EvictOpt = False,
    ignore_lock: IgnoreLockOpt = False,
    ask_become_pass: AskBecomeOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Accept rigs: facts, burns under the rig's own guard, training, verdicts and a report."""
    from rigctl.accept import AcceptOptions, accept, start_run  # noqa: PLC0415 - keeps `rigctl --help` fast
    from rigctl.acceptance.own import beside  # noqa: PLC0415
    from rigctl.cli.live import watch  # noqa: PLC0415
    from rigctl.inventory import DEFAULT_INVENTORY, load_fleet  # noqa: PLC0415
    from rigctl.measure.claim import Claim  # noqa: PLC0415
    from rigctl.measure.progress import Progress  # noqa: PLC0415
    from rigctl.report.terminal import print_record  # noqa: PLC0415
    from rigctl.upgrade.left import say_left  # noqa: PLC0415

    fleet = with_sudo_password(load_fleet(inventory, rigs), asked=ask_become_pass)
    if across:
        fleet = _meeting(fleet, profile, inventory)
    say_left(runs, [rig.name for rig in fleet], console)
    asked: dict[str, Any] = {"rigs": rigs, "profile": profile, "inventory": str(inventory) if inventory else None}
    claim = Claim(evict_users=evict_users, ignore_lock=ignore_lock)
    asked |= {"evict_users": evict_users, "ignore_lock": ignore_lock}
    own = tuple(acceptance_tests) if acceptance_tests else beside(inventory or DEFAULT_INVENTORY)
    asked["across"] = across
    asked["acceptance_tests"] = [str(folder) for folder in own]
    options = AcceptOptions(fleet, profile, runs, asked, acceptance_tests=own, claim=claim)
    run_dir = start_run(options)
    progress = Progress(rig.name for rig in fleet)
    try:
        with watch(progress, console):
            outcome = accept(options, run_dir, progress)
    except KeyboardInterrupt:
        if as_json and run_dir.has_record:
            emit_json(run_dir.read_record())
        console.print(f"stopped; what was measured is in {run_dir.path}", markup=False, soft_wrap=True)
        raise
    if as_json:
        emit_json(outcome.record)
    else:
        print_record(console, outcome.record, path=run_dir.path)
    raise typer.Exit(outcome.record.exit_code)


def _meeting(fleet: tuple[Rig, ...], profile: str, inventory: Path | None) -> tuple[Rig, ...]:
    from rigctl.inventory import load_variables  # noqa: PLC0415
    from rigctl.measure.across import VARIABLES, meeting  # noqa: PLC0415

    return meeting(fleet, profile, load_variables(inventory, ",".join(rig.name for rig in fleet), VARIABLES))
