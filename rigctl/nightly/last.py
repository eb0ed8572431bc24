"""`last-night.json` beside the runs: what became of the newest night, read and replaced in one piece."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING

from rigctl.errors import ExitCode
from rigctl.model.night import LastNight
from rigctl.store.canonical import dumps
from rigctl.store.files import replace_durably
from rigctl.store.lines import read_model

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime
    from pathlib import Path

    from rigctl.model.night import Outcome
    from rigctl.model.verdict import Record

FILE = "last-night.json"


def read(runs: Path) -> LastNight | None:
    """What became of the newest night; None where there was none. Raises UsageError where the file is damaged."""
    path = runs / FILE
    return read_model(path, LastNight, f"remove {path}: the next night writes it") if path.exists() else None


def write(runs: Path, night: LastNight) -> None:
    """Keep what became of a night."""
    replace_durably(runs / FILE, dumps(night).encode() + b"\n")


def ended(records: Sequence[Record], left_out: Iterable[str], began: datetime, now: datetime) -> LastNight:
    """What became of a night: from the records of its runs, and the names of rigs that got no run. Pure."""
    codes = {record.exit_code for record in records}
    missed = set(left_out) | {busy.name for record in records for busy in record.busy}
    if ExitCode.FAILED in codes:
        outcome: Outcome = "failed"
    else:
        outcome = "ok" if codes == {ExitCode.OK} and not missed else "unmeasured"
    judged = sum(len(record.rigs) for record in records)
    return LastNight(began_at=_utc(began), ended_at=_utc(now), outcome=outcome, judged=judged, left_out=len(missed))


def broken(began: datetime, now: datetime) -> LastNight:
    """A night that ended with an error of its own, or was stopped: nobody knows what it would have found."""
    return LastNight(began_at=_utc(began), ended_at=_utc(now), outcome="broken")


def _utc(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds")
