"""`rigctl init`: a small, commented inventory with rigs of one's own; by flags, or by a few questions."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from rigctl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rigctl.starter import Starter, StarterRig

T = TypeVar("T")

EPILOG = "Example: rigctl init ./inventory --rig rig1=192.0.2.11 --rig rig2=192.0.2.12 --user ubuntu"
_DEFAULT_USER = "ubuntu"
_DEFAULT_CLASS = "dual_3090ti"

DirArg = Annotated[Path, typer.Argument(metavar="DIR", help="The folder to write; it must not exist, or be empty.")]
RigOpt = Annotated[
    list[str] | None,
    typer.Option("--rig", metavar="NAME=ADDRESS[:PORT]", help="A rig; may be repeated. Without it you are asked."),
]
MeterOpt = Annotated[
    list[str] | None,
    typer.Option("--wall-meter", metavar="NAME=ADDRESS", help="The Tasmota wall meter of a rig; may be repeated."),
]
UserOpt = Annotated[str, typer.Option("--user", metavar="NAME", help="Who logs in to the rigs; may use sudo.")]
ClassOpt = Annotated[str, typer.Option("--rig-class", metavar="CLASS", help="A class of the shipped inventory.")]
DriverOpt = Annotated[str | None, typer.Option("--driver", metavar="BRANCH", help="Driver branch, such as 515.")]
CudaOpt = Annotated[str | None, typer.Option("--cuda", metavar="X.Y", help="CUDA toolkit, such as 11.7.")]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("init", epilog=EPILOG)(init_command)


def init_command(
    directory: DirArg,
    rig: RigOpt = None,
    user: UserOpt = _DEFAULT_USER,
    rig_class: ClassOpt = _DEFAULT_CLASS,
    driver: DriverOpt = None,
    cuda: CudaOpt = None,
    wall_meter: MeterOpt = None,
) -> None:
    """Write a small, commented inventory to start from; nothing is ever overwritten."""
    from rigctl.starter import Starter, parse_rig, write_starter  # noqa: PLC0415 - keeps `rigctl --help` fast

    if rig:
        rigs = _with_meters([parse_rig(text) for text in rig], wall_meter or ())
        starter = Starter(rigs, user, rig_class, driver, cuda)
    elif wall_meter:
        raise UsageError("--wall-meter without --rig", "name the rigs too, or answer the questions")
    elif sys.stdin.isatty():
        starter = _ask(Starter((), user, rig_class, driver, cuda))
    else:
        raise UsageError("no rig is named, and there is no terminal to ask on", f"name them: {EPILOG[9:]}")
    for path in write_starter(directory, starter):
        sys.stdout.write(f"{directory / path}\n")
    first = starter.rigs[0].name
    sys.stderr.write(f"next: rigctl bootstrap {first} -i {directory} --ask-pass\n")


def _with_meters(rigs: Sequence[StarterRig], meters: Sequence[str]) -> tuple[StarterRig, ...]:
    from rigctl.starter import meter_url  # noqa: PLC0415

    urls = {}
    for text in meters:
        name, _, address = text.partition("=")
        if name not in {rig.name for rig in rigs} or not address:
            raise UsageError(f"--wall-meter {text}: no such rig", "write NAME=ADDRESS with the name of a --rig")
        urls[name] = meter_url(address)
    return tuple(replace(rig, wall_meter=urls.get(rig.name)) for rig in rigs)


def _ask(known: Starter) -> Starter:
    """Ask for what an inventory cannot do without; each answer is checked as it comes."""
    from rigctl.starter import StarterRig, meter_url, parse_name, parse_place, shipped_software  # noqa: PLC0415

    rigs: list[StarterRig] = []
    while True:
        more = f"Another rig's name ({'empty: no more'})" if rigs else "Name of the first rig"
        name = _answer(more, "" if rigs else "rig1", lambda text: parse_name(text) if text else "")
        if not name:
            break
        address, port = _answer("  its address, with :PORT where SSH is not at 22", None, parse_place)
        url = _answer(
            "  its Tasmota wall meter's address (empty: none)", "", lambda text: meter_url(text) if text else ""
        )
        rigs.append(StarterRig(name, address, port, url or None))
    user = typer.prompt("Who logs in", default=known.user, err=True)
    shipped = shipped_software(known.rig_class)
    branch = typer.prompt("Driver branch", default=known.driver_branch or shipped["nvidia_driver_branch"], err=True)
    cuda = typer.prompt("CUDA toolkit", default=known.cuda_version or shipped["cuda_version"], err=True)
    return replace(known, rigs=tuple(rigs), user=user, driver_branch=branch, cuda_version=cuda)


def _answer(question: str, default: str | None, check: Callable[[str], T]) -> T:
    """Ask until the answer is one; an empty default stands for an empty answer."""
    while True:
        text = typer.prompt(question, default=default, show_default=bool(default), err=True)
        try:
            return check(text.strip())
        except UsageError as error:
            sys.stderr.write(f"{error.message}: {error.hint}\n")
