"""The morning after a night: what is said of it, and to whom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rigctl.errors import ExitCode
from rigctl.nightly import store
from rigctl.nightly.informing import inform
from rigctl.nightly.telling import Found, after_night, merged, morning, nothing_measured, reminders
from rigctl.store.index import Index
from rigctl.trends import know

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from rigctl.errors import RigctlError
    from rigctl.model.verdict import Record
    from rigctl.nightly.informing import Decide, Informed
    from rigctl.nightly.settings import Park
    from rigctl.nightly.told import Kept


@dataclass(frozen=True)
class Morning:
    """What is said."""

    text: str
    left_out: dict[str, str]
    """Every rig that the night left out, busy ones among them, and why."""
    refused: tuple[RigctlError, ...]
    """Services that did not take their messages."""
    exit_code: ExitCode


def tell(park: Park, runs: Path, records: Sequence[Record], left_out: Mapping[str, str], now: datetime) -> Morning:
    """Say what a night found, and send what people do not know of it yet.

    Args:
        park: The rigs, and how they want their nights.
        runs: The folder of runs.
        records: Of the night's runs.
        left_out: Rigs that had no run, and why; busy ones are in the records.
        now: Local time.

    Raises:
        RigctlError: the index, or what was told so far, cannot be read.
    """
    busy = {one.name: f"busy: {one.users}" for record in records for one in record.busy}
    measured = {rig.name for record in records for rig in record.rigs}
    absent = {rig: why for rig, why in (busy | dict(left_out)).items() if rig not in measured}
    kept = store.read(runs).after(absent, measured, now)
    absences = {rig: kept.absences[rig] for rig in absent}
    if not measured:
        message = nothing_measured(absences)
        done = _inform(park, runs, kept, lambda told: (told, (message,)))
        return Morning(f"{message.title}\n{message.body}", absent, tuple(done.refused), ExitCode.UNMEASURED)
    record = merged(records)
    with Index.open(runs) as index:
        index.update()
        found = Found(record, {rig.name: know(index, rig.name, now=now) for rig in record.rigs}, absences)
    done = _inform(park, runs, kept, lambda told: after_night(told, found, park.spec, now))
    # Busy is not a verdict: it is said and not counted.
    code = ExitCode.UNMEASURED if done.refused or left_out else record.exit_code
    code = record.exit_code if record.exit_code is ExitCode.FAILED else code
    return Morning(morning(found, park.spec), absent, tuple(done.refused), code)


def remind(park: Park, runs: Path, now: datetime) -> Informed:
    """Send again what a service did not take, and what has stayed bad. Raises UsageError as `store.read`."""
    return _inform(park, runs, store.read(runs), lambda told: reminders(told, park.spec, now), anew=False)


def _inform(park: Park, runs: Path, kept: Kept, decide: Decide, *, anew: bool = True) -> Informed:
    """Send every service what it does not know, and keep what it took."""
    done = inform(park.spec.notify, kept.services, decide, anew=anew)
    if anew or done.services != kept.services:
        store.write(runs, kept.model_copy(update={"services": done.services}))
    return done
