"""A park without any rig: specs, wishes and records for the night's tests."""

from __future__ import annotations

from typing import Any

from rigctl.model.nightly import NightlySpec
from rigctl.model.rig import Login, Rig
from rigctl.model.verdict import CheckVerdict, Record, RigRecord, Verdict
from rigctl.nightly.settings import Park
from tests.checks import healthy as h

WINDOW = {"begin": "22:00", "end": "06:00"}


def rig(name: str) -> Rig:
    quick = h.PROFILE.model_copy(update={"gpu_burn_seconds": 60})
    return Rig(
        name=name, login=Login(address="192.0.2.1"), spec=h.spec(), profiles={"standard": quick, "full": h.PROFILE}
    )


def spec(**changes: Any) -> NightlySpec:
    return NightlySpec.model_validate({"window": WINDOW} | changes)


def park(*names: str, circuits: dict[str, tuple[str, float]] | None = None, **more: Any) -> Park:
    """Rigs; `circuits` says of a rig on which one it is, and what that bears, W."""
    known = circuits or {}
    circuit = {name: where for name, (where, _) in known.items()}
    return Park(tuple(map(rig, names)), spec(**more), dict(known.values()), circuit, {})


def record(*rigs: tuple[str, str], run_id: str = "2026-11-30T2300Z-7f3a") -> Record:
    """A night's record: each rig with what is wrong, empty where nothing is."""
    return Record(
        run_id=run_id,
        kind="accept",
        profile="standard",
        started_at="2026-11-30T23:00:00Z",
        ended_at="2026-12-01T03:00:00Z",
        rigctl_version="0.1.0",
        rigs=tuple(judged(name, wrong) for name, wrong in rigs),
    )


def judged(name: str, wrong: str = "") -> RigRecord:
    known: dict[str, Any] = {"check": "thermals.resistance", "subject": "slot2 (…a91f)"}
    verdict = (
        CheckVerdict(**known, verdict=Verdict.FAIL, reason=wrong, fix="pump, then cold plate")
        if wrong
        else CheckVerdict(**known, verdict=Verdict.PASS, reason="as usual")
    )
    other = CheckVerdict(check="power.wall", subject="rig", verdict=Verdict.PASS, reason="1240 W")
    return RigRecord(name=name, rig_class="dual_3090ti", verdicts=(verdict, other), left="idle, limits as found")
