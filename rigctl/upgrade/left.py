"""Upgrades that a controller left in the middle, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rigctl.store.driving import is_driven
from rigctl.upgrade.journal import read_history

if TYPE_CHECKING:
    from collections.abc import Collection

    from rigctl.store import RunDir


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
