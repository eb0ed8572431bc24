"""A year of twenty rigs with slow faults: how long before its limit a trend is said, and how often one is said in vain.

Every night goes through the simulated physics and the suite's own functions, each compared with those before it, as in
the detection bench; a third of the standard profile's burn, so that a year takes minutes. Half of the rigs are healthy:
weather, dust and age belong to them. On the others one part wears, from a day in spring on, until its rig fails.
"""

from __future__ import annotations

import random
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from bench.figure import Figure, figure
from rigctl.model.past import Past, Point
from rigctl.model.verdict import Verdict
from rigctl.sim.nights.fleet import DAYS, members, night_profile
from rigctl.sim.nights.hardware import Hardware
from rigctl.sim.nights.judging import judge
from rigctl.sim.nights.night import Asked, Night
from rigctl.sim.nights.park import FIRST_NIGHT_S, NIGHT_S, Outcome, after
from rigctl.trends import known_of
from rigctl.trends.slow import WATCHED

if TYPE_CHECKING:
    from bench.stage import Stage
    from rigctl.model.baseline import Baseline
    from rigctl.model.verdict import RigRecord
    from rigctl.sim.nights.fleet import Member
    from rigctl.sim.nights.hardware import Conditions

NAME = "year"
RIGS, BURN_S = 20, 180.0
AHEAD_DAYS = 30
KINDS = ("pump", "paste", "dust", "supply")
LOST = {"pump": 0.6, "paste": 0.55, "dust": 0.85, "supply": 0.16}
"""What a part has lost at the year's end, as a share: of its flow, its seat, its air, its efficiency."""
BAD = (Verdict.FAIL, Verdict.ERROR)


@dataclass(frozen=True)
class Year:
    """What became of one rig."""

    kind: str | None
    said_day: int | None
    """When a trend was first said."""
    failed_day: int | None
    """When it first failed."""
    trends: int
    """Different trends that were said until it failed."""


def measure(stage: Stage) -> list[Figure]:
    """Return the shares; `stage` has nothing to do with it."""
    del stage
    with ProcessPoolExecutor() as pool:
        years = list(pool.map(_year, range(RIGS)))
    worn = [one for one in years if one.kind is not None and one.failed_day is not None]
    ahead = [one.failed_day - one.said_day if one.said_day is not None else 0 for one in worn]  # type: ignore[operator]
    healthy = [one for one in years if one.kind is None]
    how = f"{RIGS} rigs, {DAYS} nights each, {len(worn)} with a slow fault ({', '.join(KINDS)})"
    in_time = 100 * sum(days >= AHEAD_DAYS for days in ahead) / len(worn)
    return [
        figure("year: slow faults said 30 days before the limit", [in_time], "%", how, goal=("≥", 90)),
        figure("year: days before the limit", ahead, "days", how),
        figure("year: trends said in vain", [sum(one.trends for one in healthy)], "", how, goal=("≤", 2)),
    ]


def _year(number: int) -> Year:
    member = members("dual_3090ti", RIGS)[number]
    kind = KINDS[number // 2 % len(KINDS)] if number % 2 else None
    begins = random.Random(number).randrange(60, 120)  # noqa: S311 - a day in spring, to be repeatable
    profile = night_profile(member.rig.profiles["standard"]).model_copy(
        update={"gpu_burn_seconds": BURN_S, "cpu_burn_seconds": 0.0, "all_burn_seconds": 0.0, "train": False,
                "workloads": (), "idle_seconds": 10.0}
    )  # fmt: skip
    baseline: Baseline | None = None
    pasts: list[Past] = []
    points: list[Point] = []
    said: set[tuple[str, str]] = set()
    first: int | None = None
    for day in range(DAYS):
        worn = max(0.0, (day - begins) / (DAYS - begins)) if kind else 0.0
        rig = Hardware(_identity(member, kind, worn), [], _conditions(member, day, kind, worn), number * 1000 + day)
        asked = Asked(member.rig.name, member.spec, profile, baseline, FIRST_NIGHT_S + day * NIGHT_S)
        readings, host = Night(asked, rig, number * 1000 + day).measure()
        record = judge(asked, readings, host)
        baseline = after(baseline, Outcome(member.rig.name, day, "standard", record, {}), readings)  # type: ignore[arg-type]
        uuids = {gpu.subject: gpu.uuid for gpu in readings.facts.gpus} if readings.facts else {}
        pasts.append(_past(day, record))
        points += _points(day, record, uuids)
        if record.verdict in BAD:
            return Year(kind, first, day, len(said))
        found = known_of(member.rig.name, tuple(pasts), tuple(points), _at(day)).trends
        said |= {(one.check, one.key) for one in found}
        first = day if found and first is None else first
    return Year(kind, first, None, len(said))


def _conditions(member: Member, day: int, kind: str | None, worn: float) -> Conditions:
    usual = member.conditions(day)
    left = 1 - LOST[kind] * worn if kind else 1.0
    if kind == "pump":
        return replace(usual, flow=usual.flow * left)
    if kind == "paste":
        return replace(usual, seats=(usual.seats[0] * left, *usual.seats[1:]))
    return replace(usual, air=usual.air * left) if kind == "dust" else usual


def _identity(member: Member, kind: str | None, worn: float) -> dict[str, object]:
    if kind != "supply":
        return member.identity
    machine = dict(member.identity["machine"])
    left = 1 - LOST[kind] * worn
    machine["supply_efficiency"] = [[watts, share * left] for watts, share in machine["supply_efficiency"]]
    return {**member.identity, "machine": machine}


def _at(day: int) -> datetime:
    return datetime.fromtimestamp(FIRST_NIGHT_S, UTC) + timedelta(days=day, hours=3)


def _past(day: int, record: RigRecord) -> Past:
    known = {"run_id": f"night-{day:03}", "kind": "accept", "profile": "standard", "rigctl_version": "0.1.0"}
    times = {"started_at": _at(day).isoformat(), "ended_at": _at(day).isoformat()}
    return Past(**known, **times, rig=record.name, rig_class=record.rig_class, verdict=record.verdict)


def _points(day: int, record: RigRecord, uuids: dict[str, str]) -> list[Point]:
    return [
        Point(
            run_id=f"night-{day:03}",
            ended_at=_at(day).isoformat(),
            profile="standard",
            check=one.check,
            subject=one.subject,
            uuid=uuids.get(one.subject),
            found=float(one.found),
            unit=one.unit,
            verdict=one.verdict,
            limit=float(one.expected) if isinstance(one.expected, int | float) else None,
        )
        for one in record.verdicts
        if one.check in WATCHED and isinstance(one.found, int | float)
    ]
