"""What wears, what people change, and what links damage by chance."""

from __future__ import annotations

import random

import pytest

from rigctl.model.verdict import Verdict
from rigctl.sim.machine.hardware.rigsim.physics import MAX_STEP_S
from rigctl.sim.machine.hardware.rigsim.wiring import Damage
from rigctl.sim.nights import park
from rigctl.sim.nights.fleet import DAYS, WARMEST_C, night_profile
from rigctl.sim.nights.hardware import Hardware
from rigctl.sim.nights.judging import judge
from rigctl.sim.nights.margins import PER_C, ROOM_C, STRONGEST, WEAKEST, margins, replays_per_s, wrong_bit_share
from rigctl.sim.nights.night import Asked, Night
from rigctl.sim.nights.wear import CHANGED, NEWER_DRIVER, WARMER_C, WEARS, WORN_SLOT, Changed, Healthy, Wear

LAST = DAYS - 1
BAD = (Verdict.FAIL, Verdict.ERROR)


def night(member, story, day, *, most_step_s=1.0):
    changes = {"cpu_burn_seconds": 0.0, "all_burn_seconds": 0.0, "train": False, "workloads": ()}
    profile = night_profile(member.rig.profiles["standard"]).model_copy(update={**changes, "sample_hz": 0.1})
    profile = profile.model_copy(update={"idle_seconds": 40.0})
    asked = Asked(member.rig.name, story.spec(member, day), profile, None, park.FIRST_NIGHT_S + day * park.NIGHT_S)
    rig = Hardware(story.identity(member, day), [], story.conditions(member, day), day, most_step_s)
    readings, host = Night(asked, rig, day).measure()
    return judge(asked, readings, host), readings


def found(record, check):
    return {one.subject: one.found for one in record.verdicts if one.check == check}


@pytest.mark.parametrize("kind", WEARS)
def test_what_wears_meets_a_limit_by_the_years_end_and_shows_where_it_should(fleet, kind):
    story = Wear(kind, 60)
    before, after = night(fleet[0], story, 59)[0], night(fleet[0], story, LAST)[0]
    assert before.verdict not in BAD, before.causes
    assert after.verdict in BAD
    check = WEARS[kind].check
    was, now = found(before, check), found(after, check)
    worse = {subject for subject, value in now.items() if value > 1.1 * was[subject] + 0.001}
    assert any(subject.startswith(f"slot{WORN_SLOT} ") for subject in worse) or not WEARS[kind].one_card
    assert len(worse) == (1 if WEARS[kind].one_card else len(now))


def test_nothing_is_lost_before_a_part_begins_to_wear_and_then_every_day_the_same():
    story = Wear("pump", 65)
    assert [story.left(day) for day in (0, 65)] == [1.0, 1.0]
    assert story.left(215) == pytest.approx(1 - WEARS["pump"].lost / 2)


@pytest.mark.parametrize("what", CHANGED)
def test_a_change_leaves_a_rig_that_is_accepted(fleet, what):
    for day in (99, 100):
        record, _ = night(fleet[0], Changed(what, 100), day)
        assert record.verdict not in BAD, record.causes


def test_what_people_change_is_what_facts_and_room_show(fleet):
    member = fleet[0]
    uuids = [card["uuid"] for card in member.identity["cards"]]
    other, exchanged = (Changed(what, 100).identity(member, 100)["cards"] for what in ("card", "exchanged"))
    assert [card["uuid"] for card in other][:-1] == uuids[:-1]
    assert other[-1]["uuid"] not in uuids
    assert [card["uuid"] for card in exchanged] == uuids[::-1]
    assert [card["slot"] for card in exchanged] == [1, 2]
    assert Changed("driver", 100).spec(member, 99).software.driver_branch != NEWER_DRIVER
    assert Changed("driver", 100).spec(member, 100).software.driver_branch == NEWER_DRIVER
    warmer = Changed("room", 100).conditions(member, 100).room_c
    assert warmer == pytest.approx(min(WARMEST_C, member.conditions(100).room_c + WARMER_C))
    assert Changed("supply", 100).identity(member, 99) == Healthy().identity(member, 99)


def test_links_of_a_rig_are_its_own_and_weaker_where_it_is_warm(fleet):
    member = fleet[0]
    links, bus = margins(member.identity, "1", ROOM_C)
    assert set(bus) == {1, 2}
    assert set(links) == {(slot, link) for slot in (1, 2) for link in range(4)}
    assert all(WEAKEST <= margin <= STRONGEST for margin in [*links.values(), *bus.values()])
    assert margins(member.identity, "1", ROOM_C) == (links, bus)
    assert margins(member.identity, "2", ROOM_C)[1] != bus
    assert margins(member.identity, "1", ROOM_C + 5)[1][1] == pytest.approx(bus[1] * (1 - 5 * PER_C))


def test_a_receivers_eye_damages_what_the_bus_may_damage_at_its_own_limit(fleet):
    assert wrong_bit_share(7.034) == pytest.approx(1e-12, rel=0.02)
    per_bus = replays_per_s(fleet[0].identity, 7.034)
    assert per_bus == pytest.approx(16e9 * 8 * 0.1 * 1e-12, rel=0.02)


def test_damage_comes_by_chance_and_while_a_card_works():
    damage = Damage(0.5, random.Random(1))  # noqa: S311 - chance, to be repeatable
    seen = [damage.within(10.0) for _ in range(2000)]
    assert sum(seen) / 2000 == pytest.approx(5.0, rel=0.05)
    assert sum((one - 5) ** 2 for one in seen) / 2000 == pytest.approx(5.0, rel=0.1)
    assert Damage(0.0, random.Random(1)).within(1e6) == 0  # noqa: S311


def test_what_settles_does_not_depend_on_the_steps_of_the_physics(fleet):
    fine, coarse = (night(fleet[1], Healthy(), 30, most_step_s=step)[0] for step in (MAX_STEP_S, 1.0))
    for check, share in (("thermals.resistance", 0.015), ("power.residual", 0.01), ("throughput.burn_gflops", 0.005)):
        for subject, value in found(fine, check).items():
            assert found(coarse, check)[subject] == pytest.approx(value, rel=share)
