"""Carrying a night out: rigs are accepted one process each, as their circuits allow, until the window ends."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rigctl.errors import ExitCode, RigctlError, UsageError
from rigctl.nightly.planner import may_begin
from rigctl.store import RunDir
from rigctl.upgrade.drain import drain_of
from rigctl.upgrade.settings import drains_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from rigctl.model.verdict import Record
    from rigctl.nightly.planner import Wish
    from rigctl.nightly.settings import Park
    from rigctl.upgrade.port import Drain

LOCK = "nightly.lock"
LOOK_S = 1.0
"""How often running acceptances are looked at, seconds."""
AGAIN_S = 600
"""A busy rig is tried again after so long, seconds."""
STOP_S = 300
"""An acceptance that is told to stop ends its burn and judges; longer than that it is killed, seconds."""
REASON = "rigctl nightly"
"""The reason of our own drains in Slurm."""


class NightRuns(RigctlError):
    """Another night is under way on this controller."""


@dataclass
class Carried:
    """What became of one rig's wish."""

    wish: Wish
    run_id: str | None = None
    exit_code: int | None = None
    why_not: str = ""
    """Why it was not accepted tonight; empty where it was."""


@dataclass
class _Running:
    wish: Wish
    process: subprocess.Popen[bytes]
    output: Path


@dataclass
class Night:
    """One night's work."""

    park: Park
    runs: Path
    words: tuple[str, ...]
    """What each `rigctl accept` is given besides: inventory, runs, tests."""
    say: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    program: tuple[str, ...] = (sys.executable, "-m", "rigctl")
    running: list[_Running] = field(default_factory=list)
    done: list[Carried] = field(default_factory=list)
    _drained: dict[str, Drain] = field(default_factory=dict)

    def carry_out(self, wishes: Sequence[Wish], left_s: float) -> list[Carried]:
        """Accept rigs until all were or the time is over; what still runs then is stopped in good order.

        Args:
            wishes: In the order in which they are to begin.
            left_s: What is left of the window, seconds.
        """
        ends = self.clock() + left_s
        waiting = [(0.0, wish) for wish in wishes]
        try:
            while waiting or self.running:
                waiting = self._begin(waiting, ends)
                waiting += self._collect(ends)
                if self.clock() >= ends:
                    self._stop("the window is over")
                if waiting or self.running:
                    time.sleep(LOOK_S)
        finally:
            self._stop("the night was ended")
            for rig in list(self._drained):
                self._give_back(rig)
        return self.done

    def _begin(self, waiting: list[tuple[float, Wish]], ends: float) -> list[tuple[float, Wish]]:
        """Begin what may; return what has to wait. What cannot end in time any more is left out."""
        later = []
        for not_before, wish in waiting:
            left = ends - self.clock()
            if wish.seconds > left:
                self._left_out(wish, "no time is left in the window")
            elif self.clock() < not_before or not may_begin(wish, self._at_work(), left, self.park.budgets):
                later.append((not_before, wish))
            elif self._free(wish):
                self._start(wish)
            else:
                later.append((self.clock() + AGAIN_S, wish))
        return later

    def _at_work(self) -> list[Wish]:
        return [one.wish for one in self.running]

    def _free(self, wish: Wish) -> bool:
        """Drain the rig where that is asked for, and say whether its jobs have ended."""
        if self.park.spec.busy != "drain":
            return True
        try:
            if wish.rig not in self._drained:
                drain = self._drain_of(wish.rig)
                foreign = drain.drain(REASON)
                if foreign:
                    self.say(f"{wish.rig}: drained by somebody else already ({foreign}); it stays so")
                else:
                    self._drained[wish.rig] = drain
            jobs = self._drained[wish.rig].jobs() if wish.rig in self._drained else ()
        except RigctlError as error:
            self.say(f"{wish.rig}: its scheduler: {error.message}")
            return True  # who is busy is seen by the acceptance itself
        if jobs:
            self.say(f"{wish.rig}: waits for {', '.join(jobs)}")
        return not jobs

    def _drain_of(self, rig: str) -> Drain:
        from rigctl.upgrade.start import shell_of  # noqa: PLC0415 - needs all of the upgrade

        spec = drains_of({rig: {"rig_drain": self.park.drains.get(rig) or None}})[rig]
        known = next(one for one in self.park.fleet if one.name == rig)
        return drain_of(spec, rig, shell_of(known, spec))

    def _give_back(self, rig: str) -> None:
        drain = self._drained.pop(rig, None)
        if drain is None:
            return
        try:
            drain.resume(REASON)
        except RigctlError as error:
            self.say(f"{rig}: not given back: {error.message}; do: {error.hint}")

    def _start(self, wish: Wish) -> None:
        output = self.runs / f"nightly-{wish.rig}.json"
        argv = [*self.program, "accept", wish.rig, "--profile", wish.profile, "--json", *self.words]
        self.say(f"{wish.rig}: {wish.profile} begins")
        with output.open("wb") as out:
            process = subprocess.Popen(argv, stdout=out, stdin=subprocess.DEVNULL, start_new_session=True)
        self.running.append(_Running(wish, process, output))

    def _collect(self, ends: float) -> list[tuple[float, Wish]]:
        """Take in what has ended; return busy rigs that are to be tried again."""
        again = []
        for one in [one for one in self.running if one.process.poll() is not None]:
            self.running.remove(one)
            carried, busy = _outcome(one)
            if busy and self.park.spec.busy != "skip" and self.clock() + AGAIN_S + one.wish.seconds <= ends:
                self.say(f"{one.wish.rig}: busy ({busy}); tried again in {AGAIN_S // 60} min")
                again.append((self.clock() + AGAIN_S, one.wish))
                continue
            self._give_back(one.wish.rig)
            self.say(f"{one.wish.rig}: {carried.why_not or 'done'}")
            self.done.append(carried)
        return again

    def _left_out(self, wish: Wish, why: str) -> None:
        self._give_back(wish.rig)
        self.say(f"{wish.rig}: left out: {why}")
        self.done.append(Carried(wish, why_not=why))

    def _stop(self, why: str) -> None:
        """Interrupt every acceptance, which ends its burn and judges what was measured."""
        for one in self.running:
            os.killpg(one.process.pid, signal.SIGINT)
        until = time.monotonic() + STOP_S
        for one in self.running:
            try:
                one.process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                os.killpg(one.process.pid, signal.SIGKILL)
                one.process.wait()
            carried, _ = _outcome(one)
            self.done.append(Carried(one.wish, carried.run_id, carried.exit_code, carried.why_not or why))
            self._give_back(one.wish.rig)
        self.running.clear()


def _outcome(one: _Running) -> tuple[Carried, str]:
    """What an ended acceptance said, and who uses the rig where it is busy."""
    code = one.process.returncode
    try:
        record = json.loads(one.output.read_bytes() or b"null")
    except ValueError:
        record = None
    one.output.unlink()
    if not isinstance(record, dict):
        why = (
            "interrupted"
            if code == ExitCode.INTERRUPTED
            else f"rigctl accept ended with {code}; its words are in the log"
        )
        return Carried(one.wish, None, code, why), ""
    busy = next((str(rig["users"]) for rig in record["busy"]), "")
    return Carried(one.wish, str(record["run_id"]), code, f"busy: {busy}" if busy else ""), busy


def records_of(carried: Sequence[Carried], runs: Path) -> list[Record]:
    """The records of a night's runs. Raises UsageError where one is damaged."""
    return [RunDir.open(runs, one.run_id).read_record() for one in carried if one.run_id is not None]


@contextmanager
def only_one(runs: Path) -> Iterator[None]:
    """Be the only night on these runs.

    Raises:
        NightRuns: another one is under way; the words name its process.
    """
    if not runs.is_dir():
        runs.mkdir(parents=True)
    with (runs / LOCK).open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            who = file.read().strip() or "unknown"
            raise NightRuns(f"a night is under way already (process {who})", "rigctl nightly status") from None
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


def require_window(left_s: float) -> None:
    """Refuse a night outside its window. Raises UsageError."""
    if left_s <= 0:
        raise UsageError(
            "it is outside the window of rig_nightly",
            "wait for it, or say --now (then the whole window counts from now)",
        )
