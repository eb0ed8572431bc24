"""What the bench of a year counts: said in time, named rightly, in vain; and that a rig's nights really run."""

from __future__ import annotations

from collections import Counter
from datetime import date

from bench import year
from rigctl.sim.nights.fleet import DAYS, members
from rigctl.sim.nights.park import REFERENCE
from rigctl.sim.nights.wear import CHANGED, WEARS, Changed, Healthy, Wear
from rigctl.trends import TrendFinding

PUMP, PASTE = Wear("pump", 80), Wear("paste", 80)


def trend(check: str = "thermals.resistance", subject: str = "slot1 (…1)") -> TrendFinding:
    return TrendFinding(check, subject, "GPU-1", 0.001, "°C/W", 0.09, 0.1, date(2026, 9, 1), 60, "look")


def lived(story: Healthy, said: int | None = None, failed: int | None = None, seed: int = 0, **more) -> year.Year:
    known = {"first_is_right": True if said is not None else None} | more
    return year.Year(seed, "rig001", story, said_day=said, failed_day=failed, **known)


def told(*years: year.Year):
    return {one.name.removeprefix("year: "): one for one in year.told(years)}


def test_the_worst_seed_counts_and_each_is_shown():
    shown = told(
        lived(PUMP, 100, 140), lived(PASTE, 100, 130), lived(Healthy()),
        lived(PUMP, 100, 129, 1), lived(PASTE, None, 150, 1), lived(Healthy(), seed=1, vain=["a", "b", "c"]),
    )  # fmt: skip
    in_time, ahead, named, vain = shown.values()
    assert (in_time.value, in_time.holds, in_time.spread) == (0, False, "worst of seeds 100, 0")
    assert "2: seed 1 rig001 (pump): 29 days | seed 1 rig001 (paste): 0 days" in in_time.how
    assert (ahead.value, ahead.spread) == (29.5, "0 to 40, n=4")
    assert (named.value, named.spread) == (50, "worst of seeds 100, 50")
    assert (vain.value, vain.holds, vain.spread) == (3, False, "worst of seeds 0, 3")
    assert "seed 1 rig001 (left alone): b" in vain.how
    assert "pump 2, paste 2" in vain.how


def test_wear_that_met_no_limit_is_said_and_not_counted_as_late():
    in_time = told(lived(PUMP, 100, 140), lived(PASTE, 100))["slow faults said 30 days before the limit"]
    assert in_time.value == 100
    assert "1 of 2 met a limit" in in_time.how


def test_the_trend_of_what_wears_is_said_and_every_other_one_is_in_vain():
    one = lived(PASTE)
    year._note(one, 70, [trend()])
    year._note(one, 90, [trend(subject="slot2 (…2)")])
    year._note(one, 95, [trend(subject="slot2 (…2)"), trend()])
    year._note(one, 96, [trend(), trend("power.residual", "gpu_burn")])
    assert (one.said_day, one.first_is_right) == (95, False)
    assert one.vain == [
        "thermals.resistance slot1 (…1) on day 70",
        "thermals.resistance slot2 (…2) on day 90",
        "power.residual gpu_burn on day 96",
    ]
    changed = lived(Changed("driver", 50))
    year._note(changed, 60, [trend()])
    assert len(changed.vain) == 1
    pump = lived(PUMP)
    year._note(pump, 100, [trend(subject="slot2 (…2)")])
    assert (pump.said_day, pump.first_is_right, pump.vain) == (100, True, [])


def test_each_fleet_has_every_change_and_all_seeds_together_every_wear_alike():
    fleets = [members(REFERENCE, year.RIGS, seed) for seed in year.SEEDS]
    stories = [[year.story_of(member) for member in fleet] for fleet in fleets]
    for told_of in stories:
        assert sum(type(one) is Healthy for one in told_of) == year.RIGS // 4
        assert {one.what for one in told_of if isinstance(one, Changed)} == set(CHANGED)
    wears = Counter(one.kind for told_of in stories for one in told_of if isinstance(one, Wear))
    assert set(wears) == set(WEARS)
    assert set(wears.values()) == {year.RIGS // 2 * len(year.SEEDS) // len(WEARS)}


def test_a_rig_lives_through_its_nights_until_it_fails(fleet):
    one = year.year_of(fleet[0], Wear("supply", -DAYS // 2), 4)
    assert (one.failed_day, one.vain) == (None, [])
    gone = year.year_of(fleet[0], Wear("pump", -3 * DAYS), 4)
    assert gone.failed_day == 0
    assert gone.failed_by.startswith("thermals.")
