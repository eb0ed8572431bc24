"""Which telemetry a run still has, told by its files' names and by `pruned.json`.

Whole telemetry and thinned telemetry have names of their own, so a folder says by itself what it holds, whenever
whoever pruned it was killed; an older rigctl finds no telemetry there and judges nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rigctl.errors import UsageError
from rigctl.model.pruned import Pruned
from rigctl.store.lines import read_model
from rigctl.store.thinning import SPANS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from rigctl.model.pruned import PrunedFile, TelemetryState

FILE = "pruned.json"
TELEMETRY = "telemetry.jsonl"
PACKED = f"{TELEMETRY}.gz"
THINNED = "telemetry.thinned.jsonl.gz"
WHOLE = (TELEMETRY, PACKED)


def telemetry_file(folder: Path) -> Path:
    """Return the file with a rig's samples, the whole one where it is there; it may not exist."""
    # Two exist only when a crash came before the older one was removed: the one named first is then whole.
    return next((folder / name for name in (*WHOLE, THINNED) if (folder / name).exists()), folder / PACKED)


def read_pruned(run: Path) -> Pruned | None:
    """Return what was pruned of a run; None where nothing was. Raises UsageError where that is damaged."""
    path = run / FILE
    return read_model(path, Pruned) if path.exists() else None


def telemetry_state(run: Path, rig: str, known: Pruned | None) -> tuple[TelemetryState, PrunedFile | None]:
    """Return what is left of a rig's telemetry, and what `pruned.json` says of it. A rig without any counts as whole.

    Args:
        run: The run directory.
        rig: The rig, or another folder with telemetry in it.
        known: What `read_pruned` returned.
    """
    folder, said = run / rig, known.telemetry.get(rig) if known is not None else None
    if any((folder / name).exists() for name in WHOLE):
        return "whole", said
    if (folder / THINNED).exists():
        return "thinned", said
    return ("dropped", said) if said is not None and said.state != "whole" else ("whole", said)


def said_of(run: Path, rig: str) -> str:
    """Say what became of a rig's telemetry; empty where it is whole. Raises UsageError where pruned.json is damaged."""
    state, said = telemetry_state(run, rig, read_pruned(run))
    if state == "whole":
        return ""
    when = f" on {said.at[:10]}" if said is not None else ""
    if state == "dropped":
        return f"telemetry was dropped{when} by its age; verdicts and figures are the record's"
    return (
        f"telemetry was thinned{when} by its age: of every sensor the lowest and the highest figure of each "
        f"{SPANS}th of a step are left"
    )


def require_whole(run: Path, run_id: str, rigs: Iterable[str]) -> None:
    """Refuse to judge by what is left.

    Raises:
        UsageError: telemetry of one of `rigs` was thinned or dropped.
    """
    known = read_pruned(run)
    for rig in rigs:
        state, said = telemetry_state(run, rig, known)
        if state != "whole":
            when = f" on {said.at[:10]}" if said is not None else ""
            raise UsageError(
                f"run {run_id} cannot be judged any more: telemetry of {rig} was {state}{when} by `rigctl prune`",
                f"its verdicts stand: `rigctl report {run_id}`; to judge it again, bring "
                f"{rig}/{PACKED} back from a backup",
            )
