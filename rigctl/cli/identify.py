"""`rigctl identify`: which of these cards is it?"""

from __future__ import annotations

import contextlib
import signal
import threading
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from rigctl.cli.common import (
    AskBecomeOpt,
    EvictOpt,
    IgnoreLockOpt,
    InventoryOpt,
    JsonOpt,
    console,
    emit_json,
    with_sudo_password,
)
from rigctl.cli.one import RigArg, one_rig
from rigctl.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from rigctl.identify import Found

EPILOG = "Example: rigctl identify rig1 slot2"
SECONDS = 120
LONGEST_S = 600
GpuArg = Annotated[str, typer.Argument(metavar="GPU", help="A slot (2, slot2) or the end of a card's UUID (a91f).")]
SecondsOpt = Annotated[
    float, typer.Option("--seconds", metavar="N", min=5, max=LONGEST_S, help="How long the card works at most.")
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("identify", epilog=EPILOG)(identify_command)


def identify_command(
    rig: RigArg,
    gpu: GpuArg,
    inventory: InventoryOpt = None,
    seconds: SecondsOpt = SECONDS,
    evict_users: EvictOpt = False,
    ignore_lock: IgnoreLockOpt = False,
    ask_become_pass: AskBecomeOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Load one card, under the guard, so that a person can find it; Ctrl-C when it is found."""
    from rigctl.identify import Identify  # noqa: PLC0415 - keeps `rigctl --help` fast
    from rigctl.measure.claim import Claim  # noqa: PLC0415

    (known,) = with_sudo_password((one_rig(inventory, rig),), asked=ask_become_pass)
    cancel = threading.Event()
    claim = Claim(evict_users=evict_users, ignore_lock=ignore_lock)

    def say(text: str) -> None:
        if text:
            console.print(text, markup=False, soft_wrap=True)

    with _found_by_interrupt(cancel):
        found = Identify(known, cancel, say).run(gpu, seconds, claim)
    if as_json:
        emit_json(asdict(found))
    else:
        typer.echo(words(found))
    raise typer.Exit(ExitCode.OK if found.stopped is None else ExitCode.FAILED)


def words(found: Found) -> str:
    """What the card showed, in a line."""
    shown = [
        f"{figure:.0f} {unit} at most"
        for figure, unit in ((found.max_power_w, "W"), (found.max_temp_c, "°C"))
        if figure is not None
    ]
    others = "" if found.others_max_power_w is None else f"; the others {found.others_max_power_w:.0f} W"
    stopped = "" if found.stopped is None else f"; the guard stopped it ({found.stopped})"
    card = f"slot{found.slot} (…{found.uuid[-4:]}) on {found.rig}, {found.pci_bus_id}"
    return f"{card}: {', '.join(shown) or 'nothing was measured'}{others}{stopped}"


@contextlib.contextmanager
def _found_by_interrupt(cancel: threading.Event) -> Iterator[None]:
    """Let Ctrl-C say that the card was found: the load ends in good order, and that is no interruption."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        if cancel.is_set():
            raise KeyboardInterrupt
        cancel.set()

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
