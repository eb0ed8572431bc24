"""`rigctl compat`: which driver, CUDA toolkit, PyTorch and Python go together, why, and who says so."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from rigctl.cli.common import JsonOpt, emit_json
from rigctl.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rigctl.compat import Answer, Partner

_EXAMPLE = "Example: rigctl compat --driver 515 --python 3.10"


def register(app: typer.Typer) -> None:
    """Add `compat` to the app."""
    app.command("compat", epilog=_EXAMPLE)(compat)


def compat(
    driver: Annotated[str, typer.Option("--driver", metavar="VERSION", help="Driver branch or version: 515.")] = "",
    cuda: Annotated[str, typer.Option("--cuda", metavar="VERSION", help="CUDA toolkit: 11.7.")] = "",
    torch: Annotated[str, typer.Option("--torch", metavar="VERSION", help="PyTorch: 2.0.1 or 2.0.1+cu117.")] = "",
    python: Annotated[str, typer.Option("--python", metavar="VERSION", help="Python: 3.10.")] = "",
    every: Annotated[bool, typer.Option("--all", help="Show what does not fit, too, and each row's source.")] = False,
    as_json: JsonOpt = False,
) -> None:
    """Say what goes with what and why, from the tables that the roles use; asks no rig.

    Exit code: 0 what is given goes together, 1 it does not, 2 a version that does not exist.
    """
    from rigctl.compat import Asked, look_up  # noqa: PLC0415 - Ansible takes a while to import

    answer = look_up(Asked(driver, cuda, torch, python))
    if as_json:
        emit_json(answer.as_data())
    else:
        sys.stdout.write("\n".join(_lines(answer, every=every)) + "\n")
    raise typer.Exit(ExitCode.FAILED if answer.refusals else ExitCode.OK)


def _lines(answer: Answer, *, every: bool) -> list[str]:
    said = [f"no: {one}" for one in answer.refusals]
    if answer.choice:
        said.append(f"newest PyTorch: {answer.choice} ({answer.choice_why})")
    for heading, partners in (
        ("driver branches", answer.drivers),
        ("CUDA toolkits", answer.toolkits),
        ("PyTorch", answer.torch),
    ):
        shown = [one for one in partners if one.fits or every]
        said.append(f"{heading}: {len(shown)}" if shown else f"{heading}: none")
        said += _table(shown, every=every)
    return said


def _table(partners: Sequence[Partner], *, every: bool) -> list[str]:
    width = max((len(one.name) for one in partners), default=0)
    lines = []
    for one in partners:
        mark = "ok" if one.fits else "no"
        source = f"  [{one.source}]" if every else ""
        lines.append(f"  {mark}  {one.name:<{width}}  {one.why}{source}")
    return lines
