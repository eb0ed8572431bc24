"""The park's rigs in files, so that controllers in processes of their own upgrade them, die, and are replaced.

A rig on disk notes in `broken` whatever must never be done to it, whichever controller did it.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import threading
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from rigctl.store import RunDir
from tests.fleet.rigs import rig as any_rig

from .park import FakeRig

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

CALLS = ("plan", "lock", "unlock", "capture", "users", "smoke", "release", "start_again", "change", "seen", "restore",
         "drain", "jobs", "resume", "look")  # fmt: skip
BUSY = "busy"
"""While a file of this name is there, a job runs on every rig of the park."""
_NEEDS_DRAIN = ("smoke", "release", "change", "restore")


@dataclass
class Points:
    """Every moment in which a controller may die: before and after each call and each line of its journal."""

    kill_at: int = 0
    """0: it lives."""
    passed: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def at(self, what: str) -> None:
        """Pass a moment, or die in it as by `kill -9`."""
        with self._lock:
            self.passed.append(what)
            if len(self.passed) == self.kill_at:
                os.kill(os.getpid(), signal.SIGKILL)


def new_park(folder: Path, count: int, **what: Any) -> Path:
    """So many rigs in files, and an inventory's folder beside them."""
    (folder / "inventory").mkdir(parents=True)
    for number in range(1, count + 1):
        change(folder, f"rig{number}", **what)
    return folder


def look_at(park: Path, name: str) -> FakeRig:
    """One rig as it is now."""
    return FakeRig(**json.loads((park / f"{name}.json").read_text(encoding="utf-8"))["rig"])


def change(park: Path, name: str, **what: Any) -> None:
    """Have a rig be otherwise."""
    rig = look_at(park, name) if (park / f"{name}.json").exists() else FakeRig(name)
    for key, value in what.items():
        setattr(rig, key, value)
    _write(park / f"{name}.json", rig)


def broken(park: Path) -> list[str]:
    """What was done that must never be done."""
    path = park / "broken"
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def most_out(park: Path) -> int:
    """How many rigs were drained at once, at most."""
    path = park / "most_out"
    return int(path.read_text(encoding="ascii")) if path.exists() else 0


def _write(path: Path, rig: FakeRig) -> None:
    part = path.with_suffix(".part")
    part.write_text(json.dumps({"rig": asdict(rig)}), encoding="utf-8")
    part.replace(path)


class DiskRig:
    """A rig's port and drain in one, over its file."""

    def __init__(self, park: Path, name: str, points: Points) -> None:
        self.rig = any_rig(name)
        self._park = park
        self._points = points

    def __getattr__(self, call: str) -> Callable[..., Any]:
        if call not in CALLS:
            raise AttributeError(call)
        return lambda *given, **named: self._call(call, given, named)

    def doing(self) -> str:
        return "cuda · Install the toolkit"

    def _call(self, call: str, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        self._points.at(f"before {call}")
        with _alone(self._park):
            rig = look_at(self._park, self.rig.name)
            self._complain(rig, call, given)
            try:
                if call == "jobs" and (self._park / BUSY).exists():
                    return ("job 7 of ada",)
                return getattr(rig, call)(*given, **named)
            finally:
                rig.out, rig.most_out = [], []
                _write(self._park / f"{rig.name}.json", rig)
                self._count()
                self._points.at(f"after {call}")

    def _complain(self, rig: FakeRig, call: str, given: tuple[Any, ...]) -> None:
        done = [word.partition(" ")[0] for word in rig.done]
        said = []
        if call in _NEEDS_DRAIN and not rig.reason:
            said.append("in use")
        if call in (*_NEEDS_DRAIN, "capture", "drain") and not rig.holder:
            said.append("not locked")
        if call == "capture" and "change" in done:
            said.append("a capture of what was changed already")
        if call in ("change", "restore") and "resume" in done:
            said.append("given back already")
        if call == "resume" and "change" in done:
            since = rig.done[len(done) - 1 - done[::-1].index("change") :]
            taken_back = "restore" in since and since[-1] in ("seen", "smoke restored", "resume")
            if "smoke after" not in since and not taken_back:
                said.append("not verified")
        if call in ("resume", "unlock") and rig.stopped:
            said.append("something is still stopped")
        if call == "unlock" and given[0] == rig.holder and rig.reason.startswith("rigctl"):
            said.append("still drained")
        if said:
            with (self._park / "broken").open("a", encoding="utf-8") as file:
                file.writelines(f"{rig.name}: {call}: {one} {rig.done}\n" for one in said)

    def _count(self) -> None:
        rigs = [json.loads(path.read_text(encoding="utf-8"))["rig"] for path in self._park.glob("rig*.json")]
        now = sum(bool(one["reason"]) for one in rigs)
        (self._park / "most_out").write_text(str(max(now, most_out(self._park))), encoding="ascii")


@contextmanager
def _alone(park: Path) -> Iterator[None]:
    with (park / "lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def in_place_of_rigs(park: Path, points: Points, classes: dict[str, str] | None = None) -> dict[str, Any]:
    """What stands in the place of SSH, schedulers and Ansible's inventory: name → replacement."""
    known = sorted(path.stem for path in park.glob("rig*.json"))

    def fleet(_inventory: object, pattern: str = "all") -> tuple[Any, ...]:
        names = known if pattern == "all" else pattern.split(",")
        made = []
        for name in names:
            rig = any_rig(name)
            made.append(rig.model_copy(update={"spec": rig.spec.model_copy(
                update={"rig_class": (classes or {}).get(name, "any")})}))  # fmt: skip
        return tuple(made)

    def variables(_inventory: object, pattern: str, names: tuple[str, ...]) -> dict[str, dict[str, Any]]:
        return {rig: dict.fromkeys(names) for rig in pattern.split(",")}

    journal, write = RunDir.journal, RunDir.write_json_atomic

    def noted(run: RunDir, event: str, **detail: Any) -> None:
        points.at(f"before journal {event}")
        journal(run, event, **detail)
        points.at(f"after journal {event}")

    def written(run: RunDir, name: str, value: Any) -> Path:
        points.at(f"before file {name}")
        return write(run, name, value)

    start = "rigctl.upgrade.start"
    return {
        f"{start}.SshRig": lambda rig, *_rest: DiskRig(park, rig.name, points),
        f"{start}.drain_of": lambda _spec, rig, _shell: DiskRig(park, rig, points),
        f"{start}.load_fleet": fleet,
        f"{start}.load_variables": variables,
        "rigctl.upgrade.machine.LOOK_S": 0.01,
        "rigctl.store.RunDir.journal": noted,
        "rigctl.store.RunDir.write_json_atomic": written,
    }
