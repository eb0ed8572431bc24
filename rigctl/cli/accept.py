"""`rigctl accept`: burn, train, judge and report a fleet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from rigctl.cli.carrying import carry_and_tell
from rigctl.cli.collect import asked_for_sudo
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
    with_sudo_password,
)
from rigctl.errors import UsageError

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


ResumeOpt = Annotated[
    str | None, typer.Option("--resume", metavar="RUN", help="Finish a run that its controller left in the middle.")
]
DetachOpt = Annotated[
    bool,
    typer.Option("--detach", help="Begin, and let the rigs go on alone, bounded by run time; see `rigctl collect`."),
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
    resume: ResumeOpt = None,
    detach: DetachOpt = False,
    evict_users: EvictOpt = False,
    ignore_lock: IgnoreLockOpt = False,
    ask_become_pass: AskBecomeOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Accept rigs: facts, burns under the rig's own guard, training, verdicts and a report."""
    from rigctl.accept import AcceptOptions, start_run  # noqa: PLC0415 - keeps `rigctl --help` fast
    from rigctl.acceptance.own import beside  # noqa: PLC0415
    from rigctl.inventory import DEFAULT_INVENTORY, load_fleet  # noqa: PLC0415
    from rigctl.left import say_left  # noqa: PLC0415
    from rigctl.measure.claim import Claim  # noqa: PLC0415

    if resume is not None:
        if rigs != "all" or across or detach:
            raise UsageError(
                "the run that is resumed knows its rigs and how they are measured", "leave out RIGS, --across, --detach"
            )
        _finish(resume, inventory, runs, ask_become_pass=ask_become_pass, as_json=as_json)
    fleet = with_sudo_password(load_fleet(inventory, rigs), asked=ask_become_pass)
    if across:
        fleet = _meeting(fleet, profile, inventory)
    say_left(runs, [rig.name for rig in fleet], console)
    own = tuple(acceptance_tests) if acceptance_tests else beside(inventory or DEFAULT_INVENTORY)
    asked: dict[str, Any] = {
        "rigs": rigs,
        "profile": profile,
        # Absolute: another controller process may finish the run from elsewhere.
        "inventory": str((inventory or DEFAULT_INVENTORY).absolute()),
        "evict_users": evict_users,
        "ignore_lock": ignore_lock,
        "across": across,
        "detach": detach,
        "acceptance_tests": [str(folder.absolute()) for folder in own],
    }
    claim = Claim(evict_users=evict_users, ignore_lock=ignore_lock)
    options = AcceptOptions(fleet, profile, runs, asked, acceptance_tests=own, claim=claim, detach=detach)
    carry_and_tell(options, start_run(options), as_json=as_json)


def _finish(run_id: str, inventory: Path | None, runs: Path, *, ask_become_pass: bool, as_json: bool) -> NoReturn:
    from rigctl.resume import take_up  # noqa: PLC0415

    options, run_dir = take_up(runs, run_id, inventory)
    carry_and_tell(asked_for_sudo(options, asked=ask_become_pass), run_dir, as_json=as_json)


def _meeting(fleet: tuple[Rig, ...], profile: str, inventory: Path | None) -> tuple[Rig, ...]:
    from rigctl.inventory import load_variables  # noqa: PLC0415
    from rigctl.measure.across import VARIABLES, meeting  # noqa: PLC0415

    return meeting(fleet, profile, load_variables(inventory, ",".join(rig.name for rig in fleet), VARIABLES))
