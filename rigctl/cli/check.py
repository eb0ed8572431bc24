"""`rigctl check`: a look at every rig, without any load."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from rigctl.cli.common import AskBecomeOpt, InventoryOpt, JsonOpt, RigsArg, console, emit_json, with_sudo_password
from rigctl.errors import UsageError

EPILOG = "Example: rigctl check 'all:!rig3' --json; rigctl check --list --profile standard"


ListOpt = Annotated[
    bool, typer.Option("--list", help="List every check instead: what it requires, its limit's source, what to do.")
]
ProfileOpt = Annotated[
    str | None,
    typer.Option("--profile", metavar="NAME", help="With --list: the checks of this profile, and how long each takes."),
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("check", epilog=EPILOG)(check_command)


def check_command(
    rigs: RigsArg = "all",
    inventory: InventoryOpt = None,
    ask_become_pass: AskBecomeOpt = False,
    as_json: JsonOpt = False,
    list_checks: ListOpt = False,
    profile: ProfileOpt = None,
) -> None:
    """Look at rigs: software, cards, links. Read-only, seconds, no load; leaves no run directory."""
    if list_checks:
        _list(rigs, inventory, profile, as_json=as_json)
        return
    if profile is not None:
        raise UsageError("--profile is for --list: a look puts no load on rigs", "rigctl accept --profile NAME")
    from rigctl.accept import AcceptOptions, accept, start_run  # noqa: PLC0415 - keeps `rigctl --help` fast
    from rigctl.cli.live import watch  # noqa: PLC0415
    from rigctl.inventory import load_fleet  # noqa: PLC0415
    from rigctl.measure.progress import Progress  # noqa: PLC0415
    from rigctl.report.terminal import print_record  # noqa: PLC0415

    fleet = with_sudo_password(load_fleet(inventory, rigs), asked=ask_become_pass)
    with tempfile.TemporaryDirectory(prefix="rigctl-check-") as folder:
        options = AcceptOptions(fleet, "check", Path(folder), {"rigs": rigs}, kind="check")
        progress = Progress(rig.name for rig in fleet)
        with watch(progress, console):
            outcome = accept(options, start_run(options), progress)
    if as_json:
        emit_json(outcome.record)
    else:
        print_record(console, outcome.record)
    raise typer.Exit(outcome.record.exit_code)


def _list(rigs: str, inventory: Path | None, profile: str | None, *, as_json: bool) -> None:
    """Say what is checked; no rig is asked, and without a profile no inventory is needed."""
    from rigctl.cli.listing import entries, expected_seconds, lines  # noqa: PLC0415 - keeps `rigctl --help` fast
    from rigctl.inventory import load_fleet  # noqa: PLC0415

    found = entries(None if profile is None else expected_seconds(load_fleet(inventory, rigs), profile))
    if as_json:
        emit_json(found)
        return
    typer.echo("\n".join(line for entry in found for line in lines(entry)))
