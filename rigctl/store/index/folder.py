"""One look at a folder of runs: which run directories there are, and what changes when one of them does."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rigctl.store.ids import RUN_ID

if TYPE_CHECKING:
    from pathlib import Path

READ = ("record.json", "run.json")
"""What an index says of a run is nearly all from these: they are looked at themselves, for a copy, an editor or a
restored backup may write into a file and leave its folder's time as it was."""


def look(runs: Path) -> dict[str, str]:
    """Return the run directories under `runs`, each with a stamp.

    It is made of the directory's time, which changes with every file that is added, replaced or removed in it, and of
    time and size of what is read most. A few microseconds a run: no file is opened.
    """
    if not runs.is_dir():
        return {}
    with os.scandir(runs) as entries:
        return {
            entry.name: " ".join([str(entry.stat().st_mtime_ns), *(_file(f"{entry.path}/{name}") for name in READ)])
            for entry in entries
            if RUN_ID.fullmatch(entry.name) and entry.is_dir()
        }


def _file(path: str) -> str:
    try:
        found = os.stat(path)  # noqa: PTH116 - thousands of them: a Path costs as much again
    except OSError:
        return "-"  # absent, or not to be read: reading the run says so
    return f"{found.st_mtime_ns}:{found.st_size}"
