"""A fleet on which every metric has something to say."""

from __future__ import annotations

from datetime import UTC, date, datetime

from rigctl.metrics import RigSeen, Seen
from rigctl.model.night import LastNight
from rigctl.model.past import CardPart, Cause, Parts, Past, Point, WaiverSaid
from rigctl.model.verdict import Verdict
from rigctl.trends import TrendFinding

NOW = datetime(2026, 12, 1, 6, 0, tzinfo=UTC)
RUN = "2026-11-30T2300Z-7f3a"
ENDED = "2026-11-30T23:30:00Z"
UUID, SUBJECT = "GPU-84e2b6d0-5a3b-1f98-a3c7-e01b6cf2a91f", "slot2 (…a91f)"
CARD = CardPart(
    uuid=UUID, subject=SUBJECT, slot="slot2", model="NVIDIA GeForce RTX 3090 Ti", vbios="94.02", power_limit_w=480.0
)
PARTS = Parts(driver="515.105.01", kernel="5.15.0-56-generic", bios="F33", cards=(CARD,), ambient_c=21.5)


def past(rig: str, verdict: Verdict | None, **more: object) -> Past:
    known = {
        "run_id": RUN, "kind": "accept", "profile": "standard", "started_at": "2026-11-30T23:00:00Z",
        "ended_at": ENDED, "rigctl_version": "0.1.0", "rig": rig, "rig_class": "dual_3090ti", "verdict": verdict,
    }  # fmt: skip
    return Past.model_validate(known | more)


def point(check: str, found: float, unit: str | None, subject: str = SUBJECT, limit: float | None = None) -> Point:
    card = subject == SUBJECT
    return Point(
        run_id=RUN, ended_at=ENDED, profile="standard", check=check, subject=subject, slot="slot2" if card else None,
        uuid=UUID if card else None, found=found, unit=unit, verdict=Verdict.PASS, limit=limit,
    )  # fmt: skip


POINTS = (
    point("thermals.settled_gpu_temp", 83.0, "°C", limit=65.0),
    point("thermals.resistance", 0.107, "°C/W over the coolant", limit=0.08),
    point("power.wall", 1178.0, "W", "all_burn"),
    point("throughput.training", 6950.0, "tokens/s", limit=6702.0),
    point("topology.gpu_memory", 24564.0, "MiB", limit=24000.0),
    point("network.link", 1000.0, "Mbit/s", "eno1"),
    point("topology.gpu_count", 2.0, None, "rig", limit=2.0),
    point("own.test_dust", 3.0, "grains/cm²", "rig"),
)
TREND = TrendFinding(
    check="thermals.resistance",
    subject=SUBJECT,
    key=UUID,
    per_week=0.002,
    unit="°C/W over the coolant",
    now=0.076,
    limit=0.08,
    crosses_on=date(2026, 12, 20),
    nights=40,
    fix="pump first",
)


def bad_rig(verdict: Verdict = Verdict.FAIL) -> RigSeen:
    cause = Cause(check="thermals.resistance", subject=SUBJECT, verdict=verdict, reason="0.107 °C/W", fix="pump")
    waiver = WaiverSaid(check="power.wall", subject="all_burn", until=date(2026, 12, 2))
    counts = {"fail": 1, "waived": 1, "blind": 2, "pass": 41}
    last = past(
        "rig1", verdict, counts=counts, causes=(cause,), waivers=(waiver,), parts=PARTS, seconds={"gpu_burn": 600.0}
    )
    return RigSeen("rig1", "dual_3090ti", last, busy=False, points=POINTS, trends=(TREND,))


def fleet() -> Seen:
    """One rig that failed, one that could not be measured and is busy since, one that was never accepted."""
    broken = RigSeen("rig2", "dual_3090ti", past("rig2", Verdict.ERROR, counts={"error": 1}), busy=True)
    began, ended = "2026-11-30T22:00:00+00:00", "2026-12-01T00:00:00+00:00"
    night = LastNight(began_at=began, ended_at=ended, outcome="failed", judged=2, left_out=1)
    return Seen((bad_rig(), broken, RigSeen("rig3", "dual_3090ti")), night, unreadable=1)
