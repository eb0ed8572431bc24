"""Commands that act on one rig: the pattern must mean exactly one."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from rigctl.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from rigctl.model.rig import Rig

RigArg = Annotated[str, typer.Argument(metavar="RIG", help="One rig's name in the inventory.")]
YesOpt = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


def one_rig(inventory: Path | None, name: str) -> Rig:
    """The one rig of this name.

    Raises:
        UsageError: the inventory is wrong, or the name means none or several.
    """
    from rigctl.inventory import load_fleet  # noqa: PLC0415 - keeps `rigctl --help` fast

    fleet = load_fleet(inventory, name)
    if len(fleet) != 1:
        names = ", ".join(rig.name for rig in fleet[:5])
        raise UsageError(f"{name!r} means {len(fleet)} rigs: {names}", "this command acts on one rig: name it")
    return fleet[0]


def confirm(question: str, word: str, *, yes: bool) -> None:
    """Have a person type the rig's name before something that cannot be taken back.

    Raises:
        UsageError: there is nobody to ask, or something else was typed.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"{question}: nobody is there to ask", "add --yes")
    typed = typer.prompt(f"{question}. Type {word} to go on", default="", show_default=False, err=True)
    if typed.strip() != word:
        raise UsageError("not confirmed; nothing was done", "type the rig's name, or add --yes")
