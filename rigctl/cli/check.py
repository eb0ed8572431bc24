"""`rigctl check`: a look at every rig, without any load."""

from __future__ import annotations

import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from rigctl.cli.common import AskBecomeOpt, InventoryOpt, JsonOpt, RigsArg, console, emit_json, with_sudo_password
from rigctl.errors import RigctlError, UsageError

if TYPE_CHECKING:
    from rigctl.model.verdict import Record

EPILOG = "Example: rigctl check 'all:!rig3' --json; rigctl check --list --profile standard"


ListOpt = Annotated[
    bool, typer.Option("--list", help="List every check instead: what it requires, its limit's source, what to do.")
]
ProfileOpt = Annotated[
    str | None,
    typer.Option("--profile", metavar="NAME", help="With --list: the checks of this profile, and how long each takes."),
]


NagiosOpt = Annotated[
    bool, typer.Option("--nagios", help="Answer as a Nagios plugin does: one line, exit code 0 to 3.")
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
    nagios: NagiosOpt = False,
) -> None:
    """Look at rigs: software, cards, links. Read-only, seconds, no load; leaves no run directory."""
    if list_checks:
        _list(rigs, inventory, profile, as_json=as_json)
        return
    if profile is not None:
        raise UsageError("--profile is for --list: a look puts no load on rigs", "rigctl accept --profile NAME")
    if nagios:
        _nagios(rigs, inventory)
    from rigctl.report.terminal import print_record  # noqa: PLC0415 - keeps `rigctl --help` fast

    record = _look(rigs, inventory, ask_become_pass=ask_become_pass, quiet=False)
    if as_json:
        emit_json(record)
    else:
        print_record(console, record)
    raise typer.Exit(record.exit_code)


def _look(rigs: str, inventory: Path | None, *, ask_become_pass: bool, quiet: bool) -> Record:
    from rigctl.accept import AcceptOptions, accept, start_run  # noqa: PLC0415
    from rigctl.cli.live import watch  # noqa: PLC0415
    from rigctl.inventory import load_fleet  # noqa: PLC0415
    from rigctl.measure.progress import Progress  # noqa: PLC0415

    fleet = with_sudo_password(load_fleet(inventory, rigs), asked=ask_become_pass)
    with tempfile.TemporaryDirectory(prefix="rigctl-check-") as folder:
        options = AcceptOptions(fleet, "check", Path(folder), {"rigs": rigs}, kind="check")
        progress = Progress(rig.name for rig in fleet)
        with nullcontext() if quiet else watch(progress, console):
            return accept(options, start_run(options), progress).record


def _nagios(rigs: str, inventory: Path | None) -> NoReturn:
    """Speak the plugins' own protocol: everything on one line of stdout, whatever happens."""
    from rigctl.report.nagios import nagios, unknown  # noqa: PLC0415

    try:
        line, code = nagios(_look(rigs, inventory, ask_become_pass=False, quiet=True))
    except RigctlError as error:
        line, code = unknown(error)
    typer.echo(line)
    raise typer.Exit(code)


def _list(rigs: str, inventory: Path | None, profile: str | None, *, as_json: bool) -> None:
    """Say what is checked; no rig is asked, and without a profile no inventory is needed."""
    from rigctl.cli.listing import entries, expected_seconds, lines  # noqa: PLC0415 - keeps `rigctl --help` fast
    from rigctl.inventory import load_fleet  # noqa: PLC0415

    found = entries(None if profile is None else expected_seconds(load_fleet(inventory, rigs), profile))
    if as_json:
        emit_json(found)
        return
    typer.echo("\n".join(line for entry in found for line in lines(entry)))
