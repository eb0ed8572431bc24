"""Three years of twenty rigs, some with a part that wears: how long before its limit that is said, and what is in vain.

Every night goes through the simulated physics and the suite's own functions, each compared with those before it, as in
the detection bench, and every morning the trends are asked as `rigctl nightly` asks them. Half of a fleet's rigs are
well: weather, dust and age belong to them, and on half of those people change a part. On the others one part wears,
from a day in spring on, until the rig fails.
"""

from __future__ import annotations

import random
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal

from bench.figure import Figure, figure, rounded
from rigctl.model.run import RunRig
from rigctl.model.verdict import Record, Verdict
from rigctl.sim.nights.fleet import DAYS, members, night_profile
from rigctl.sim.nights.hardware import Hardware
from rigctl.sim.nights.judging import judge
from rigctl.sim.nights.night import Asked, Night
from rigctl.sim.nights.park import FIRST_NIGHT_S, NIGHT_S, Outcome, after
from rigctl.sim.nights.wear import CHANGED, WEARS, WORN_SLOT, Changed, Healthy, Wear
from rigctl.store.index.scan import past_of, points_of
from rigctl.trends import known_of
from rigctl.trends.slow import WATCHED, WINDOW_DAYS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.stage import Stage
    from rigctl.model.baseline import Baseline
    from rigctl.model.past import Past, Point
    from rigctl.model.reading import Readings
    from rigctl.model.spec import ProfileSpec
    from rigctl.model.verdict import RigRecord
    from rigctl.sim.nights.fleet import Member
    from rigctl.trends import TrendFinding

NAME = "year"
RIGS, SEEDS = 20, (3, 4, 5)
"""Other seeds than those on which the statistics of trends were tried out while they were made (0, 1, 2)."""
AHEAD_DAYS = 30
BEGINS = (60, 120)
"""Days between which a part begins to wear."""
CHANGES = (60, 300)
"""Days between which people change something."""
BURN_S, REST_S, SAMPLE_S, STEP_S = 600.0, 40.0, 10.0, 1.0
"""A burn as `standard` has it, a rest before it, a sample every ten seconds, and steps of the physics twenty times
as long as on a simulated rig: temperatures that settle do not depend on them."""
BAD = (Verdict.FAIL, Verdict.ERROR)
PROFILE = "standard"


@dataclass
class Year:
    """What became of one rig."""

    seed: int
    rig: str
    story: Healthy
    said_day: int | None = None
    """When the trend of what wears was first said."""
    first_is_right: bool | None = None
    """Whether the first trend that was said once the part wore is of its check and its card; None: none was said."""
    failed_day: int | None = None
    """When it first failed."""
    failed_by: str = ""
    """The check that says so first."""
    vain: list[str] = field(default_factory=list)
    """Trends that nothing which wears explains: each is counted once."""

    @property
    def what(self) -> str:
        """What happens to it, in a word."""
        if isinstance(self.story, Changed):
            return f"{self.story.what} changed"
        return self.kind or "left alone"

    @property
    def kind(self) -> str | None:
        """What wears; None: nothing."""
        return self.story.kind if isinstance(self.story, Wear) else None

    @property
    def ahead(self) -> int:
        """Days between the trend and the limit; 0 where it was not said."""
        if self.failed_day is None or self.said_day is None:
            return 0
        return self.failed_day - self.said_day


def measure(stage: Stage) -> list[Figure]:
    """Return what was said in time, what in vain, and how it was counted; `stage` has nothing to do with it."""
    del stage
    fleets = [members("dual_3090ti", RIGS, seed) for seed in SEEDS]
    jobs = [(member, story_of(member)) for fleet in fleets for member in fleet]
    with ProcessPoolExecutor() as pool:
        return told(list(pool.map(year_of, *zip(*jobs, strict=True))))


def told(years: Sequence[Year]) -> list[Figure]:
    """Say the worst of the seeds, with each seed beside it."""
    fleets = [[one for one in years if one.seed == seed] for seed in sorted({one.seed for one in years})]
    worn = [one for one in years if one.kind is not None]
    met = [one for one in worn if one.failed_day is not None]
    vain = [f"seed {one.seed} {one.rig} ({one.what}): {said}" for one in years for said in one.vain]
    late = [f"seed {one.seed} {one.rig} ({one.what}): {one.ahead} days" for one in met if one.ahead < AHEAD_DAYS]
    how = _how(years, met)
    in_time, named = [_in_time(one) for one in fleets], [_named(one) for one in fleets]
    in_vain = [sum(len(one.vain) for one in fleet) for fleet in fleets]
    return [
        _worst("slow faults said 30 days before the limit", in_time, "%", how + _listed(late), ("≥", 90)),
        figure("year: days before the limit", [one.ahead for one in met], "days", how),
        _worst("slow faults whose first trend names what wears", named, "%", how, None),
        _worst("trends said in vain", in_vain, "", how + _listed(vain), ("≤", 2)),
    ]


def _in_time(fleet: Sequence[Year]) -> float:
    """The share of the worn rigs that met a limit of which it was said so early, %."""
    met = [one for one in fleet if one.kind is not None and one.failed_day is not None]
    return 100 * sum(one.ahead >= AHEAD_DAYS for one in met) / len(met)


def _named(fleet: Sequence[Year]) -> float:
    """The share of the worn rigs whose first trend was of the figure, and the card, that wears, %."""
    worn = [one for one in fleet if one.kind is not None]
    return 100 * sum(one.first_is_right is True for one in worn) / len(worn)


def _worst(
    name: str, by_seed: Sequence[float], unit: str, how: str, goal: tuple[Literal["≤", "≥"], float] | None
) -> Figure:
    """Return the seed that is farthest from the goal; the more, the better where there is none."""
    worst = max(by_seed) if goal is not None and goal[0] == "≤" else min(by_seed)
    each = "worst of seeds " + ", ".join(f"{rounded(value):g}" for value in by_seed)
    return replace(figure(f"year: {name}", [worst], unit, how, goal=goal), spread=each)


def _how(years: Sequence[Year], met: Sequence[Year]) -> str:
    """Say exactly what was done."""
    worn = Counter(one.kind for one in years if one.kind is not None)
    changed = Counter(one.story.what for one in years if isinstance(one.story, Changed))
    seeds = sorted({one.seed for one in years})
    wears = ", ".join(f"{kind} {count}" for kind, count in worn.items())
    change = ", ".join(f"{what} {count}" for what, count in changed.items())
    healthy = len(years) - worn.total() - changed.total()
    return (
        f"seeds {', '.join(map(str, seeds))} (the statistics were made on others) × {len(years) // len(seeds)} rigs × "
        f"{DAYS} nights in process: rest, gpu-burn of {BURN_S:.0f} s, the "
        f"suite's verdicts, the baseline of the nights before, then the trends of the morning; a sample every "
        f"{SAMPLE_S:.0f} s, physics in steps of {STEP_S:g} s. One part wears evenly from a day between "
        f"{BEGINS[0]} and {BEGINS[1]} on ({wears}), {len(met)} of {worn.total()} met a limit of a check; people "
        f"change something on a day between {CHANGES[0]} and {CHANGES[1]} ({change}); {healthy} rigs are left alone. "
        "Said: the trend of the worn part's own check (and card). In vain: any other trend, one before the wear began, "
        "and a rig without wear that failed; each check and subject of a rig counts once"
    )


def _listed(what: Sequence[str]) -> str:
    return f"; {len(what)}: " + " | ".join(what) if what else ""


def story_of(member: Member) -> Healthy:
    """Choose what happens to a rig: of four, two wear, one is changed and one is left alone."""
    own = random.Random(f"{member.seed}:{member.number}:story")  # noqa: S311 - to be repeatable
    turn = member.number // 2 + member.seed * RIGS // 2
    if member.number % 2:
        kinds = tuple(WEARS)
        return Wear(kinds[turn % len(kinds)], own.randrange(*BEGINS))
    return Changed(CHANGED[turn // 2 % len(CHANGED)], own.randrange(*CHANGES)) if turn % 2 else Healthy()


def year_of(member: Member, story: Healthy, days: int = DAYS) -> Year:
    """Live through a rig's nights until it fails."""
    year, profile = Year(member.seed, member.rig.name, story), _profile(member)
    baseline: Baseline | None = None
    pasts: list[Past] = []
    points: list[list[Point]] = []
    for day in range(days):
        if isinstance(story, Changed) and day == story.on:
            baseline = None  # as people do who know of it: `rigctl baseline reset`
        asked, readings, record = _night(member, story, profile, baseline, day)
        baseline = after(baseline, Outcome(member.rig.name, day, PROFILE, record, {}), readings)  # type: ignore[arg-type]
        run = _run(day, record)
        asked_rig = RunRig(name=asked.name, spec=asked.spec, profile=profile, baseline=asked.baseline)
        pasts.append(past_of("accept", run, record, asked_rig, readings.facts, {}))
        points.append([one for one in points_of(run, record, readings.facts) if one.check in WATCHED])
        if record.verdict in BAD:
            _failed(year, day, record)
            return year
        # What is older than the window is not looked at: to leave it out is quicker, and says the same.
        window = slice(-WINDOW_DAYS - 1, None)
        seen = tuple(point for night in points[window] for point in night)
        _note(year, day, known_of(member.rig.name, tuple(pasts[window]), seen, _at(day)).trends)
    return year


def _night(
    member: Member, story: Healthy, profile: ProfileSpec, baseline: Baseline | None, day: int
) -> tuple[Asked, Readings, RigRecord]:
    seed = (member.seed * RIGS + member.number) * DAYS + day
    asked = Asked(member.rig.name, story.spec(member, day), profile, baseline, FIRST_NIGHT_S + day * NIGHT_S)
    rig = Hardware(story.identity(member, day), [], story.conditions(member, day), seed, STEP_S)
    readings, host = Night(asked, rig, seed).measure()
    return asked, readings, judge(asked, readings, host)


def _failed(year: Year, day: int, record: RigRecord) -> None:
    """Take in that a rig failed: a worn one meets a limit, any other is called bad for nothing."""
    by = record.causes[0]
    if isinstance(year.story, Wear) and day >= year.story.begins:
        year.failed_day, year.failed_by = day, by.check
    else:
        year.vain.append(f"{by.check} {by.subject} failed on day {day}: {by.reason}")


def _note(year: Year, day: int, trends: Sequence[TrendFinding]) -> None:
    """Take in what a morning says."""
    story = year.story
    wears = isinstance(story, Wear) and day >= story.begins
    for one in trends:
        right = wears and _names(story, one)
        if wears and year.first_is_right is None:
            year.first_is_right = right
        if right:
            year.said_day = day if year.said_day is None else year.said_day
            continue
        name = f"{one.check} {one.subject}"
        if not any(said.startswith(name) for said in year.vain):
            year.vain.append(f"{name} on day {day}")


def _names(story: Healthy, trend: TrendFinding) -> bool:
    """Whether a trend is of the figure, and of the card, whose part wears."""
    if not isinstance(story, Wear):
        return False
    kind = WEARS[story.kind]
    return trend.check == kind.check and (not kind.one_card or trend.subject.startswith(f"slot{WORN_SLOT} "))


def _profile(member: Member) -> ProfileSpec:
    changes = {"gpu_burn_seconds": BURN_S, "cpu_burn_seconds": 0.0, "all_burn_seconds": 0.0, "train": False,
               "workloads": (), "idle_seconds": REST_S, "sample_hz": 1 / SAMPLE_S}  # fmt: skip
    return night_profile(member.rig.profiles[PROFILE]).model_copy(update=changes)


def _at(day: int) -> datetime:
    return datetime.fromtimestamp(FIRST_NIGHT_S, UTC) + timedelta(days=day, hours=3)


def _run(day: int, record: RigRecord) -> Record:
    when = _at(day).isoformat()
    return Record(
        run_id=f"night-{day:03}",
        kind="accept",
        profile=PROFILE,
        started_at=when,
        ended_at=when,
        rigctl_version="0.1.0",
        rigs=(record,),
    )
