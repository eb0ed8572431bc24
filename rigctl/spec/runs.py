"""Which runs a class is learned from: those that are named, or the rig's last acceptance."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from rigctl.errors import UsageError
from rigctl.store import RunDir
from rigctl.store.ids import list_runs

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


log = logging.getLogger(__name__)


def runs_to_learn_from(root: Path, rig: str, named: Sequence[str]) -> list[RunDir]:
    """Return the runs, oldest first.

    Raises:
        UsageError: a named run is not there or damaged, or no acceptance under `root` has measured the rig.
    """
    if named:
        found = [RunDir.open(root, name, kind="accept") for name in named]
        return sorted(found, key=lambda run: run.read_info().started_at)
    own = [run for run_id in list_runs(root) if _measured(run := RunDir(root / run_id), rig)]
    if not own:
        raise UsageError(f"no run under {root} has measured {rig}", f"rigctl accept {rig}")
    newest = max(own, key=lambda run: run.read_info().started_at)
    return [RunDir.open(root, newest.path.name, kind="accept")]


def _measured(run: RunDir, rig: str) -> bool:
    try:
        info = run.read_info()
    except UsageError as error:
        log.warning("%s is left out: %s", run.path.name, error.message)
        return False
    return info.kind == "accept" and any(one.name == rig for one in info.rigs)
