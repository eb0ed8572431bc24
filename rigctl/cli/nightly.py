"""`rigctl nightly`: plan, carry out, install and watch the acceptances of every night."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rigctl.cli.common import (
    DEFAULT_RUNS,
    InventoryOpt,
    JsonOpt,
    RigsArg,
    RunsOpt,
    console,
    emit_json,
    print_rigctl_error,
)
from rigctl.errors import ExitCode, RigctlError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rigctl.model.night import LastNight
    from rigctl.model.verdict import Record
    from rigctl.nightly.planner import Night
    from rigctl.nightly.settings import Park

EVERY = "all"
"""The pattern of a night of the whole park."""
PLAN = "Example: rigctl nightly plan"
RUN = "Example: rigctl nightly run --now"
REMIND = "Example: rigctl nightly remind"
INSTALL = "Example: rigctl nightly install -i /srv/rigs/inventory --runs /srv/rigs/runs"
REMOVE = "Example: rigctl nightly remove"
STATUS = "Example: rigctl nightly status --json"
SystemOpt = Annotated[bool, typer.Option("--system", help="The system's systemd, as root; else that of your own user.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True, help="Accept the rigs every night, and tell in the morning what changed.")
    for name, command, epilog in (
        ("plan", plan_command, PLAN),
        ("run", run_command, RUN),
        ("remind", remind_command, REMIND),
        ("install", install_command, INSTALL),
        ("remove", remove_command, REMOVE),
        ("status", status_command, STATUS),
    ):
        group.command(name, epilog=epilog)(command)
    app.add_typer(group, name="nightly")


def plan_command(
    rigs: RigsArg = "all", inventory: InventoryOpt = None, runs: RunsOpt = DEFAULT_RUNS, as_json: JsonOpt = False
) -> None:
    """Show which rig gets which profile when; exit code 1 when some rig does not fit into the night."""
    from rigctl.cli.night_plan import as_json_of, print_plan  # noqa: PLC0415 - keeps `rigctl --help` fast
    from rigctl.nightly.settings import load_park  # noqa: PLC0415

    park = load_park(inventory, rigs)
    night = _planned(park, runs, park.spec.window.seconds)
    begin = _begin(park)
    if as_json:
        emit_json(as_json_of(night, begin))
    else:
        print_plan(night, begin, park)
    raise typer.Exit(ExitCode.FAILED if night.left_out else ExitCode.OK)


def run_command(
    rigs: RigsArg = "all",
    inventory: InventoryOpt = None,
    runs: RunsOpt = DEFAULT_RUNS,
    now: Annotated[
        bool, typer.Option("--now", help="Begin now, whatever the window says, for as long as it is.")
    ] = False,
    catch_up: Annotated[
        bool, typer.Option("--catch-up", help="Outside the window do nothing and call it well: for the timer.")
    ] = False,
    as_json: JsonOpt = False,
) -> None:
    """Carry the night out: acceptances, the morning line, messages, the heartbeat."""
    from rigctl.nightly import last  # noqa: PLC0415
    from rigctl.nightly.night import only_one, require_window  # noqa: PLC0415
    from rigctl.nightly.sending import require_secrets  # noqa: PLC0415
    from rigctl.nightly.settings import load_park  # noqa: PLC0415

    park = load_park(inventory, rigs)
    left = park.spec.window.seconds if now else _left(park, _local())
    if catch_up and left <= 0:
        console.print("the window is over; the next night is the next chance")
        return
    require_window(left)
    require_secrets(park.spec)
    _require_metrics(park)
    with only_one(runs):
        _beat(park, "start")
        began = _local()
        try:
            records, left_out = _carry_out(park, runs, inventory, left)
            code = _tell(park, runs, records, left_out, as_json=as_json)
        except BaseException:
            _beat(park, "fail")
            _keep(park, runs, last.broken(began, _local()), whole=rigs == EVERY)
            raise
        # A night in which nothing was measured is no night.
        heard = _beat(
            park, "" if any(one.rigs for one in records) else "fail", f"{len(records)} runs, {len(left_out)} left out"
        )
        kept = _keep(park, runs, last.ended(records, left_out, began, _local()), whole=rigs == EVERY)
    raise typer.Exit(code or (ExitCode.OK if heard and kept else ExitCode.UNMEASURED))


def remind_command(rigs: RigsArg = "all", inventory: InventoryOpt = None, runs: RunsOpt = DEFAULT_RUNS) -> None:
    """Tell again what a service did not take, and what has stayed bad for reminder_hours; the timer asks every hour."""
    from rigctl.nightly.morning import remind  # noqa: PLC0415
    from rigctl.nightly.settings import load_park  # noqa: PLC0415

    done = remind(load_park(inventory, rigs), runs, _local())
    for message in done.messages:
        typer.echo(f"{message.title}\n{message.body}")
    for error in done.refused:
        print_rigctl_error(error)
    raise typer.Exit(ExitCode.UNMEASURED if done.refused else ExitCode.OK)


def install_command(
    rigs: RigsArg = "all",
    inventory: InventoryOpt = None,
    runs: RunsOpt = DEFAULT_RUNS,
    system: SystemOpt = False,
    show: Annotated[bool, typer.Option("--show", help="Print the units, and install nothing.")] = False,
) -> None:
    """Install the timers: the night at the window's begin, and reminders; missed nights are caught up in the window."""
    from rigctl.inventory import DEFAULT_INVENTORY  # noqa: PLC0415
    from rigctl.nightly.settings import load_park  # noqa: PLC0415
    from rigctl.nightly.systemd import NIGHT, Place, install, units  # noqa: PLC0415

    park = load_park(inventory, rigs)
    place = Place.of(system=system)
    words = (rigs, "-i", str((inventory or DEFAULT_INVENTORY).absolute()), "--runs", str(runs.absolute()))
    files = units(park.spec, words, Path.cwd(), place)
    if show:
        for name, text in files.items():
            typer.echo(f"# {place.folder / name}\n{text}")
        return
    install(files, place)
    typer.echo(
        f"{NIGHT}.timer begins the night at {park.spec.window.begin:%H:%M}; secrets go into {place.environment_file}"
    )


def remove_command(system: SystemOpt = False) -> None:
    """Stop the timers and take them away; runs and what was told stay."""
    from rigctl.nightly.systemd import Place, remove  # noqa: PLC0415

    gone = remove(Place.of(system=system))
    typer.echo(f"removed {', '.join(gone)}" if gone else "there was none")


def status_command(
    rigs: RigsArg = "all",
    inventory: InventoryOpt = None,
    runs: RunsOpt = DEFAULT_RUNS,
    system: SystemOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Say when the next night is, and how old each rig's last verdict is; an old one is a finding (exit code 1)."""
    from rigctl.nightly.settings import load_park  # noqa: PLC0415
    from rigctl.nightly.status import ages  # noqa: PLC0415
    from rigctl.nightly.systemd import Place, state  # noqa: PLC0415
    from rigctl.store.index import Index  # noqa: PLC0415

    park = load_park(inventory, rigs)
    timer = state(Place.of(system=system))
    with Index.open(runs) as index:
        index.update()
        found = ages(park, index, _local())
    if as_json:
        rows = [
            {
                "rig": age.rig,
                "verdict": age.past.verdict.value if age.past is not None and age.past.verdict is not None else None,
                "run": age.past.run_id if age.past is not None else None,
                "hours": age.hours,
                "stale": age.stale,
            }
            for age in found
        ]
        emit_json({"timer": timer or None, "rigs": rows})
    else:
        said = (
            f"timer {timer['active']}, next {timer['next']}, last {timer['last'] or 'never'}" if timer else "no timer"
        )
        typer.echo(said)
        for age in found:
            typer.echo(age.sentence)
    raise typer.Exit(ExitCode.FAILED if any(age.stale for age in found) else ExitCode.OK)


def _carry_out(park: Park, runs: Path, inventory: Path | None, left_s: float) -> tuple[list[Record], dict[str, str]]:
    """Accept what fits; the records of tonight's runs, and who was left out, each with why."""
    from rigctl.nightly.night import Night, records_of  # noqa: PLC0415

    planned = _planned(park, runs, left_s)
    words = ("--runs", str(runs), *(("-i", str(inventory)) if inventory is not None else ()))
    night = Night(park, runs, words, lambda text: console.print(text, markup=False, soft_wrap=True))
    for one in planned.left_out:
        night.say(f"{one.wish.rig}: left out: {one.reason}")
    carried = night.carry_out([slot.wish for slot in planned.slots], left_s)
    left_out = {one.wish.rig: one.reason for one in planned.left_out}
    left_out |= {one.wish.rig: one.why_not for one in carried if one.run_id is None}
    return records_of(carried, runs), left_out


def _require_metrics(park: Park) -> None:
    from rigctl.metrics import require_place  # noqa: PLC0415

    if park.spec.metrics_file is not None:
        require_place(Path(park.spec.metrics_file))


def _keep(park: Park, runs: Path, night: LastNight, *, whole: bool) -> bool:
    """Keep what became of the night, and write metrics where the park wants them; whether that went well."""
    from rigctl.metrics.night import keep  # noqa: PLC0415

    try:
        keep(park, runs, night, _local(), whole=whole)
    except RigctlError as error:
        print_rigctl_error(error)
        return False
    return True


def _tell(park: Park, runs: Path, records: Sequence[Record], left_out: dict[str, str], *, as_json: bool) -> ExitCode:
    """Send what changed, and print the morning line."""
    from rigctl.nightly.morning import tell  # noqa: PLC0415

    said = tell(park, runs, records, left_out, _local())
    if as_json:
        ran = [one.run_id for one in records]
        emit_json({"morning": said.text, "left_out": said.left_out, "runs": ran})
    else:
        typer.echo(said.text)
    for error in said.refused:
        print_rigctl_error(error)
    return said.exit_code


def _planned(park: Park, runs: Path, window_s: float) -> Night:
    from rigctl.nightly.planner import plan  # noqa: PLC0415
    from rigctl.nightly.wishes import wishes  # noqa: PLC0415
    from rigctl.store.index import Index  # noqa: PLC0415

    with Index.open(runs) as index:
        index.update()
        return plan(wishes(park, index, _local()), window_s, park.budgets)


def _local() -> datetime:
    return datetime.now().astimezone()


def _begin(park: Park) -> datetime:
    """When the next window begins; the one that is open counts as now."""
    now, begin = _local(), park.spec.window.begin
    if park.spec.window.holds(now.time()):
        return now
    at = now.replace(hour=begin.hour, minute=begin.minute, second=0, microsecond=0)
    return at if at > now else at + timedelta(days=1)


def _left(park: Park, now: datetime) -> float:
    """What is left of the window that is open, seconds; 0 outside of it."""
    window = park.spec.window
    if not window.holds(now.time()):
        return 0.0
    end = now.replace(hour=window.end.hour, minute=window.end.minute, second=0, microsecond=0)
    return ((end if end > now else end + timedelta(days=1)) - now).total_seconds()


def _beat(park: Park, how: str, body: str = "") -> bool:
    """Ping the heartbeat; whether it was heard. A night is not lost for it: whoever listens there alarms by itself."""
    from rigctl.nightly.sending import NotTold, beat  # noqa: PLC0415

    if park.spec.heartbeat is None:
        return True
    try:
        beat(park.spec.heartbeat, how, body)
    except NotTold as error:
        print_rigctl_error(error)
        return False
    return True
