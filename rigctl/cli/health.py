"""`rigctl health`: the agent as Slurm's HealthCheckProgram on rigs."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, TypeVar

import typer

from rigctl.cli.common import (
    AskBecomeOpt,
    InventoryOpt,
    JsonOpt,
    RigsArg,
    emit_json,
    print_rigctl_error,
    with_sudo_password,
)
from rigctl.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rigctl.model.rig import Rig
    from rigctl.model.upgrade import DrainSpec

T = TypeVar("T")
INSTALL = "Example: rigctl health install all"
REMOVE = "Example: rigctl health remove rig3"


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(
        no_args_is_help=True, help="Let Slurm's HealthCheckProgram look after rigs between acceptances."
    )
    group.command("install", epilog=INSTALL)(install_command)
    group.command("remove", epilog=REMOVE)(remove_command)
    app.add_typer(group, name="health")


def install_command(
    rigs: RigsArg = "all",
    inventory: InventoryOpt = None,
    ask_become_pass: AskBecomeOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Put the program on rigs, with what each of them has now, and try it there; Slurm is not touched."""
    from rigctl import health  # noqa: PLC0415 - keeps `rigctl --help` fast

    fleet, drains = _fleet(inventory, rigs, asked=ask_become_pass)
    done = _on_each(fleet, lambda rig: health.install(rig, drains[rig.name]))
    if as_json:
        emit_json({"program": health.PROGRAM, "rigs": [asdict(one) for one in done]})
    elif done:
        for one in done:
            typer.echo(f"{one.rig}: {health.PROGRAM} holds node {one.node} to {', '.join(one.cards)}")
        typer.echo(f"in slurm.conf: HealthCheckProgram={health.PROGRAM}  HealthCheckInterval=300")
    raise typer.Exit(ExitCode.OK if len(done) == len(fleet) else ExitCode.CHANGE_INCOMPLETE)


def remove_command(
    rigs: RigsArg,
    inventory: InventoryOpt = None,
    ask_become_pass: AskBecomeOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Take the program and its file away; take it out of slurm.conf first."""
    from rigctl import health  # noqa: PLC0415

    fleet, _ = _fleet(inventory, rigs, asked=ask_become_pass)
    done = _on_each(fleet, lambda rig: (rig.name, health.remove(rig)))
    if as_json:
        emit_json({"rigs": [{"rig": name, "was_there": was} for name, was in done]})
    else:
        for name, was in done:
            typer.echo(f"{name}: {'removed' if was else 'there was none'}")
    raise typer.Exit(ExitCode.OK if len(done) == len(fleet) else ExitCode.CHANGE_INCOMPLETE)


def _fleet(inventory: Path | None, rigs: str, *, asked: bool) -> tuple[tuple[Rig, ...], dict[str, DrainSpec]]:
    from rigctl.inventory import load_fleet, load_variables  # noqa: PLC0415
    from rigctl.upgrade.settings import DRAIN, drains_of  # noqa: PLC0415

    fleet = with_sudo_password(load_fleet(inventory, rigs), asked=asked)
    names = ",".join(rig.name for rig in fleet)
    return fleet, drains_of(load_variables(inventory, names, (DRAIN,)))


def _on_each(fleet: tuple[Rig, ...], work: Callable[[Rig], T]) -> list[T]:
    from rigctl.fleet.pool import for_each  # noqa: PLC0415

    done = []
    for one in for_each(fleet, work):
        if one.error is not None:
            print_rigctl_error(one.error)
        else:
            done.append(one.value)
    return done
