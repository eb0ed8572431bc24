"""Upgrades that a controller left in the middle: said by whatever command comes to the same rigs next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from rigctl.store import RunDir, list_runs
from rigctl.upgrade.journal import read_history
from rigctl.upgrade.run import LOCK, is_driven

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from rich.console import Console


def left_upgrades(runs: Path, rigs: Collection[str]) -> tuple[str, ...]:
    """A sentence for each upgrade under `runs` that has begun one of `rigs` and not brought it to an end.

    Raises:
        UsageError: the journal of such a run is damaged.
    """
    said = []
    for run_id in list_runs(runs):
        # Only an upgrade has this file, from the moment in which it may do something.
        if (runs / run_id / LOCK).is_file():
            said += state_of(RunDir(runs / run_id), rigs)
    return tuple(said)


def say_left(runs: Path, rigs: Collection[str], to: Console) -> None:
    """Print them, a line each. Raises UsageError, as `left_upgrades`."""
    for sentence in left_upgrades(runs, rigs):
        to.print(Text(sentence, style="yellow"), soft_wrap=True)


def state_of(run: RunDir, rigs: Collection[str]) -> list[str]:
    """Say which of `rigs` a run has begun and not ended, and whether anybody drives it; nothing where there is none."""
    known = read_history(run.journal_entries())
    open_ = [name for name, history in known.items() if name in rigs and history.begun and history.end is None]
    if not open_:
        return []
    where = ", ".join(f"{name} at {known[name].begun[-1].value}" for name in open_)
    if is_driven(run.path):
        return [f"upgrade {run.run_id} is under way: {where}"]
    return [
        (
            f"upgrade {run.run_id} was left in the middle: {where}; "
            f"`rigctl upgrade --resume {run.run_id}` goes on, `rigctl upgrade --abort {run.run_id}` takes it back"
        )
    ]
