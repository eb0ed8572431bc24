"""`rigctl provision`: make rigs what the inventory says, with progress per rig."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from rigctl.cli.common import (
    DEFAULT_RUNS,
    SUDO_QUESTION,
    AskBecomeOpt,
    InventoryOpt,
    JsonOpt,
    RigsArg,
    RunsOpt,
    ask_secret,
    console,
    emit_json,
)
from rigctl.cli.watching import REFRESH_HZ, watching

if TYPE_CHECKING:
    import threading

    from rich.console import Console

    from rigctl.provision import ProvisionOutcome, ProvisionProgress, RigProvision

EPILOG = "Example: rigctl provision rig1 --check -i ./inventory"
_STYLES = {
    "done": "green", "ok": "green", "changed": "yellow", "failed": "bold red", "unreachable": "bold red",
    "not_run": "red", "running": "bold", "waiting": "dim",
}  # fmt: skip

CheckOpt = Annotated[bool, typer.Option("--check", help="Say what would change; change nothing.")]
DiffOpt = Annotated[bool, typer.Option("--diff", help="Log what changes in files, line by line (see ansible.log).")]
TagsOpt = Annotated[
    str,
    typer.Option("--tags", metavar="ROLES", help="Only these roles, such as nvidia_driver,cuda."),
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("provision", epilog=EPILOG)(provision_command)


def provision_command(
    rigs: RigsArg = "all",
    check: CheckOpt = False,
    diff: DiffOpt = False,
    tags: TagsOpt = "",
    ask_become_pass: AskBecomeOpt = False,
    inventory: InventoryOpt = None,
    runs: RunsOpt = DEFAULT_RUNS,
    as_json: JsonOpt = False,
) -> None:
    """Provision rigs: driver, CUDA, PyTorch, gpu-burn and a CPU burner, over SSH."""
    from rigctl.left import say_left  # noqa: PLC0415
    from rigctl.provision import ProvisionOptions, attempt  # noqa: PLC0415 - keeps `rigctl --help` fast

    wanted = tuple(tag.strip() for tag in tags.split(",") if tag.strip())
    options = ProvisionOptions(
        inventory=inventory,
        runs=runs,
        rigs=rigs,
        check=check,
        diff=diff,
        tags=wanted,
        become_password=ask_secret(SUDO_QUESTION) if ask_become_pass else None,
    )
    with contextlib.ExitStack() as shown:

        def watch(progress: ProvisionProgress) -> None:
            say_left(runs, [rig.name for rig in progress.snapshot()], console)
            shown.enter_context(watch_provision(progress, console))

        outcome = attempt(options, watch)
    if as_json:
        emit_json({**outcome.model_dump(mode="json"), "exit_code": int(outcome.exit_code)})
    else:
        print_outcome(outcome, console)
    raise typer.Exit(outcome.exit_code)


def watch_provision(progress: ProvisionProgress, to: Console) -> contextlib.AbstractContextManager[None]:
    """Show the fleet while the block runs: a live table on a terminal, a line per rig and role elsewhere."""
    return watching(to, lambda: table(progress), lambda ended: _write_lines(progress, to, ended))


def table(progress: ProvisionProgress) -> Table:
    """The fleet as it is now: role (or play) · task · n/m, changes, elapsed time."""
    drawn = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for heading in ("rig", "role", "task", "changed"):
        drawn.add_column(heading, justify="right" if heading == "changed" else "left")
    for rig in progress.snapshot():
        style = _STYLES.get(rig.state, "")
        words = rig.task if rig.state == "running" else rig.state
        drawn.add_row(rig.name, Text(rig.stage), Text(words, style=style, overflow="ellipsis"), str(rig.changed))
    drawn.add_row("", "", Text(f"{_steps(progress)} · {progress.elapsed_s:.0f} s", style="dim"), "")
    return drawn


def _steps(progress: ProvisionProgress) -> str:
    total = max(progress.total, progress.announced)
    return f"{progress.announced}/{total}"


def _write_lines(progress: ProvisionProgress, to: Console, ended: threading.Event) -> None:
    seen: dict[str, str] = {}
    while not ended.wait(1 / REFRESH_HZ):
        for rig in progress.snapshot():
            if rig.stage and seen.get(rig.name) != rig.stage and rig.state == "running":
                seen[rig.name] = rig.stage
                words = f"{rig.name}: {rig.stage} ({_steps(progress)}, {progress.elapsed_s:.0f} s)"
                to.print(words, markup=False, soft_wrap=True)


def print_outcome(outcome: ProvisionOutcome, to: Console) -> None:
    """Print a line per rig, each failure with its task, message and remedy, and where the log is."""
    for rig in outcome.rigs:
        to.print(_summary(rig, check=outcome.check))
        if not rig.complete:
            where = " · ".join(word for word in (rig.role, rig.task) if word)
            to.print(Text(f"  {where}: {rig.message}" if where else f"  {rig.message}"))
            to.print(Text(f"  do: {rig.hint}", style="cyan"))
    to.print(Text(f"{outcome.seconds:.0f} s · log: {outcome.path}/ansible.log", style="dim"))


def _summary(rig: RigProvision, *, check: bool) -> Text:
    word = "would change" if check and rig.state == "changed" else rig.state
    counts = f"ok={rig.ok} changed={rig.changed} failed={rig.failed} skipped={rig.skipped}"
    return Text.assemble(f"{rig.name} ", (word, _STYLES[rig.state]), f"  {counts}")
