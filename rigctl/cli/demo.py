"""`rigctl demo`: the main job from end to end on simulated rigs."""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rigctl.cli.common import DEFAULT_RUNS, RunsOpt, console
from rigctl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rigctl.measure.progress import Progress
    from rigctl.provision import ProvisionProgress

EPILOG = "Example: rigctl demo --fault pump_dead"

CountOpt = Annotated[int, typer.Option("-n", "--count", min=1, max=12, help="How many rigs; each needs a core.")]
StateOpt = Annotated[
    Path | None,
    typer.Option("--state", metavar="DIR", help="State folder of the rigs.", show_default="the user's own, for demos"),
]
FaultOpt = Annotated[
    str | None,
    typer.Option(
        "--fault",
        metavar="NAME[,KEY=VALUE…]",
        help="Break the last rig before the acceptance: see 'rigctl sim faults'.",
    ),
]
KeepOpt = Annotated[bool, typer.Option("--keep", help="Leave the rigs running.")]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("demo", epilog=EPILOG)(demo_command)


def demo_command(
    count: CountOpt = 2,
    state: StateOpt = None,
    runs: RunsOpt = DEFAULT_RUNS,
    fault: FaultOpt = None,
    keep: KeepOpt = False,
) -> None:
    """Provision, accept and report two simulated rigs, then take them down. The report's path comes last."""
    from rigctl.demo import DemoOptions, run_demo  # noqa: PLC0415 - keeps `rigctl --help` fast
    from rigctl.report.terminal import print_record  # noqa: PLC0415

    began = time.monotonic()
    name, parameters = named_fault(fault)
    options = DemoOptions(count, state or default_state(), runs, name, parameters, keep)
    outcome = run_demo(options, ConsoleShow())
    print_record(console, outcome.record)
    console.print(f"\nThe demo took {spoken(time.monotonic() - began)}. The report:")
    sys.stdout.write(f"{(outcome.run_dir.path / 'report.html').resolve()}\n")
    raise typer.Exit(outcome.record.exit_code)


def named_fault(words: str | None) -> tuple[str | None, dict[str, str]]:
    """Return name and parameters of `NAME,KEY=VALUE,…`. Raises UsageError."""
    if words is None:
        return None, {}
    name, *pairs = words.split(",")
    wrong = [pair for pair in pairs if "=" not in pair]
    if wrong:
        raise UsageError(f"--fault {words}: {wrong[0]!r} is not KEY=VALUE", "for example: --fault ssh_down,when=load")
    return name, dict(pair.split("=", 1) for pair in pairs)


def default_state() -> Path:
    """Return where a demo keeps its rigs' state: apart from those that `rigctl sim up` brought up."""
    from platformdirs import user_state_path  # noqa: PLC0415

    return user_state_path("rigctl") / "demo"


class ConsoleShow:
    """Headings with durations, and the live table of the acceptance."""

    @contextlib.contextmanager
    def stage(self, title: str) -> Iterator[None]:
        """Print the heading; when the block ends, how long it took."""
        console.print(f"\n[bold]▸ {title}[/bold]")
        began = time.monotonic()
        try:
            yield
        except BaseException:
            console.print(f"  [red]stopped[/red] after {spoken(time.monotonic() - began)}")
            raise
        console.print(f"  [green]done[/green] in {spoken(time.monotonic() - began)}")

    def say(self, text: str) -> None:
        """Print one line."""
        console.print(f"  {text}", markup=False, soft_wrap=True)

    @contextlib.contextmanager
    def watch(self, progress: Progress) -> Iterator[None]:
        """Show the live table."""
        from rigctl.cli.live import watch  # noqa: PLC0415

        with watch(progress, console):
            yield

    def watch_provision(self, progress: ProvisionProgress) -> contextlib.AbstractContextManager[None]:
        """Show the live table of the roles."""
        from rigctl.cli.provision import watch_provision  # noqa: PLC0415

        return watch_provision(progress, console)


def spoken(seconds: float) -> str:
    """Return a duration as people say it: `7 s`, `2 min 5 s`."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
