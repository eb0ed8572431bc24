"""The run directory: written so that a crash loses nothing that was measured, read so that damage is always said."""

from rigctl.store.canonical import dumps
from rigctl.store.ids import list_runs
from rigctl.store.outcome import JournalEntry, RigOutcome
from rigctl.store.rundir import RunDir

__all__ = ["JournalEntry", "RigOutcome", "RunDir", "dumps", "list_runs"]
