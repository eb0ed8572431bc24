"""`rigctl power`: a rig's supply, for what a reboot cannot mend."""

from __future__ import annotations

from enum import StrEnum
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
from rigctl.cli.one import RigArg, YesOpt, confirm, one_rig
from rigctl.errors import ChangeIncomplete, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rigctl.power.control import Switched

EPILOG = "Example: rigctl power rig1 cycle"
BACK_S = 300


class Action(StrEnum):
    """What can be done with a supply."""

    STATUS = "status"
    ON = "on"
    OFF = "off"
    CYCLE = "cycle"


ActionArg = Annotated[Action, typer.Argument(metavar="status|on|off|cycle", help="What to do.")]
HardOpt = Annotated[
    bool, typer.Option("--hard", help="Switch off at once, without asking the system to shut down first.")
]
WaitOpt = Annotated[
    float, typer.Option("--wait", metavar="SECONDS", min=0, help="Wait so long for the rig to answer again; 0: not.")
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("power", epilog=EPILOG)(power_command)


def power_command(
    rig: RigArg,
    action: ActionArg,
    inventory: InventoryOpt = None,
    hard: HardOpt = False,
    wait: WaitOpt = BACK_S,
    yes: YesOpt = False,
    evict_users: EvictOpt = False,
    ignore_lock: IgnoreLockOpt = False,
    ask_become_pass: AskBecomeOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Switch a rig's supply: IPMI, a smart plug, or wake-on-LAN, as rig_power in its host_vars says."""
    from rigctl.power.control import Asked, PowerControl  # noqa: PLC0415 - keeps `rigctl --help` fast
    from rigctl.power.switch import SwitchFailed  # noqa: PLC0415
    from rigctl.power.system import SshSystem  # noqa: PLC0415

    (known,) = with_sudo_password((one_rig(inventory, rig),), asked=ask_become_pass)
    if known.power is None:
        raise UsageError(
            f"{known.name} has no rig_power", f"describe its supply in host_vars/{known.name}/; docs/power.md"
        )
    if action in (Action.OFF, Action.CYCLE):
        confirm(f"{known.name} is about to lose its power", known.name, yes=yes)
    control = PowerControl(
        known.name, known.power, SshSystem(known), lambda text: console.print(text, markup=False, soft_wrap=True)
    )
    asked = Asked(hard=hard, evict_users=evict_users, ignore_lock=ignore_lock, wait_s=wait)
    actions: dict[Action, Callable[[], Switched]] = {
        Action.STATUS: control.status,
        Action.ON: lambda: control.on(asked),
        Action.OFF: lambda: control.off(asked),
        Action.CYCLE: lambda: control.cycle(asked),
    }
    try:
        done = actions[action]()
    except SwitchFailed as error:
        if action is Action.STATUS:
            raise
        raise ChangeIncomplete(error.message, error.hint) from error
    if as_json:
        emit_json(done.as_json())
    else:
        typer.echo(words(done))


def words(done: Switched) -> str:
    """What became of the rig, in a line."""
    parts = [f"{done.rig}: {done.state} ({done.via})"]
    if done.shut_down:
        parts.append(f"switched off {done.shut_down}")
    if done.boot_id_after and done.boot_id_after != done.boot_id_before:
        parts.append(f"a new boot answers after {done.seconds:.0f} s")
    return ", ".join(parts)
