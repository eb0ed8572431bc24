"""Runs that a controller left in the middle: said by whatever command comes to the same rigs next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from rigctl.accept import FINISHED
from rigctl.measure import parts
from rigctl.store import RunDir, list_runs
from rigctl.store.driving import LOCK, is_driven
from rigctl.upgrade.left import state_of

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from rich.console import Console

    from rigctl.store import JournalEntry


def left_runs(runs: Path, rigs: Collection[str]) -> tuple[str, ...]:
    """A sentence for each run under `runs` that has begun one of `rigs` and was not brought to its end.

    Raises:
        UsageError: run.json or journal of such a run is damaged.
    """
    said = []
    for run_id in list_runs(runs):
        # Only what may be under way has this file: an upgrade always, an acceptance until it has ended.
        if (runs / run_id / LOCK).is_file():
            run = RunDir(runs / run_id)
            said += state_of(run, rigs) if run.read_info().kind == "upgrade" else left_acceptance(run, rigs)
    return tuple(said)


def say_left(runs: Path, rigs: Collection[str], to: Console) -> None:
    """Print them, a line each. Raises UsageError, as `left_runs`."""
    for sentence in left_runs(runs, rigs):
        to.print(Text(sentence, style="yellow"), soft_wrap=True)


def left_acceptance(run: RunDir, rigs: Collection[str]) -> list[str]:
    """Say how far an acceptance has come on each of its rigs, where it has begun one of `rigs` and nobody drives it."""
    info = run.read_info()
    if info.kind != "accept" or is_driven(run.path) or not any(rig.name in rigs for rig in info.rigs):
        return []
    entries = run.journal_entries()
    if any(entry.event == FINISHED for entry in entries):
        return []
    alone, where = False, []
    for rig in info.rigs:
        goes_on_alone, state = _state(run, rig.name, entries)
        alone |= goes_on_alone
        where.append(f"{rig.name} {state}")
    if alone:
        return [f"acceptance {run.run_id} goes on alone: {', '.join(where)}; `rigctl collect {run.run_id}` ends it"]
    return [
        (
            f"acceptance {run.run_id} was left in the middle: {', '.join(where)}; "
            f"`rigctl accept --resume {run.run_id}` finishes it"
        )
    ]


def _state(run: RunDir, rig: str, entries: tuple[JournalEntry, ...]) -> tuple[bool, str]:
    """Whether a rig's plan goes on alone, and how far the rig has come, in words."""
    outcome = run.outcome(rig)
    if outcome is not None:
        return False, "is measured" if outcome.unreached is None else f"is measured as far as it went ({outcome.left})"
    steps = [one.detail["step"] for one in entries if one.event == "step_started" and one.detail.get("rig") == rig]
    if not steps:
        return False, "was not begun"
    known = parts.kept(run, rig, entries)
    if known and not known[-1].home:
        if known[-1].detached:
            return True, f"was last seen at {steps[-1]}"
        profile = next(one.profile for one in run.read_info().rigs if one.name == rig)
        seconds = profile.controller_lost_s if profile is not None else 0
        return False, f"was at {steps[-1]} (its guard stops a load after {seconds:.0f} s without a controller)"
    return False, f"was at {steps[-1]}, nothing is at work there"
