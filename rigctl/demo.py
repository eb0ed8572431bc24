"""The demo: simulated rigs are brought up, provisioned, accepted, reported and taken down again."""

from __future__ import annotations

import contextlib
import signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from rigctl.accept import AcceptOptions, accept, start_run
from rigctl.inventory import load_fleet
from rigctl.measure.progress import Progress
from rigctl.provision import ProvisionOptions, provision
from rigctl.sim import UpOptions, down, faults, up

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from rigctl.accept import RunOutcome
    from rigctl.model.rig import Rig
    from rigctl.provision import ProvisionProgress

PROFILE = "standard"
"""What a nightly acceptance would run; the simulated inventory keeps it short."""


class Show(Protocol):
    """Where the demo says what it does."""

    def stage(self, title: str) -> contextlib.AbstractContextManager[None]:
        """Show a heading; when the block ends, how long it took."""

    def say(self, text: str) -> None:
        """Show one line."""

    def watch(self, progress: Progress) -> contextlib.AbstractContextManager[None]:
        """Show an acceptance while the block runs."""

    def watch_provision(self, progress: ProvisionProgress) -> contextlib.AbstractContextManager[None]:
        """Show a provisioning while the block runs."""


@dataclass(frozen=True)
class DemoOptions:
    """What a demo was asked to do."""

    count: int
    """Number of rigs."""
    state: Path
    """State folder of the simulated rigs."""
    runs: Path
    fault: str | None = None
    """A fault of the catalogue, applied to the last rig before the acceptance."""
    fault_parameters: Mapping[str, str] = field(default_factory=dict)
    """The fault's own, and `when`: `now`, `boot` or `load`."""
    keep: bool = False
    """Leave the rigs running."""


def run_demo(options: DemoOptions, show: Show) -> RunOutcome:
    """Bring rigs up, provision and accept them; take them down whatever happens, unless they are to be kept.

    Raises:
        UsageError: an unknown fault, or this machine cannot run simulated rigs.
        ChangeIncomplete: the rigs could not be provisioned.
        KeyboardInterrupt: after Ctrl-C, once the rigs are down.
    """
    if options.fault is not None:
        faults.check(options.fault, options.fault_parameters)
    with _taken_down(options, show):
        with show.stage(f"Bring up {options.count} simulated rigs"):
            state = up(UpOptions(count=options.count, directory=options.state), say=show.say)
        rigs = load_fleet(state.inventory)
        with show.stage("Provision: driver, CUDA, PyTorch, gpu-burn, stress-ng, over SSH"):
            _provision(ProvisionOptions(inventory=state.inventory, runs=options.runs), show)
        if options.fault is not None:
            with show.stage(f"Break {rigs[-1].name}: {options.fault}"):
                faults.apply(options.state, rigs[-1].name, options.fault, options.fault_parameters)
        with show.stage("Accept: burn under guard, training, verdicts, report"):
            return _accept(rigs, options, show)


def _provision(options: ProvisionOptions, show: Show) -> None:
    with contextlib.ExitStack() as shown:
        outcome = provision(options, lambda progress: shown.enter_context(show.watch_provision(progress)))
    for rig in outcome.rigs:
        show.say(f"{rig.name}: {rig.changed} changes")


def _accept(rigs: tuple[Rig, ...], options: DemoOptions, show: Show) -> RunOutcome:
    asked = AcceptOptions(rigs, PROFILE, options.runs, {"command": "demo", "fault": options.fault})
    run_dir = start_run(asked)
    progress = Progress(rig.name for rig in rigs)
    with show.watch(progress):
        return accept(asked, run_dir, progress)


@contextlib.contextmanager
def _taken_down(options: DemoOptions, show: Show) -> Iterator[None]:
    """Take the rigs down when the block ends in any way; a further Ctrl-C does not leave half of them behind."""
    try:
        yield
    finally:
        if options.keep:
            show.say(f"rigs are kept: rigctl accept -i {options.state / 'inventory'}")
            show.say(f"to take them down: rigctl sim down --state {options.state}")
        else:
            with _uninterrupted(), show.stage("Take the rigs down"):
                down(options.state)


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
