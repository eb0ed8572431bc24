"""What people decided about baselines: `baselines.jsonl` beside the run directories that it speaks of.

It lies with the runs, and not in the index (which can be deleted) nor in the inventory (whose run ids would mean
nothing on a controller that has other runs): a baseline is made of the runs of one folder, and so is a decision.
"""

from __future__ import annotations

import fcntl
import json
from typing import TYPE_CHECKING

from rigctl.model.decision import BaselineDecision
from rigctl.store.canonical import dumps
from rigctl.store.files import append_durably, writing
from rigctl.store.lines import read_bytes, read_lines

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

FILE = "baselines.jsonl"


def read_decisions(root: Path) -> tuple[BaselineDecision, ...]:
    """Return every decision about runs under `root`, oldest first; a last line that a crash has cut is left out.

    Raises:
        UsageError: any other damage, with the line's number.
    """
    return read_lines(root / FILE, BaselineDecision)


def newest_decisions(root: Path) -> dict[str, BaselineDecision]:
    """Return the decision that holds for each rig, by name. Raises UsageError as `read_decisions`."""
    return {one.rig: one for one in read_decisions(root)}


def append_decisions(root: Path, decisions: Sequence[BaselineDecision]) -> None:
    """Add decisions in one piece; they are on the disk when this returns. Who writes at the same time waits.

    Raises:
        UsageError: the file cannot be written, or is damaged: nothing is added then.
        RigctlError: no room left.
    """
    path = root / FILE
    lines = b"".join(dumps(one, indent=None).encode() + b"\n" for one in decisions)
    with writing(path), path.open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        read_decisions(root)
        # A line that lacks nothing but its end has been read as a decision all the while: it stays one.
        whole = _only_end_missing(read_bytes(path))
        append_durably(path, b"\n" + lines if whole else lines, mend_cut_line=not whole)


def _only_end_missing(data: bytes) -> bool:
    tail = data.rpartition(b"\n")[2]
    try:
        json.loads(tail)
    except ValueError:
        return False
    return True
