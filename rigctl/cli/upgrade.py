"""`rigctl upgrade`: drivers, toolkits, PyTorch and kernels over rigs in use, one canary first, and back if it fails."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from rich.text import Text

from rigctl.cli.common import (
    DEFAULT_RUNS,
    EvictOpt,
    IgnoreLockOpt,
    InventoryOpt,
    JsonOpt,
    RigsArg,
    RunsOpt,
    console,
    emit_json,
    print_error,
)
from rigctl.cli.watching import watching
from rigctl.errors import ExitCode, UsageError

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import FrameType

    from rigctl.upgrade.run import Upgrade, UpgradeOutcome
    from rigctl.upgrade.start import UpgradeOptions

EPILOG = "Example: rigctl upgrade --driver 535 --canary rig1 --max-unavailable 25% -i ./inventory"

DriverOpt = Annotated[
    str | None, typer.Option("--driver", metavar="BRANCH", help="A branch (535), or a whole version.")
]
CudaOpt = Annotated[str | None, typer.Option("--cuda", metavar="VERSION", help="A CUDA toolkit, such as 12.2.")]
TorchOpt = Annotated[str | None, typer.Option("--torch", metavar="VERSION", help="A PyTorch, such as 2.1.2.")]
KernelOpt = Annotated[
    str | None,
    typer.Option("--kernel", metavar="VERSION", help="A kernel, such as 5.15.0-105-generic; older ones too."),
]
CanaryOpt = Annotated[str | None, typer.Option("--canary", metavar="RIG", help="This rig first. [default: least busy]")]
OutOpt = Annotated[
    str, typer.Option("--max-unavailable", metavar="N|P%", help="So many rigs out of use at once, at most.")
]
FailuresOpt = Annotated[int, typer.Option("--max-failures", min=0, help="So many rigs may fail before it stops.")]
SettleOpt = Annotated[float, typer.Option("--settle-minutes", min=0, help="How long to wait after the canary.")]
DrainOpt = Annotated[float, typer.Option("--drain-minutes", min=0, help="How long to wait for jobs and users.")]
BackOpt = Annotated[bool, typer.Option("--no-rollback", help="Leave a rig that failed as it is, drained.")]
DryOpt = Annotated[bool, typer.Option("--dry-run", help="Say what each rig would get; change nothing.")]
StatusOpt = Annotated[
    bool, typer.Option("--status", help="How far the newest upgrade, or RIGS as a run's id, has come.")
]
ResumeOpt = Annotated[str | None, typer.Option("--resume", metavar="RUN", help="Go on with a run that was left.")]
AbortOpt = Annotated[str | None, typer.Option("--abort", metavar="RUN", help="Take back what a run has begun.")]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("upgrade", epilog=EPILOG)(upgrade_command)


def upgrade_command(
    rigs: RigsArg = "all",
    driver: DriverOpt = None,
    cuda: CudaOpt = None,
    torch: TorchOpt = None,
    kernel: KernelOpt = None,
    canary: CanaryOpt = None,
    max_unavailable: OutOpt = "1",
    max_failures: FailuresOpt = 0,
    settle_minutes: SettleOpt = 10,
    drain_minutes: DrainOpt = 60,
    no_rollback: BackOpt = False,
    evict_users: EvictOpt = False,
    ignore_lock: IgnoreLockOpt = False,
    dry_run: DryOpt = False,
    status: StatusOpt = False,
    resume: ResumeOpt = None,
    abort: AbortOpt = None,
    inventory: InventoryOpt = None,
    runs: RunsOpt = DEFAULT_RUNS,
    as_json: JsonOpt = False,
) -> None:
    """Upgrade rigs in use: drained one after another, verified, given back; taken back where it fails."""
    from rigctl.model.upgrade import Wishes  # noqa: PLC0415 - keeps `rigctl --help` fast
    from rigctl.upgrade.start import UpgradeOptions  # noqa: PLC0415

    options = UpgradeOptions(
        wishes=Wishes(driver=driver, cuda=cuda, torch=torch, kernel=kernel),
        inventory=inventory,
        runs=runs,
        rigs=rigs,
        canary=canary,
        max_unavailable=max_unavailable,
        max_failures=max_failures,
        settle_s=60 * settle_minutes,
        drain_limit_s=60 * drain_minutes,
        rollback=not no_rollback,
        evict_users=evict_users,
        ignore_lock=ignore_lock,
    )
    left = resume if resume is not None else abort
    _refuse_mixed(options.wishes.words, dry_run=dry_run, status=status, resume=resume, abort=abort)
    if status:
        _status(runs, "latest" if rigs == "all" else rigs, as_json=as_json)
    elif left is not None:
        _go_on(runs, left, take_back=abort is not None, as_json=as_json)
    elif dry_run:
        _plan(options, as_json=as_json)
    else:
        _begin(options, as_json=as_json)


def _refuse_mixed(wishes: str, *, dry_run: bool, status: bool, resume: str | None, abort: str | None) -> None:
    if sum((dry_run, status, resume is not None, abort is not None)) > 1:
        raise UsageError("--dry-run, --status, --resume and --abort exclude each other", "give one of them")
    if wishes and (status or resume is not None or abort is not None):
        raise UsageError(f"the run knows what is wished: {wishes} cannot be given here", "leave it out")


def _begin(options: UpgradeOptions, *, as_json: bool) -> None:
    from rigctl.left import say_left  # noqa: PLC0415
    from rigctl.measure.claim import somebody  # noqa: PLC0415
    from rigctl.store.driving import driven_by_me  # noqa: PLC0415
    from rigctl.upgrade.start import begin  # noqa: PLC0415

    upgrade = begin(options)
    say_left(options.runs, upgrade.machines, console)
    with driven_by_me(upgrade.run.path, somebody()):
        _to_its_end(upgrade, upgrade.drive, as_json=as_json)


def _go_on(runs: Path, run_id: str, *, take_back: bool, as_json: bool) -> None:
    from rigctl.measure.claim import somebody  # noqa: PLC0415
    from rigctl.store import RunDir  # noqa: PLC0415
    from rigctl.store.driving import driven_by_me  # noqa: PLC0415
    from rigctl.upgrade.start import again  # noqa: PLC0415

    run = RunDir.open(runs, run_id, kind="upgrade")
    with driven_by_me(run.path, somebody()):  # before the journal is read: another controller may be writing it
        upgrade = again(run, runs)
        if take_back:
            _to_its_end(upgrade, lambda: upgrade.abort("aborted"), as_json=as_json)
        for machine in upgrade.machines.values():
            machine.reopen()
        _to_its_end(upgrade, upgrade.drive, as_json=as_json)


def _to_its_end(upgrade: Upgrade, go: Callable[[], UpgradeOutcome], *, as_json: bool) -> NoReturn:
    """Go on until it ends or is stopped; say and write what became of it, and leave with its exit code."""
    try:
        with _stops(upgrade.stop), _watched(upgrade):
            outcome = go()
    except KeyboardInterrupt:
        _tell(upgrade, ExitCode.INTERRUPTED, as_json=as_json)
        raise
    _tell(upgrade, outcome.exit_code, as_json=as_json)
    raise typer.Exit(outcome.exit_code)


def _plan(options: UpgradeOptions, *, as_json: bool) -> None:
    from rigctl.upgrade.dry_run import plan_fleet, print_plans  # noqa: PLC0415

    planned = plan_fleet(options)
    if as_json:
        emit_json(planned.as_json())
    else:
        print_plans(planned, console)
    raise typer.Exit(planned.exit_code)


def _status(runs: Path, run_id: str, *, as_json: bool) -> None:
    from rigctl.store import RunDir  # noqa: PLC0415
    from rigctl.store.driving import is_driven  # noqa: PLC0415
    from rigctl.upgrade.left import state_of  # noqa: PLC0415
    from rigctl.upgrade.show import status_of, status_table  # noqa: PLC0415

    run = RunDir.open(runs, run_id, kind="upgrade")
    rows = status_of(run)
    if as_json:
        emit_json({"run_id": run.run_id, "driven": is_driven(run.path), "rigs": [row.as_json() for row in rows]})
    else:
        console.print(status_table(rows), Text(f"run {run.run_id}", style="dim"))
        for sentence in state_of(run, [row.rig for row in rows]):
            console.print(Text(sentence, style="yellow"), soft_wrap=True)
    raise typer.Exit(ExitCode.OK)


def _tell(upgrade: Upgrade, code: ExitCode, *, as_json: bool) -> None:
    from rigctl.report.upgrade import write_page  # noqa: PLC0415
    from rigctl.upgrade.show import print_ends  # noqa: PLC0415
    from rigctl.upgrade.summary import upgrade_summary  # noqa: PLC0415

    summary = upgrade_summary(upgrade.run)
    page = write_page(upgrade.run, summary)
    if as_json:
        emit_json({**summary.model_dump(mode="json"), "exit_code": int(code)})
    else:
        print_ends(summary, page, console)


@contextmanager
def _watched(upgrade: Upgrade) -> Iterator[None]:
    from rigctl.upgrade.show import Board  # noqa: PLC0415

    board = Board(upgrade)
    with watching(console, board.table, lambda ended: board.write_lines(console, ended)):
        yield


@contextmanager
def _stops(stop: threading.Event) -> Iterator[None]:
    """Let the first Ctrl-C end the run after the present steps; the second one leaves at once, as a kill would."""
    known = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def told(_number: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            # Not by an exception: the rigs' threads would be waited for. The journal is whole after each line.
            console.show_cursor()
            print_error("left in the middle of a step", "rigctl upgrade --status")
            os._exit(ExitCode.INTERRUPTED)
        stop.set()
        console.print("stopping once the present steps have ended; again: at once", style="yellow")

    for number in known:
        signal.signal(number, told)
    try:
        yield
    finally:
        for number, handler in known.items():
            signal.signal(number, handler)
