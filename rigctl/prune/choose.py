"""Which runs are due by their age, and which are kept whole in spite of it."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rigctl.errors import UsageError
from rigctl.report.text import moment
from rigctl.store import RunDir, list_runs
from rigctl.store.baseline import ACCEPTED
from rigctl.store.decisions import newest_decisions
from rigctl.store.driving import LOCK, is_driven
from rigctl.store.ids import RUN_ID
from rigctl.store.pruned import THINNED, WHOLE, read_pruned
from rigctl.upgrade.journal import MEASURED, read_history

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from rigctl.model.pruned import Pruned, Retention
    from rigctl.store.index import Cell, Index

PAGE = "report.html"
FINISHED = "run_finished"
"""The last event of an acceptance's journal."""
_DAY_S = 86_400


@dataclass(frozen=True)
class Due:
    """A run of which something is to go."""

    path: Path
    days: int
    """Its age."""
    thin: tuple[str, ...] = ()
    """Folders in it whose telemetry is thinned."""
    drop: tuple[str, ...] = ()
    """Folders in it whose telemetry is dropped."""
    page: bool = False
    """Whether its page goes."""
    pruned: Pruned | None = None
    """What was done to it before."""


@dataclass(frozen=True)
class LeftAlone:
    """A run of which nothing goes although its age says so."""

    folder: str
    why: str
    fix: str = ""


@dataclass(frozen=True)
class Choice:
    """What is to be done."""

    due: tuple[Due, ...]
    """Oldest first."""
    kept: tuple[LeftAlone, ...]
    unreadable: tuple[LeftAlone, ...]


def choose(
    index: Index, retention: Retention, now: datetime, certificates: Path, unreadable: tuple[tuple[str, str], ...]
) -> Choice:
    """Choose among the acceptances of a folder.

    Args:
        index: That of the folder, brought up to date.
        retention: The ages.
        now: The time from which they count.
        certificates: A folder of certificates; it need not exist.
        unreadable: Runs that the index could not read, and why.

    Raises:
        UsageError: the decisions about baselines are damaged, or the journal of an upgrade is.
        RigctlError: the index cannot be used.
    """
    cells = tuple(cell for cell in index.cells() if cell.here)
    needed = _needed(index, cells, certificates)
    due, kept, broken = [], [], [LeftAlone(*one) for one in unreadable]
    for folder, ended_at in {cell.folder: cell.ended_at for cell in cells}.items():
        days = int((now - moment(ended_at)).total_seconds() // _DAY_S)
        if days < retention.whole_days:
            continue
        try:
            one = _due(index.runs / folder, days, retention)
            why = "" if one is None else needed.get(folder) or _unfinished(one.path)
        except UsageError as error:
            broken.append(LeftAlone(folder, error.message, error.hint))
            continue
        if why:
            kept.append(LeftAlone(folder, why))
        elif one is not None:
            due.append(one)
    return Choice(tuple(due), tuple(kept), tuple(broken))


def _due(run: Path, days: int, retention: Retention) -> Due | None:
    """What of a run is to go by its age; None where nothing is. Raises UsageError where pruned.json is damaged."""
    held = _telemetry(run)
    page = retention.pages and (run / PAGE).is_file()
    if not held and not page:
        return None
    pruned = read_pruned(run)
    if days >= retention.thin_days:
        return Due(run, days, drop=tuple(held), page=page, pruned=pruned)
    whole = (folder for folder, names in held.items() if not names.isdisjoint(WHOLE))
    thin = tuple(folder for folder in whole if not _small(run / folder, folder, pruned))
    return Due(run, days, thin=thin, page=page, pruned=pruned) if thin or page else None


def _telemetry(run: Path) -> dict[str, set[str]]:
    """The folders of a run that hold telemetry, in their order, and its files; hidden folders are people's own."""
    found = {}
    for at, folders, files in os.walk(run):
        folders[:] = [name for name in folders if not name.startswith(".")]
        if names := {*WHOLE, THINNED}.intersection(files):
            found[os.path.relpath(at, run)] = names
    return dict(sorted(found.items()))


def _small(folder: Path, name: str, pruned: Pruned | None) -> bool:
    """Whether it was seen before that thinning frees nothing there, and nothing has changed since."""
    said = pruned.telemetry.get(name) if pruned is not None else None
    return said is not None and said.state == "whole" and said.bytes_before == size_of(folder)


def size_of(folder: Path, names: tuple[str, ...] = WHOLE) -> int:
    """What files of a folder take, by default its whole telemetry, bytes."""
    files = [folder / name for name in names]
    return sum(file.stat().st_size for file in files if file.exists())


def _unfinished(run: Path) -> str:
    """Why a run is left alone that may not have come to its end; empty where it has."""
    if is_driven(run):
        return "it is under way"
    if not any(entry.event == FINISHED for entry in RunDir(run).journal_entries()):
        return "it was left unfinished"
    return ""


def _needed(index: Index, cells: tuple[Cell, ...], certificates: Path) -> dict[str, str]:
    """Runs that somebody still needs whole, by folder, and what for."""
    measured = {cell.rig: cell.folder for cell in cells if cell.verdict is not None}  # oldest first: the newest stays
    accepted = {cell.rig: cell.folder for cell in cells if cell.verdict in ACCEPTED}
    needed = {folder: f"the newest acceptance of {rig}" for rig, folder in measured.items()}
    needed |= {folder: f"the newest that accepted {rig}" for rig, folder in accepted.items()}
    by_id: dict[str, str] = {}
    decided = newest_decisions(index.runs)
    for rig in measured:
        decision = decided.get(rig)
        if counting := index.baseline_runs(rig, decision):
            needed[counting[-1]] = f"the baseline of {rig}"
        if decision is not None and decision.run is not None:
            by_id[decision.run] = f"people accepted it as the baseline of {rig}"
    by_id |= _measured_for_upgrades(index.runs) | _certified(certificates)
    # A directory may have been copied under another name.
    needed |= {folder: by_id[run_id] for folder, run_id in index.run_ids().items() if run_id in by_id}
    return needed


def _measured_for_upgrades(runs: Path) -> dict[str, str]:
    """Acceptances by which upgrades judge that have not ended. Raises UsageError where a journal is damaged."""
    found: dict[str, str] = {}
    for run_id in list_runs(runs):
        # Only what may be under way has this file, so that few journals are read.
        if not (runs / run_id / LOCK).is_file():
            continue
        run = RunDir(runs / run_id)
        entries = run.journal_entries()
        rigs = read_history(entries) if run.read_info().kind == "upgrade" else {}
        if is_driven(run.path) or any(history.end is None for history in rigs.values()):
            measured = [entry.detail["run_id"] for entry in entries if entry.event == MEASURED]
            found |= dict.fromkeys(measured, f"upgrade {run_id} is not finished and judges by it")
    return found


def _certified(folder: Path) -> dict[str, str]:
    """Run ids on which a certificate in a folder rests; one that cannot be read counts by its name."""
    found = {}
    for file in sorted(folder.glob("certificate-*.json")):
        named = RUN_ID.search(file.name)
        if named is not None:
            found[named[0]] = f"certificate {file.name} rests on it"
        try:
            stated = json.loads(file.read_bytes())
        except (OSError, ValueError):
            continue  # `rigctl certificate verify` says what is wrong with it
        if isinstance(stated, dict) and isinstance(stated.get("run_id"), str):
            found[stated["run_id"]] = f"certificate {file.name} rests on it"
    return found
