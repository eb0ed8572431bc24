"""`rigctl check`: a look at every rig, without any load."""

from __future__ import annotations

import tempfile
from pathlib import Path

import typer

from rigctl.cli.common import AskBecomeOpt, InventoryOpt, JsonOpt, RigsArg, console, emit_json, with_sudo_password

EPILOG = "Example: rigctl check 'all:!rig3' --json"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("check", epilog=EPILOG)(check_command)


def check_command(
    rigs: RigsArg = "all",
    inventory: InventoryOpt = None,
    ask_become_pass: AskBecomeOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Look at rigs: software, cards, links. Read-only, seconds, no load; leaves no run directory."""
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
