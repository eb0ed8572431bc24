"""What `accept`, its `--resume` and `collect` have in common: watch the rigs, then show the record or what goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import typer

from rigctl.cli.common import console, emit_json
from rigctl.errors import ExitCode, NoRoom

if TYPE_CHECKING:
    from rigctl.accept import AcceptOptions, UnderWay
    from rigctl.store import RunDir


def carry_and_tell(options: AcceptOptions, run_dir: RunDir, *, as_json: bool) -> NoReturn:
    """Carry the run out and leave with its exit code. Raises KeyboardInterrupt after Ctrl-C."""
    from rigctl.accept import UnderWay, carry_out  # noqa: PLC0415 - keeps `rigctl --help` fast
    from rigctl.cli.live import watch  # noqa: PLC0415
    from rigctl.left import left_acceptance  # noqa: PLC0415
    from rigctl.measure.progress import Progress  # noqa: PLC0415
    from rigctl.report.terminal import print_record  # noqa: PLC0415

    names = [rig.name for rig in options.rigs]
    progress = Progress(names)
    try:
        with watch(progress, console):
            outcome = carry_out(options, run_dir, progress)
    except (KeyboardInterrupt, NoRoom):
        _tell_stopped(run_dir, as_json=as_json)
        for sentence in left_acceptance(run_dir, names):
            console.print(sentence, markup=False, soft_wrap=True)
        raise
    if isinstance(outcome, UnderWay):
        _tell_under_way(outcome, as_json=as_json)
        # Begun as asked; where its readings were asked for, they are not all here.
        raise typer.Exit(ExitCode.UNMEASURED if options.again else ExitCode.OK)
    if as_json:
        emit_json(outcome.record)
    else:
        print_record(console, outcome.record, path=run_dir.path)
    raise typer.Exit(outcome.record.exit_code)


def _tell_stopped(run_dir: RunDir, *, as_json: bool) -> None:
    if as_json and run_dir.has_record:
        emit_json(run_dir.read_record())
    console.print(f"stopped; what was measured is in {run_dir.path}", markup=False, soft_wrap=True)


def _tell_under_way(under_way: UnderWay, *, as_json: bool) -> None:
    run_dir = under_way.run_dir
    if as_json:
        emit_json({"run_id": run_dir.run_id, "goes_on_alone": list(under_way.rigs), "path": str(run_dir.path)})
        return
    where = ", ".join(under_way.rigs)
    console.print(
        f"run {run_dir.run_id} goes on alone on {where}; bring it home: rigctl collect {run_dir.run_id}",
        markup=False,
        soft_wrap=True,
    )
