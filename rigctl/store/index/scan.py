"""From one run directory to what the index keeps of it."""

from __future__ import annotations

import json
import logging
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rigctl.model.past import CardPart, Cause, Parts, Past, Point, WaiverSaid
from rigctl.model.reading import Facts
from rigctl.model.verdict import Verdict
from rigctl.store.canonical import digest
from rigctl.store.lines import read_model
from rigctl.store.xids import xid_numbers

if TYPE_CHECKING:
    from pathlib import Path

    from rigctl.model.run import RunRig
    from rigctl.model.verdict import Record, RigRecord
    from rigctl.store.outcome import JournalEntry
    from rigctl.store.rundir import RunDir

log = logging.getLogger(__name__)
ROOM = re.compile(r"(?:room|ambient|coolant)[^.;]*?(-?\d+(?:\.\d+)?) °C")
"""How checks of the cooling say what the room or the coolant had."""
_COOLING = "thermals.resistance"
_ENDS = ("step_started", "verify_started")


@dataclass(frozen=True)
class Scanned:
    """One run."""

    pasts: tuple[Past, ...]
    points: dict[str, tuple[Point, ...]]
    """By rig."""


def scan(run: RunDir) -> Scanned:
    """Read a run.

    Raises:
        UsageError: something of it is damaged or missing; the message names it.
    """
    info = run.read_info()
    if not run.has_record:
        return Scanned((), {})
    record = run.read_record()
    asked = {one.name: one for one in info.rigs}
    seconds = _seconds(run.journal_entries())
    pasts, points = [], {}
    for rig in record.rigs:
        facts = _facts(run.path / rig.name / "facts.json")
        pasts.append(past_of(info.kind, record, rig, asked.get(rig.name), facts, seconds.get(rig.name, {})))
        points[rig.name] = points_of(record, rig, facts)
    pasts += [
        Past(**_of_run(info.kind, record), rig=one.name, rig_class=one.rig_class, verdict=None, busy=one.users)
        for one in record.busy
    ]
    return Scanned(tuple(pasts), points)


def _of_run(kind: str, record: Record) -> dict[str, str]:
    return {
        "run_id": record.run_id,
        "kind": kind,
        "profile": record.profile,
        "started_at": record.started_at,
        "ended_at": record.ended_at,
        "rigctl_version": record.rigctl_version,
    }


def past_of(  # noqa: PLR0913, PLR0917 - all that is known of a rig in a run
    kind: str,
    record: Record,
    rig: RigRecord,
    asked: RunRig | None,
    facts: Facts | None,
    seconds: dict[str, float],
) -> Past:
    """Return what the index keeps of a rig in a run: `kind` is the run's, `seconds` how long each step took."""
    profile = asked.profile if asked is not None else None
    if facts is None:
        log.warning("%s has no facts of %s and is left out of its baseline", record.run_id, rig.name)
    return Past(
        **_of_run(kind, record),
        rig=rig.name,
        rig_class=rig.rig_class,
        verdict=rig.verdict,
        counts=rig.counts,
        causes=tuple(
            Cause(check=one.check, subject=one.subject, verdict=one.verdict, reason=one.reason, fix=one.fix)
            for one in rig.causes
        ),
        simulated=rig.simulated,
        asked=digest(profile) if profile is not None else "",
        burnt=profile is not None and profile.gpu_burn_seconds > 0,
        known=facts is not None,
        left=rig.left,
        xids=xid_numbers(rig),
        parts=_parts(rig, asked, facts),
        waivers=tuple(
            WaiverSaid(check=one.check, subject=one.subject, until=one.waived_until)
            for one in rig.verdicts
            if one.verdict is Verdict.WAIVED and one.waived_until is not None
        ),
        seconds=seconds,
    )


def _parts(rig: RigRecord, asked: RunRig | None, facts: Facts | None) -> Parts:
    spec = digest(asked.spec) if asked is not None else ""
    if facts is None:
        return Parts(spec=spec)
    return Parts(
        driver=facts.driver.loaded,
        kernel=facts.kernel or None,
        bios=facts.bios_version,
        spec=spec,
        ambient_c=_ambient(rig),
        cards=tuple(
            CardPart(
                uuid=gpu.uuid,
                subject=gpu.subject,
                slot=f"slot{gpu.slot}",
                model=gpu.name,
                vbios=gpu.vbios,
                power_limit_w=gpu.power_limit_w,
            )
            for gpu in facts.gpus
        ),
    )


def _ambient(rig: RigRecord) -> float | None:
    said = [match for one in rig.verdicts if one.check == _COOLING and (match := ROOM.search(one.reason))]
    return float(said[0][1]) if said else None


def points_of(record: Record, rig: RigRecord, facts: Facts | None) -> tuple[Point, ...]:
    """Return the figures that the checks of a rig found."""
    cards = {gpu.subject: gpu for gpu in facts.gpus} if facts is not None else {}
    found: dict[tuple[str, str], Point] = {}
    for one in rig.verdicts:
        if not _number(one.found):
            continue
        card = cards.get(one.subject)
        found[one.check, one.subject] = Point(
            run_id=record.run_id,
            ended_at=record.ended_at,
            profile=record.profile,
            check=one.check,
            subject=one.subject,
            slot=f"slot{card.slot}" if card is not None else None,
            uuid=card.uuid if card is not None else None,
            found=float(one.found),  # type: ignore[arg-type] # a number, as just asked
            unit=one.unit,
            verdict=one.verdict,
            limit=float(one.expected) if _number(one.expected) else None,  # type: ignore[arg-type]
        )
    return tuple(found.values())


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _facts(path: Path) -> Facts | None:
    return read_model(path, Facts) if path.exists() else None


def _seconds(journal: tuple[JournalEntry, ...]) -> dict[str, dict[str, float]]:
    """How long each step of each rig took, seconds, by the controller's monotonic clock.

    Nothing is said of a run that went on without its controller or was taken up again by another one, for nobody looked
    on; nor of the step after which a rig waited for the others of its run.
    """
    if any(entry.event == "resumed" for entry in journal):
        return {}
    found: dict[str, dict[str, float]] = {}
    since: dict[str, tuple[str, float]] = {}
    ours = [entry for entry in journal if entry.event in _ENDS and isinstance(entry.detail.get("rig"), str)]
    alone = len({entry.detail["rig"] for entry in ours}) == 1
    for entry in ours:
        rig = str(entry.detail["rig"])
        if rig in since:
            step, began = since.pop(rig)
            if entry.event == "step_started" or alone:
                steps = found.setdefault(rig, {})
                steps[step] = round(steps.get(step, 0.0) + entry.t_mono_s - began, 3)
        if entry.event == "step_started":
            since[rig] = (str(entry.detail.get("step")), entry.t_mono_s)
    return found


def document(past: Past) -> str:
    """A `Past` as the index keeps it."""
    return json.dumps(past.model_dump(mode="json"), separators=(",", ":"), ensure_ascii=False)
