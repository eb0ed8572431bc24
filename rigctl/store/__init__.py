"""The run directory: written so that a crash loses nothing that was measured, read so that damage is always said."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rigctl.store.canonical import dumps
    from rigctl.store.ids import list_runs
    from rigctl.store.outcome import JournalEntry, RigOutcome
    from rigctl.store.rundir import RunDir

__all__ = ["JournalEntry", "RigOutcome", "RunDir", "dumps", "list_runs"]

_PLACES = {
    "JournalEntry": "outcome",
    "RigOutcome": "outcome",
    "RunDir": "rundir",
    "dumps": "canonical",
    "list_runs": "ids",
}
"""Loaded when they are asked for: who asks the index needs no model of readings, which takes as long as all else."""


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
