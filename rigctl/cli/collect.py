"""`rigctl collect`: bring home an acceptance that went on alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rigctl.cli.carrying import carry_and_tell
from rigctl.cli.common import (
    DEFAULT_RUNS,
    AskBecomeOpt,
    InventoryOpt,
    JsonOpt,
    RunsOpt,
    with_sudo_password,
)

if TYPE_CHECKING:
    from rigctl.accept import AcceptOptions

EPILOG = "Example: rigctl collect latest --no-wait -i ./inventory"

RunArg = Annotated[str, typer.Argument(metavar="RUN", help="The run's id, its path, or `latest`.")]
WaitOpt = Annotated[
    bool, typer.Option("--wait/--no-wait", help="Wait for its end, or fetch what is there and say how far it is.")
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("collect", epilog=EPILOG)(collect_command)


def collect_command(
    run: RunArg,
    wait: WaitOpt = True,
    inventory: InventoryOpt = None,
    runs: RunsOpt = DEFAULT_RUNS,
    ask_become_pass: AskBecomeOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Bring home, judge and report an acceptance that was begun with `accept --detach`."""
    from rigctl.resume import take_up  # noqa: PLC0415 - keeps `rigctl --help` fast

    options, run_dir = take_up(runs, run, inventory, wait=wait)
    carry_and_tell(asked_for_sudo(options, asked=ask_become_pass), run_dir, as_json=as_json)


def asked_for_sudo(options: AcceptOptions, *, asked: bool) -> AcceptOptions:
    """Return the options with the password for sudo, where it is to be asked for."""
    from dataclasses import replace  # noqa: PLC0415

    return replace(options, rigs=with_sudo_password(options.rigs, asked=asked))
