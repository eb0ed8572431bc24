"""`rigctl judge`: judge a run again from its files, offline."""

from __future__ import annotations

from typing import Annotated

import typer

from rigctl.cli.common import DEFAULT_RUNS, JsonOpt, RunsOpt, console, emit_json

EPILOG = "Example: rigctl judge latest --json"

RunArg = Annotated[
    str, typer.Argument(metavar="RUN", help="A run's id, its directory, or `latest`: the last acceptance.")
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("judge", epilog=EPILOG)(judge_command)


def judge_command(run: RunArg, runs: RunsOpt = DEFAULT_RUNS, as_json: JsonOpt = False) -> None:
    """Judge a run again from its files and renew its report: same readings, same verdicts; no rig is touched."""
    from rigctl.judge import judge_run  # noqa: PLC0415 - keeps `rigctl --help` fast
    from rigctl.report.terminal import print_record  # noqa: PLC0415
    from rigctl.report.write import write_own  # noqa: PLC0415
    from rigctl.store import RunDir  # noqa: PLC0415
    from rigctl.store.ids import LATEST  # noqa: PLC0415

    run_dir = RunDir.open(runs, run, kind="accept" if run == LATEST else None)
    record = judge_run(run_dir)
    run_dir.write_record(record)
    if run_dir.read_info().kind == "accept":
        write_own(run_dir, record)
    if as_json:
        emit_json(record)
    else:
        print_record(console, record, path=run_dir.path)
    raise typer.Exit(record.exit_code)
