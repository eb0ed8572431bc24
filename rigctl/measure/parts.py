"""The plans of one rig in one run: one, and another one for the rest where a controller died too long for the first.

A plan is kept in the run directory before the rig is told it, and the journal says when all of its readings are home.
So whoever takes the run up knows what the rig was asked, what has come, and what is left to do.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rigctl.checks.measure import RESTORED
from rigctl.measure.spool import EVENTS, LINES, TELEMETRY
from rigctl.model.reading import RigEvent
from rigctl.store.files import fsync_dir, replace_durably
from rigctl.store.lines import read_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from rigctl.store import JournalEntry, RunDir

KEPT, HOME = "plan_kept", "plan_home"
"""Events of the journal: a plan is in the run directory; everything that it left on the rig is here."""
SET_ASIDE = "set_aside"
"""Folder of a rig's files as they were before a cut step was taken out of them."""
LOST, ASKED = "controller_lost", "asked"
"""Why a guard stops a burn: nobody asks for it any more; somebody wants it ended."""
NO_ROOM = "the controller has no room left"
"""What a controller says that has to leave a run which is worth finishing."""


@dataclass(frozen=True)
class Part:
    """One plan of one rig."""

    number: int
    """1 is the first."""
    plan: dict[str, Any]
    base: dict[str, int]
    """What the rig's files held before its readings: lines of those that are read line by line, else bytes."""
    home: bool = False
    """Whether all of its readings are in the run directory."""

    @property
    def on_rig(self) -> str:
        """What the rig knows it by."""
        return str(self.plan["run_id"])

    @property
    def detached(self) -> bool:
        """Whether it goes on without a controller."""
        return self.plan.get("detached") is True

    @property
    def bytes(self) -> bytes:
        """The plan as the rig is told it: the very same bytes each time."""
        return json.dumps(self.plan).encode()


def id_on_rig(run_id: str, number: int) -> str:
    """What a rig knows a plan by: the run's id, with a number from the second one on."""
    return run_id if number == 1 else f"{run_id}-{number}"


def keep(run_dir: RunDir, rig: str, plan: dict[str, Any], number: int = 1) -> Part:
    """Keep a plan before the rig is told it. Raises RigctlError where there is no room."""
    part = Part(number, plan | {"run_id": id_on_rig(run_dir.run_id, number)}, held(run_dir.path / rig))
    replace_durably(_path(run_dir, rig, number), part.bytes)
    run_dir.journal(KEPT, rig=rig, part=number, base=part.base, detached=part.detached)
    return part


def came_home(run_dir: RunDir, rig: str, part: Part) -> None:
    """Say that all readings of a plan are here; the rig may then forget them."""
    run_dir.journal(HOME, rig=rig, part=part.number)


def kept(run_dir: RunDir, rig: str, entries: Iterable[JournalEntry] | None = None) -> list[Part]:
    """Return the plans that this rig may have been told, in their order. Raises UsageError for a damaged journal."""
    of_rig = [one for one in entries or run_dir.journal_entries() if one.detail.get("rig") == rig]
    home = {one.detail["part"] for one in of_rig if one.event == HOME}
    known = {one.detail["part"]: one.detail["base"] for one in of_rig if one.event == KEPT}
    return [
        Part(number, json.loads(_path(run_dir, rig, number).read_bytes()), known[number], number in home)
        for number in sorted(known)
    ]


def held(folder: Path) -> dict[str, int]:
    """Count what a rig's files hold now: whole lines of those that are read line by line, bytes of the others."""
    found = {}
    for path in folder.iterdir():
        if path.is_file() and not path.name.startswith("."):
            found[path.name] = path.read_bytes().count(b"\n") if path.name in LINES else path.stat().st_size
    return found


def rest_of(folder: Path, part: Part) -> list[dict[str, Any]]:
    """Return the steps of a plan that its guard left out for want of a controller; none for other reasons.

    The step in which it stopped is among them: half a burn shows nothing.
    """
    events = read_lines(_as_it_was(folder, part) / EVENTS, RigEvent)
    own = [one for one in events if one.part == part.number]
    stopped = next((one for one in own if one.event == "guard_stopped"), None)
    if stopped is None or not any(event.event == "plan_finished" for event in own):
        return []
    reason, found = stopped.detail.get("reason"), stopped.detail.get("found")
    if reason != LOST and (reason, found) != (ASKED, NO_ROOM):
        return []
    done = {one.step for one in own if one.event == "step_finished" and one.step != stopped.step}
    return [step for step in part.plan["steps"] if step["name"] not in done]


def put_back_whole(folder: Path, part: Part) -> bool:
    """Whether the rig says that it put back everything which the plan had changed."""
    try:
        told = json.loads((_as_it_was(folder, part) / RESTORED).read_bytes())
        return not told["failed"]
    except (OSError, ValueError, KeyError, TypeError):
        return False


def set_aside(folder: Path, part: Part, steps: Sequence[dict[str, Any]]) -> None:
    """Take out of a rig's files what the cut step and its end left; as they were, they stay in a folder of their own.

    Can be done again at any moment: what is taken out is always taken out of the files as they were.
    """
    before = folder / SET_ASIDE / str(part.number)
    if not before.is_dir():
        _copy_files(folder, before)
    names = {str(step["name"]) for step in steps}
    cut_s = _cut_s(before, part, names)
    for name in (TELEMETRY, EVENTS):
        if (before / name).is_file():
            _keep_lines(before / name, folder / name, part.number, cut_s)
    for path in before.iterdir():
        if path.name == RESTORED or _step_of(path.name, names):
            (folder / path.name).unlink(missing_ok=True)
    fsync_dir(folder)


def _as_it_was(folder: Path, part: Part) -> Path:
    """A rig's files with all that the plan had left, also where some was being set aside when the controller died."""
    before = folder / SET_ASIDE / str(part.number)
    return before if before.is_dir() else folder


def _copy_files(folder: Path, to: Path) -> None:
    half = to.with_name(f"{to.name}.part")
    shutil.rmtree(half, ignore_errors=True)
    half.mkdir(parents=True)
    for path in folder.iterdir():
        if path.is_file():
            replace_durably(half / path.name, path.read_bytes())
    half.rename(to)
    fsync_dir(to.parent)


def _cut_s(folder: Path, part: Part, names: set[str]) -> float:
    """When the first of the steps began that are to be done again, on the rig's CLOCK_MONOTONIC, seconds."""
    own = [one for one in read_lines(folder / EVENTS, RigEvent) if one.part == part.number]
    began = [one.t_mono_s for one in own if one.event == "step_started" and one.step in names]
    stopped = [one.t_mono_s for one in own if one.event == "guard_stopped"]
    return min(began + stopped)


def _keep_lines(source: Path, target: Path, number: int, before_s: float) -> None:
    """Keep the lines of earlier plans, and those of this one from before the cut."""
    kept_ = []
    for line in source.read_bytes().splitlines(keepends=True):
        found = json.loads(line)
        if found.get("part", 1) < number or found["t_mono_s"] < before_s:
            kept_.append(line)
    replace_durably(target, b"".join(kept_))


def _step_of(file: str, names: set[str]) -> bool:
    """Whether a file is what one of these steps left: `gpu_burn.log`, `all_burn_cpu.yaml`."""
    return file.partition(".")[0].removesuffix("_cpu") in names


def _path(run_dir: RunDir, rig: str, number: int) -> Path:
    """Hidden: it is no reading."""
    return run_dir.path / rig / f".plan-{number}.json"
