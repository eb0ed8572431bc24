"""Rigs in memory with the ways in which upgrades really fail; the machine of steps runs over them unchanged."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rigctl.errors import RigUnreachable
from rigctl.model.upgrade import Capture, Card, Package, RigPlan, Wishes
from rigctl.store import RunDir
from rigctl.upgrade.journal import read_history
from rigctl.upgrade.machine import Machine, Rules
from rigctl.upgrade.port import Smoke, StepFailed

if TYPE_CHECKING:
    from pathlib import Path

RATE = "throughput.training[rig]"


class Killed(BaseException):
    """The controller dies: nothing of it runs any more."""


@dataclass
class FakeRig:
    """One rig: what it has, who holds it, and what goes wrong on it."""

    name: str
    driver: str = "515"
    rate: float = 100.0
    cards: tuple[str, ...] = ("GPU-a", "GPU-b")
    holder: str = ""
    reason: str = ""
    """Why it is drained; empty: it is in use."""
    work: list[str] = field(default_factory=list)
    stopped: bool = False
    """Whether what held its cards is stopped."""
    reachable: bool = True
    wrong: str = ""
    """Name of what goes wrong on it: see the methods."""
    slow_labels: tuple[str, ...] = ("after",)
    """The acceptances in which one that is `slower` shows it."""
    done: list[str] = field(default_factory=list)
    die_at: str = ""
    """The call in which the controller dies, after it has done its work."""
    out: list[str] = field(default_factory=list)
    most_out: list[int] = field(default_factory=list)

    def _does(self, what: str) -> None:
        if not self.reachable:
            raise RigUnreachable(f"{self.name}: no answer", "look at it")
        self.done.append(what)

    def _dies(self, what: str) -> None:
        if self.die_at == what:
            self.die_at = ""
            raise Killed

    # --- the rig -----------------------------------------------------------------------------------------------------

    def plan(self, wishes: Wishes) -> RigPlan:
        self._does("plan")
        refusals = ("no source offers it",) if self.wrong == "transaction" else ()
        self._dies("plan")
        return RigPlan(
            rig=self.name, has={"driver": self.driver}, gets={"driver": wishes.driver or self.driver}, refusals=refusals
        )

    def lock(self, run_id: str, *, ignore: bool = False) -> str:
        self._does("lock")
        if self.holder not in ("", run_id) and not ignore:
            return self.holder
        self.holder = run_id
        self._dies("lock")
        return ""

    def unlock(self, run_id: str) -> None:
        self._does("unlock")
        if self.holder == run_id:
            self.holder = ""
        self._dies("unlock")

    def captured(self) -> Capture:
        return Capture(
            boot_id="b", kernel="5.15", loaded=self.driver,
            packages=(Package(name=f"nvidia-driver-{self.driver}", version=self.driver),), files={},
            cards=tuple(Card(uuid=uuid, place=f"root{i}", model="RTX") for i, uuid in enumerate(self.cards)),
        )  # fmt: skip

    def capture(self, run_id: str, *, keep_old: bool) -> Capture:
        self._does(f"capture {keep_old}")
        if self.wrong == "no_old_debs" and keep_old:
            raise StepFailed("the old driver's packages cannot be had", "--no-rollback")
        self._dies("capture")
        return self.captured()

    def users(self) -> tuple[str, ...]:
        self._does("users")
        return ()

    def smoke(self, label: str) -> Smoke:
        self._does(f"smoke {label}")
        bad = self.wrong == f"unfit_{label}"
        rate = self.rate * (0.85 if self.wrong == "slower" and label in self.slow_labels else 1)
        self._dies(f"smoke {label}")
        return Smoke(
            f"run-{label}", accepted=not bad, why_not="NV3 instead of NV4" if bad else "", figures={RATE: rate}
        )

    def release(self, wishes: Wishes) -> tuple[str, ...]:
        self._does("release")
        if self.wrong == "card_held":
            raise StepFailed("the cards are held by ada: python train.py (process 7)", "--evict-users")
        self.stopped = True
        self._dies("release")
        return ("exporter.service",)

    def start_again(self) -> None:
        self._does("start_again")
        self.stopped = False
        self._dies("start_again")

    def change(self, wishes: Wishes) -> None:
        self._does("change")
        self.driver = wishes.driver or self.driver
        if self.wrong == "half_changed":
            raise StepFailed("no space left on device")
        if self.wrong == "card_gone":
            self.cards = self.cards[:1]
        if self.wrong == "never_comes_back":
            self.reachable = False
            self._does("change")
        self.stopped = False
        self._dies("change")

    def seen(self) -> Capture:
        self._does("seen")
        found = self.captured()
        self._dies("seen back" if "restore" in self.done else "seen")
        return found

    def doing(self) -> str:
        return ""

    def restore(self, capture: Capture) -> None:
        self._does("restore")
        if self.wrong == "mirror_gone":
            raise StepFailed("a package is missing")
        self.driver, self.stopped = capture.loaded, False
        if self.wrong == "card_gone" and len(self.cards) == 1:
            self.cards = (*self.cards, "GPU-b")
        self._dies("restore")

    # --- whoever hands work to it ------------------------------------------------------------------------------------

    def look(self) -> str:
        return "" if self.reason.startswith("rigctl ") else self.reason

    def drain(self, reason: str) -> str:
        self.done.append("drain")
        if self.reason and self.reason != reason:
            return self.reason
        self.reason = reason
        self.out.append(self.name)
        self.most_out.append(len(set(self.out)))
        self._dies("drain")
        return ""

    def jobs(self) -> tuple[str, ...]:
        return (self.work.pop(0),) if self.work else ()

    def resume(self, reason: str) -> bool:
        self.done.append("resume")
        if self.reason != reason:
            return False
        self.reason = ""
        while self.name in self.out:
            self.out.remove(self.name)
        self._dies("resume")
        return True


def park(count: int) -> dict[str, FakeRig]:
    """So many rigs, which know of each other who is out."""
    out: list[str] = []
    most: list[int] = []
    return {f"rig{i}": FakeRig(f"rig{i}", out=out, most_out=most) for i in range(1, count + 1)}


def new_run(root: Path) -> RunDir:
    """The directory of an upgrade."""
    return RunDir.create(root, "upgrade")


def machines(rigs: dict[str, FakeRig], run: RunDir, **rules: object) -> dict[str, Machine]:
    """A machine for each rig, as far as the run's journal says that it has come."""
    known = read_history(run.journal_entries())
    made = {}
    for name, rig in rigs.items():
        run.rig_path(name)
        made[name] = Machine(name, Rules(wishes=Wishes(driver="535"), **rules), run, rig, rig, stop=threading.Event())  # type: ignore[arg-type]
        if name in known:
            made[name].history = known[name]
    return made
