"""The acceptance of a fleet: measure every rig in parallel, verify, record, report."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

import rigctl
from rigctl.errors import RigError, UsageError
from rigctl.fleet.pool import for_each
from rigctl.fleet.testinfra_backend import live_host
from rigctl.judge import judge_run, user_test_files
from rigctl.measure.claim import Claim, somebody
from rigctl.measure.parts import KEPT
from rigctl.measure.rig import RigMeasurement
from rigctl.model.run import RunRig
from rigctl.model.spec import ProfileSpec
from rigctl.report.write import write_own
from rigctl.store import RunDir
from rigctl.store.baseline import find_baselines
from rigctl.store.decisions import newest_decisions
from rigctl.store.driving import LOCK, driven_by_me
from rigctl.store.xids import find_past_xids

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path
    from types import FrameType

    from rigctl.measure.progress import Progress
    from rigctl.model.reading import CommandReply
    from rigctl.model.rig import Rig
    from rigctl.model.verdict import Record

JUDGED, FINISHED = "run_judged", "run_finished"
"""Events of the journal: the record is written; the run is at its end."""
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
    detach: bool = False
    """Let the plans go on alone once they have begun."""
    wait: bool = True
    """Whether plans that go on alone are waited for."""
    again: bool = False
    """Whether another controller had begun the run, and what it left is to be finished."""


@dataclass(frozen=True)
class UnderWay:
    """A run whose plans go on alone: nothing is judged yet."""

    run_dir: RunDir
    rigs: tuple[str, ...]
    """The rigs whose readings are not all home."""


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
    """Carry a run out that `start_run` created, to its end; the record stands in its directory afterwards.

    Raises KeyboardInterrupt after Ctrl-C, once every burn has been stopped and the record was written.
    """
    outcome = carry_out(options, run_dir, progress)
    if isinstance(outcome, UnderWay):
        raise UsageError(f"run {run_dir.run_id} goes on alone", f"rigctl collect {run_dir.run_id}")
    return outcome


def carry_out(options: AcceptOptions, run_dir: RunDir, progress: Progress) -> RunOutcome | UnderWay:
    """Carry a run out, or finish one that was left; or leave it under way where its plans go on alone.

    Raises:
        UsageError: another process drives it, or it is finished.
        KeyboardInterrupt: after Ctrl-C, once every burn has been stopped that does not go on alone.
    """
    cancel = threading.Event()
    with driven_by_me(run_dir.path, options.claim.asked_by):
        gone = _taken_up(run_dir) if options.again else ""
        with _stop_on_signal(cancel):
            measured = _measure(options, run_dir, progress, cancel, gone)
            detached = {one.rig.name for one in measured if one.detached}
            alone = tuple(rig.name for rig in options.rigs if rig.name in detached)
            if alone:
                _close(measured)
                run_dir.journal("left_under_way", rigs=alone, interrupted=cancel.is_set())
            else:
                record = _judged_already(run_dir) or _verify(options, run_dir, measured)
        if not alone:
            _finish(options, run_dir, record, interrupted=cancel.is_set())
    if cancel.is_set():
        raise KeyboardInterrupt
    return UnderWay(run_dir, alone) if alone else RunOutcome(run_dir, record)


def _measure(
    options: AcceptOptions, run_dir: RunDir, progress: Progress, cancel: threading.Event, gone: str
) -> list[RigMeasurement]:
    known = {rig.name: rig.baseline for rig in run_dir.read_info().rigs}

    def measure(rig: Rig) -> RigMeasurement:
        one = RigMeasurement(rig, profile_of(rig, options), run_dir, progress, cancel, claim=options.claim)
        one.baseline = known[rig.name]
        one.detach, one.wait = options.detach, options.wait
        one.again, one.gone = options.again, gone
        return one.revisit() if options.again and run_dir.outcome(rig.name) is not None else one.run()

    return [one.value for one in for_each(options.rigs, measure, max_workers=options.max_rigs_at_once)]


def refuse_finished(run_dir: RunDir) -> None:
    """Raise UsageError where there is nothing to go on with."""
    if any(entry.event == FINISHED for entry in run_dir.journal_entries()):
        raise UsageError(f"run {run_dir.run_id} is finished", f"see it: rigctl report {run_dir.run_id}")


def _taken_up(run_dir: RunDir) -> str:
    """Note that another controller goes on, and say how long nobody has; empty where the run was to go on alone.

    Raises UsageError, as `refuse_finished`.
    """
    refuse_finished(run_dir)
    entries = run_dir.journal_entries()
    gone_s = max(0.0, time.time() - entries[-1].t_wall_s) if entries else 0.0
    alone = any(entry.event == KEPT and entry.detail["detached"] for entry in entries)
    info = run_dir.read_info()
    run_dir.journal("resumed", by=somebody(), rigctl_version=rigctl.__version__, gone_s=round(gone_s, 1))
    if alone:
        return ""
    other = f" by rigctl {rigctl.__version__}" if rigctl.__version__ != info.rigctl_version else ""
    return f"its controller was gone for {gone_s:.0f} s, then the run was resumed{other}"


def _judged_already(run_dir: RunDir) -> Record | None:
    """Return the record where the controller died after it had judged a whole run."""
    names = [rig.name for rig in run_dir.read_info().rigs]
    whole = run_dir.has_record and all(run_dir.outcome(name) is not None for name in names)
    judged = whole and any(entry.event == JUDGED for entry in run_dir.journal_entries())
    return run_dir.read_record() if judged else None


def _finish(options: AcceptOptions, run_dir: RunDir, record: Record, *, interrupted: bool) -> None:
    run_dir.write_record(record)
    run_dir.journal(JUDGED)
    if options.kind == "accept":
        write_own(run_dir, record)
    run_dir.journal(FINISHED, exit_code=int(record.exit_code), interrupted=interrupted)
    run_dir.compress()
    # What is left with this file was left in the middle.
    (run_dir.path / LOCK).unlink(missing_ok=True)


def _verify(options: AcceptOptions, run_dir: RunDir, measured: Sequence[RigMeasurement]) -> Record:
    """Judge what was measured; testinfra asks each rig over the connection that measured it."""
    hosts = {}
    for rig in options.rigs if options.again else ():
        run_dir.forget_commands(rig.name)
    try:
        for one in measured:
            left_out = one.outcome.unreached is not None or one.outcome.busy is not None
            if one.session is not None and not left_out and _connected(one, run_dir):
                hosts[one.rig.name] = live_host(one.session.connection, _recorder(run_dir, one.rig.name))
        for rig in options.rigs:
            run_dir.journal("verify_started", rig=rig.name, live=rig.name in hosts)
        return judge_run(run_dir, hosts, user_tests=options.acceptance_tests)
    finally:
        _close(measured)


def _close(measured: Sequence[RigMeasurement]) -> None:
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
