"""The acceptance of a fleet: measure every rig in parallel, verify, record, report."""

from __future__ import annotations

import contextlib
import signal
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from rigctl.errors import RigError, UsageError
from rigctl.fleet.pool import for_each
from rigctl.fleet.testinfra_backend import live_host
from rigctl.judge import judge_run, user_test_files
from rigctl.measure.claim import Claim
from rigctl.measure.rig import RigMeasurement
from rigctl.model.run import RunRig
from rigctl.model.spec import ProfileSpec
from rigctl.report.write import write_own
from rigctl.store import RunDir
from rigctl.store.baseline import find_baselines
from rigctl.store.decisions import newest_decisions
from rigctl.store.xids import find_past_xids

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path
    from types import FrameType

    from rigctl.measure.progress import Progress
    from rigctl.model.reading import CommandReply
    from rigctl.model.rig import Rig
    from rigctl.model.verdict import Record

NO_LOAD = ProfileSpec(
    idle_seconds=0, cpu_burn_seconds=0, gpu_burn_seconds=0, all_burn_seconds=0, train=False, sample_hz=1
)
"""What `rigctl check` does: look, and put nothing to work."""


@dataclass(frozen=True)
class AcceptOptions:
    """What an acceptance was asked to do."""

    rigs: tuple[Rig, ...]
    profile: str
    runs: Path
    asked: dict[str, Any] = field(default_factory=dict)
    """The command's own words, for run.json."""
    kind: Literal["accept", "check"] = "accept"
    max_rigs_at_once: int = 32
    acceptance_tests: tuple[Path, ...] = ()
    """Folders of the user's own test files."""
    claim: Claim = field(default_factory=Claim)


@dataclass(frozen=True)
class RunOutcome:
    """A finished run."""

    run_dir: RunDir
    record: Record


def profile_of(rig: Rig, options: AcceptOptions) -> ProfileSpec:
    """Return the profile that was asked for, as this rig's inventory defines it. Raises UsageError."""
    if options.kind == "check":
        return NO_LOAD
    try:
        return rig.profiles[options.profile]
    except KeyError:
        known = ", ".join(sorted(rig.profiles)) or "none"
        raise UsageError(
            f"{rig.name} has no profile {options.profile!r}", f"rig_profiles in its inventory defines: {known}"
        ) from None


def start_run(options: AcceptOptions) -> RunDir:
    """Check what was asked and create the run directory. Raises UsageError before anything is touched."""
    user_test_files(options.acceptance_tests)
    names = tuple(rig.name for rig in options.rigs)
    decided = newest_decisions(options.runs)
    known = find_baselines(options.runs, names, decided)
    past_xids = find_past_xids(options.runs, names, datetime.now(UTC))
    rigs = tuple(
        RunRig(
            name=rig.name,
            spec=rig.spec,
            profile=profile_of(rig, options),
            waivers=rig.waivers,
            baseline=known.get(rig.name),
            decision=decided.get(rig.name),
            past_xids=past_xids.get(rig.name, ()),
        )
        for rig in options.rigs
    )
    return RunDir.create(
        options.runs,
        kind=options.kind,
        profile=options.profile,
        asked=options.asked,
        rigs=rigs,
    )


def accept(options: AcceptOptions, run_dir: RunDir, progress: Progress) -> RunOutcome:
    """Carry a run out that `start_run` created; the record stands in its directory afterwards.

    Raises KeyboardInterrupt after Ctrl-C, once every burn has been stopped and the record was written.
    """
    cancel = threading.Event()
    known = {rig.name: rig.baseline for rig in run_dir.read_info().rigs}

    def measure(rig: Rig) -> RigMeasurement:
        one = RigMeasurement(rig, profile_of(rig, options), run_dir, progress, cancel, claim=options.claim)
        one.baseline = known[rig.name]
        return one.run()

    with _stop_on_signal(cancel):
        measured = [one.value for one in for_each(options.rigs, measure, max_workers=options.max_rigs_at_once)]
        record = _verify(options, run_dir, measured)
    run_dir.write_record(record)
    if options.kind == "accept":
        write_own(run_dir, record)
    run_dir.journal("run_finished", exit_code=int(record.exit_code), interrupted=cancel.is_set())
    run_dir.compress()
    if cancel.is_set():
        raise KeyboardInterrupt
    return RunOutcome(run_dir, record)


def _verify(options: AcceptOptions, run_dir: RunDir, measured: Sequence[RigMeasurement]) -> Record:
    """Judge what was measured; testinfra asks each rig over the connection that measured it."""
    hosts = {}
    try:
        for one in measured:
            left_out = one.outcome.unreached is not None or one.outcome.busy is not None
            if one.session is not None and not left_out and _connected(one, run_dir):
                hosts[one.rig.name] = live_host(one.session.connection, _recorder(run_dir, one.rig.name))
        for rig in options.rigs:
            run_dir.journal("verify_started", rig=rig.name, live=rig.name in hosts)
        return judge_run(run_dir, hosts, user_tests=options.acceptance_tests)
    finally:
        for one in measured:
            if one.session is not None:
                one.session.close()


def _connected(measured: RigMeasurement, run_dir: RunDir) -> bool:
    """Whether the rig can be asked; a connection that broke while the other rigs were measured is made again."""
    if measured.session is None:
        return False
    try:
        measured.session.connection.connect()
    except RigError as error:
        run_dir.journal("rig_error", rig=measured.rig.name, step="verify", error=error.message, hint=error.hint)
        return False
    return True


def _recorder(run_dir: RunDir, rig: str) -> Callable[[CommandReply], None]:
    def record(reply: CommandReply) -> None:
        run_dir.append_command(rig, reply)

    return record


@contextlib.contextmanager
def _stop_on_signal(cancel: threading.Event) -> Iterator[None]:
    """Let the first Ctrl-C (or SIGTERM) stop every burn in good order; the second one leaves the judging out."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    known = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def stop(_number: int, _frame: FrameType | None) -> None:
        if cancel.is_set():
            raise KeyboardInterrupt
        cancel.set()

    for number in known:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in known.items():
            signal.signal(number, handler)
