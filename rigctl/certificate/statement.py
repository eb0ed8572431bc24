"""From a judged run to what a certificate states of one rig."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import rigctl
from rigctl.errors import RigctlError, UsageError
from rigctl.model.certificate import CertifiedCard, CertifiedCheck, Statement
from rigctl.model.verdict import Verdict
from rigctl.report.identity import machine_rows
from rigctl.report.text import counts
from rigctl.store.baseline import ACCEPTED

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from rigctl.model.reading import Facts
    from rigctl.model.verdict import RigRecord
    from rigctl.store import RunDir


class NotAccepted(RigctlError):
    """The run did not accept the rig: there is nothing to certify."""

    exit_code = rigctl.errors.ExitCode.FAILED


def state(run: RunDir, rig: str, now: datetime) -> Statement:
    """Return what can be certified of `rig` by this run.

    Raises:
        UsageError: the run has no record, is damaged, or did not measure this rig or its cards under load.
        NotAccepted: something failed, or stayed unmeasured.
    """
    record = run.read_record()
    judged = _of(record.rigs, rig, run)
    _refuse_what_is_not_accepted(run, judged)
    facts = run.readings(rig).facts
    if facts is None:
        raise UsageError(f"run {run.run_id} has no facts of {rig}", "name another run with --run")
    return Statement(
        rig=rig,
        rig_class=judged.rig_class,
        simulated=judged.simulated,
        verdict=judged.verdict,
        counts=judged.counts,
        run_id=run.run_id,
        profile=record.profile,
        started_at=record.started_at,
        ended_at=record.ended_at,
        measured_by=record.rigctl_version,
        certified_by=rigctl.__version__,
        certified_at=now.isoformat(timespec="seconds"),
        machine=tuple((name, value) for name, value in machine_rows(facts) if name != "Boot id"),
        cards=_cards(facts),
        checks=_checks(judged),
        evidence=digests(run.path, rig),
    )


def digests(folder: Path, rig: str) -> dict[str, str]:
    """SHA-256 of the run's files that a certificate rests on; telemetry is not among them, because it is thinned."""
    kept = ("run.json", "record.json", f"{rig}/facts.json", f"{rig}/outcome.json", f"{rig}/commands.jsonl")
    return {name: digest((folder / name).read_bytes()) for name in sorted(kept) if (folder / name).is_file()}


def digest(data: bytes) -> str:
    """SHA-256 as hex digits."""
    return hashlib.sha256(data).hexdigest()


def _of(rigs: tuple[RigRecord, ...], name: str, run: RunDir) -> RigRecord:
    for one in rigs:
        if one.name == name:
            return one
    known = ", ".join(one.name for one in rigs) or "none"
    raise UsageError(f"run {run.run_id} has no verdict on {name!r}", f"it judged: {known}")


def _refuse_what_is_not_accepted(run: RunDir, judged: RigRecord) -> None:
    if judged.verdict not in ACCEPTED:
        first = judged.causes[0].reason if judged.causes else "it was not measured"
        raise NotAccepted(
            f"{judged.name} was not accepted by run {run.run_id} ({counts(judged.counts)}): {first}",
            f"see `rigctl report {run.run_id}`; accept the rig again when it is mended",
        )
    profiles = {one.name: one.profile for one in run.read_info().rigs}
    profile = profiles.get(judged.name)
    if profile is None or profile.gpu_burn_seconds <= 0:
        raise UsageError(
            f"run {run.run_id} put no load on the cards of {judged.name}: it certifies nothing",
            "certify a run with a burn, such as `rigctl accept --profile standard`",
        )


def _cards(facts: Facts) -> tuple[CertifiedCard, ...]:
    return tuple(
        CertifiedCard(
            slot=gpu.slot,
            model=gpu.name,
            uuid=gpu.uuid,
            serial=gpu.serial,
            vbios=gpu.vbios,
            power_limit_w=gpu.power_limit_w,
        )
        for gpu in facts.gpus
    )


def _checks(judged: RigRecord) -> tuple[CertifiedCheck, ...]:
    return tuple(
        CertifiedCheck(
            check=one.check,
            subject=one.subject,
            verdict=one.verdict,
            reason=one.reason,
            found=one.found,
            expected=one.expected,
            unit=one.unit,
            waived_until=one.waived_until if one.verdict is Verdict.WAIVED else None,
        )
        for one in judged.verdicts
    )
