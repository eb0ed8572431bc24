"""`rigctl sim …`: simulated rigs."""

from __future__ import annotations

import os
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from rigctl import sim
from rigctl.cli.common import JsonOpt, console, emit_json
from rigctl.errors import UsageError
from rigctl.sim import faults, image, options, podman
from rigctl.sim import state as sim_state
from rigctl.sim.cache import cache_dir
from rigctl.sim.machine.packages.build import DEFAULT_PLATFORM, platforms

StateOpt = Annotated[
    Path | None,
    typer.Option(
        "--state",
        envvar="RIGCTL_SIM_STATE",
        metavar="DIR",
        help="Folder of these rigs: inventory, SSH files, keys.",
        show_default="in the user's state folder",
    ),
]
RigArg = Annotated[str, typer.Argument(metavar="RIG", help="Name of a simulated rig, such as rig1.")]

app = typer.Typer(no_args_is_help=True, help="Simulated rigs: real SSH, systemd and apt on simulated hardware.")


def register(parent: typer.Typer) -> None:
    """Add `rigctl sim` to the command line."""
    parent.add_typer(app, name="sim")


@app.command(epilog="Example: rigctl sim up -n 2, then: rigctl accept -i INVENTORY")
def up(
    count: Annotated[int, typer.Option("-n", "--count", min=1, max=options.MAX_RIGS, help="How many rigs.")] = 2,
    rig_class: Annotated[str, typer.Option(help="Rig class of the shipped inventory.")] = "dual_3090ti",
    platform: Annotated[
        str, typer.Option(metavar="NAME", help=f"What the rigs are: {', '.join(platforms())}.")
    ] = DEFAULT_PLATFORM,
    archive: Annotated[
        str,
        typer.Option(
            metavar="YEAR",
            help="What the package archive offers: 2022, 2023 or 2026 of Ubuntu 22.04; 2026 or real of Debian 12.",
            show_default="the platform's own",
        ),
    ] = "",
    time_scale: Annotated[
        float,
        typer.Option(min=1, max=options.MAX_TIME_SCALE, help="Speeds up heating and cooling; every clock stays real."),
    ] = options.DEFAULT_TIME_SCALE,
    state: StateOpt = None,
    base_image: Annotated[
        str | None,
        typer.Option("--image", metavar="IMAGE", help="Build rigs from this OCI image instead of the host's packages."),
    ] = None,
    as_json: JsonOpt = False,
) -> None:
    """Bring simulated rigs up; rigs of an earlier `up` in the same folder are replaced."""
    asked = sim.UpOptions(
        count=count,
        rig_class=rig_class,
        platform=platform,
        archive=archive,
        time_scale=time_scale,
        directory=_directory(state),
        image=base_image,
    )
    found = sim.up(asked, say=lambda line: console.print(line, markup=False))
    if as_json:
        emit_json({**found.model_dump(mode="json"), "inventory": str(found.inventory), "simulated": True})
        return
    for rig in found.rigs:
        console.print(f"{rig.name}: simulated, 127.0.0.1 port {rig.port}", markup=False)
    where = shlex.quote(str(found.inventory))
    console.print(f"inventory: {where}\nnext: rigctl provision -i {where}", markup=False, soft_wrap=True)


@app.command(epilog="Example: rigctl sim down --images")
def down(
    state: StateOpt = None,
    everything: Annotated[bool, typer.Option("--all", help="Every simulated rig of this machine.")] = False,
    images: Annotated[bool, typer.Option("--images", help="Remove the cached images too.")] = False,
) -> None:
    """Take simulated rigs down; nothing of them stays but the cached image and wheels."""
    removed = sim.down_all() if everything else sim.down(_directory(state))
    console.print(f"{len(removed)} simulated rigs removed" if removed else "no simulated rigs were up", markup=False)
    if images:
        gone = image.remove_images(podman.find())
        console.print(f"{len(gone)} cached images removed; wheels stay in {cache_dir()}", markup=False)


@app.command("list", epilog="Example: rigctl sim list --json")
def list_(state: StateOpt = None, as_json: JsonOpt = False) -> None:
    """List the simulated rigs of this machine, or of one state folder."""
    found = sim.list_rigs(state)
    if as_json:
        emit_json([asdict(one) for one in found])
        return
    for one in found:
        typer.echo(f"{one.rig:<8} simulated  {one.status:<10} 127.0.0.1:{one.port or '-'}  {one.directory}")
    if not found:
        console.print("no simulated rigs are up", markup=False)


@app.command(
    epilog="Example: rigctl sim ssh rig1 -- nvidia-smi -L",
    context_settings={"ignore_unknown_options": True},
)
def ssh(
    rig: RigArg,
    command: Annotated[list[str] | None, typer.Argument(metavar="[-- COMMAND]", help="Default: a shell.")] = None,
    state: StateOpt = None,
) -> None:
    """Log in to a simulated rig with plain OpenSSH, or run a command there."""
    found = sim_state.require(_directory(state))
    name = found.rig(rig).name
    words = ["ssh", "-F", str(found.ssh_config), name, *(command or [])]
    os.execvp(words[0], words)  # noqa: S606 - the terminal and the exit status become ssh's


@app.command("faults", epilog="Example: rigctl sim faults --json")
def faults_(
    rig: Annotated[str | None, typer.Argument(metavar="[RIG]", help="Only those that this rig has.")] = None,
    state: StateOpt = None,
    as_json: JsonOpt = False,
) -> None:
    """List every fault, or those that were applied to a rig."""
    found = [one.as_json() for one in faults.catalogue()] if rig is None else faults.applied(_directory(state), rig)
    if as_json:
        emit_json(found)
    elif rig is None:
        for one in faults.catalogue():
            typer.echo(_described(one))
    else:
        for entry in found:
            given = " ".join(f"{key}={value}" for key, value in entry["parameters"].items())
            typer.echo(f"{entry['name']} {given}".rstrip() + f": {entry['status']}")


@app.command(epilog="Example: rigctl sim fault rig2 pump_dead; rigctl sim fault rig1 ssh_down seconds=20 when=load")
def fault(
    rig: RigArg,
    name: Annotated[str, typer.Argument(metavar="NAME", help="See: rigctl sim faults.")],
    parameters: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Its parameters, and when=now|boot|load.")
    ] = None,
    state: StateOpt = None,
) -> None:
    """Let a fault happen to a rig: now, at its next boot, or when a card is next under load."""
    applied = faults.apply(_directory(state), rig, name, dict(map(_pair, parameters or [])))
    console.print(f"{rig}: {name} {applied['status']}", markup=False)


@app.command(epilog="Example: rigctl sim clear rig2")
def clear(
    rig: RigArg,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Default: all of them.")] = None,
    state: StateOpt = None,
) -> None:
    """Take back a fault of a rig, or all of them."""
    cleared = faults.clear(_directory(state), rig, name)
    console.print(f"{rig}: {', '.join(cleared)} cleared" if cleared else f"{rig}: nothing to clear", markup=False)


def _described(one: faults.Fault) -> str:
    parameters = "".join(f" [{own.name}={own.default}]" for own in one.parameters)
    found = f"found by {', '.join(one.found_by)}" if one.found_by else "survived, and noted"
    met = f"provision: {one.met}" if one.met else f"{found}; accept exits {one.exit_code}"
    return f"{one.name}{parameters}\n    {one.summary}\n    {met}"


def _pair(word: str) -> tuple[str, str]:
    key, equals, value = word.partition("=")
    if not (key and equals):
        raise UsageError(f"{word}: must be KEY=VALUE", "for example: rigctl sim fault rig1 ssh_down seconds=20")
    return key, value


def _directory(state: Path | None) -> Path:
    return state if state is not None else sim_state.default_directory()
