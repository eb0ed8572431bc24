"""An upgrade of a fleet: the canary, then the others, so many at once, until all have ended or too many have failed."""

from __future__ import annotations

import sys
import threading
import time
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rigctl.errors import RigctlError
from rigctl.model.upgrade import End, RigEnd, exit_code
from rigctl.report.text import duration
from rigctl.upgrade import journal
from rigctl.upgrade.order import OUT, choose_canary, has_stopped, may_begin
from rigctl.upgrade.port import Stopped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rigctl.errors import ExitCode
    from rigctl.model.upgrade import Group, Pace
    from rigctl.store import RunDir
    from rigctl.upgrade.machine import Machine

CANARY_CHOSEN, SETTLED, STOPPED = "canary_chosen", "settled", "upgrade_stopped"


@dataclass(frozen=True)
class UpgradeOutcome:
    """How every rig ended."""

    run_id: str
    ends: tuple[RigEnd, ...]

    @property
    def exit_code(self) -> ExitCode:
        """0 when every rig is as asked, else 4."""
        return exit_code(self.ends)


def how_busy(machines: Mapping[str, Machine]) -> dict[str, int]:
    """Ask every rig at once how many use it; one that does not answer is no canary while another does."""
    with ThreadPoolExecutor(len(machines), thread_name_prefix="busy") as pool:
        return dict(zip(machines, pool.map(_users, machines.values()), strict=True))


def _users(machine: Machine) -> int:
    try:
        return len((*machine.drain.jobs(), *machine.port.users()))
    except RigctlError:
        return sys.maxsize


@dataclass
class Upgrade:
    """One run over its rigs."""

    run: RunDir
    machines: Mapping[str, Machine]
    """In the inventory's order."""
    pace: Pace
    groups: tuple[Group, ...] = ()
    busy: Callable[[], Mapping[str, int]] = dict
    """Asked where no canary was named: how many use each rig; the least busy one goes first."""
    stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        """Let every machine know of Ctrl-C, and of the other rigs' ends."""
        self._canary = ""
        self._began: set[str] = set()
        self._settled_at: float | None = None
        for machine in self.machines.values():
            machine.stop = self.stop
            machine.halted = self._halted

    def drive(self) -> UpgradeOutcome:
        """Go on until every rig has ended. Raises KeyboardInterrupt once the present steps of all have ended."""
        self._canary = self._known_canary()
        self._settle()
        with ThreadPoolExecutor(len(self.machines), thread_name_prefix="upgrade") as pool:
            running: dict[Future[RigEnd], str] = {}
            while True:
                for rig in self._ready():
                    self._began.add(rig)
                    running[pool.submit(self.machines[rig].advance)] = rig
                if not running:
                    break
                for done in wait(running, return_when=FIRST_COMPLETED).done:
                    self._take(done, running.pop(done))
        if self.stop.is_set():
            raise KeyboardInterrupt
        return self.outcome()

    @property
    def waits_for(self) -> str:
        """What rigs wait for that have not been begun, in words."""
        if self._settled_at is None:
            return ""
        return f"{self._canary} settles, {duration(max(0.0, self._settled_at - time.monotonic()))} left"

    def abort(self, reason: str) -> UpgradeOutcome:
        """Take every rig back that has not ended; all at once, as none is put out of use by it.

        Raises KeyboardInterrupt once the present steps of all have ended.
        """
        for machine in self.machines.values():
            machine.abort(reason)
        with ThreadPoolExecutor(len(self.machines), thread_name_prefix="upgrade") as pool:
            for done in [pool.submit(machine.advance) for machine in self.machines.values()]:
                with suppress(Stopped):
                    done.result()
        if self.stop.is_set():
            raise KeyboardInterrupt
        return self.outcome()

    def outcome(self) -> UpgradeOutcome:
        """How every rig has ended, or that it has not."""
        run_id = self.run.run_id
        ends = (journal.end_of(machine.rig, machine.history, run_id) for machine in self.machines.values())
        return UpgradeOutcome(run_id, tuple(ends))

    def _ends(self) -> list[RigEnd]:
        return [machine.history.end for machine in self.machines.values() if machine.history.end is not None]

    def _halted(self) -> bool:
        return has_stopped(self.pace, self._canary, self._ends())

    def _known_canary(self) -> str:
        """The canary of this run; one that was chosen by a controller before this one stays."""
        for entry in self.run.journal_entries():
            if entry.event == CANARY_CHOSEN:
                return str(entry.detail["rig"])
        asked = self.pace.canary is None and len(self.machines) > 1
        chosen = choose_canary(self.pace, list(self.machines), self.busy() if asked else {})
        self.run.journal(CANARY_CHOSEN, rig=chosen)
        return chosen

    def _ready(self) -> Iterator[str]:
        """Rigs that may be begun now, one after another: those first that an earlier controller had begun."""
        left = [rig for rig, machine in self.machines.items() if machine.history.end is None]
        for rig in sorted(left, key=lambda one: (not self.machines[one].history.begun, one != self._canary)):
            if self._may_begin(rig):
                yield rig

    def _may_begin(self, rig: str) -> bool:
        if rig in self._began or self.stop.is_set():
            return False
        if self.machines[rig].history.begun:
            return True  # it is out already: it has to be brought to its end
        if self._halted():
            return False
        canary = self.machines[self._canary].history.end
        if rig != self._canary and (canary is None or not self._settled()):
            return False
        return may_begin(rig, self._out(), self.pace, self.groups)

    def _out(self) -> set[str]:
        """Rigs that nobody can use now."""
        return {
            rig
            for rig, machine in self.machines.items()
            if (rig in self._began and machine.history.end is None)
            or (machine.history.end is not None and machine.history.end.end in OUT)
            or (machine.history.begun and machine.history.end is None)
        }

    def _settled(self) -> bool:
        return any(entry.event == SETTLED for entry in self.run.journal_entries())

    def _take(self, done: Future[RigEnd], rig: str) -> None:
        try:
            ended = done.result()
        except Stopped:
            return
        if rig == self._canary:
            self._settle()
        if self._halted():
            self.run.journal(STOPPED, rig=rig, reason=ended.reason)

    def _settle(self) -> None:
        """Wait after the canary, where anything was changed on it and others follow; a controller before counts."""
        ended = self.machines[self._canary].history.end
        if ended is None or self._halted() or self._settled():
            return
        began, left = time.monotonic(), self._left_to_settle()
        if ended.end == End.UPGRADED and len(self.machines) > 1:
            self._settled_at = began + left
            stopped = self.stop.wait(left)
            self._settled_at = None
            if stopped:
                return
        self.run.journal(SETTLED, seconds=round(time.monotonic() - began, 3))

    def _left_to_settle(self) -> float:
        """Seconds; the whole time where the clock was set back meanwhile."""
        ends = [entry for entry in self.run.journal_entries() if entry.event == journal.ENDED]
        passed = next((time.time() - entry.t_wall_s for entry in ends if entry.detail["rig"] == self._canary), 0.0)
        return max(0.0, self.pace.settle_s - max(0.0, passed))
