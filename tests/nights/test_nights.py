"""Nights in process: healthy ones pass with the history that they make, and each fault is found as what it is."""

from __future__ import annotations

import pytest

from rigctl.checks.catalogue import CATALOGUE
from rigctl.model.verdict import Verdict
from rigctl.sim.machine.hardware.rigsim.faults import HARDWARE_FAULTS, FaultInfo, new_fault
from rigctl.sim.nights import judging, park
from rigctl.sim.nights.fleet import COLDEST_C, DAYS, WARMEST_C, night_profile


@pytest.mark.parametrize("rig", range(3))
def test_no_healthy_night_is_called_bad(fleet, rig):
    for outcome in park.healthy_year(fleet[rig], 3):
        assert [f"{v.key}: {v.reason}" for v in outcome.bad] == []


def test_nights_are_compared_with_those_before(fleet):
    first, *later = park.healthy_year(fleet[0], 3)
    seen = [{v.verdict for v in one.record.verdicts if v.check == "identity.cards"} for one in (first, *later)]
    assert seen == [{Verdict.SKIP}, {Verdict.PASS}, {Verdict.PASS}]


@pytest.mark.parametrize("name", HARDWARE_FAULTS)
def test_each_fault_is_found_and_its_cause_comes_first(fleet, others, name):
    outcome = park.fault_night(others.get(park.CLASS_OF.get(name), fleet[0]), name, 0)
    causes = [f"{v.key}: {v.reason}" for v in outcome.record.causes]
    assert outcome.found, causes
    assert outcome.right, causes


def test_seasons_and_rooms_differ_and_stay_in_the_range_of_rooms(fleet):
    rooms = {(one.number, day): one.conditions(day).room_c for one in fleet for day in range(0, DAYS, 30)}
    assert COLDEST_C <= min(rooms.values()) < 20
    assert 24 < max(rooms.values()) <= WARMEST_C
    assert len(set(rooms.values())) > 20


def test_a_night_can_be_repeated(fleet):
    profile = night_profile(fleet[0].rig.profiles["smoke"])
    one, other = (park.one_night(fleet[0], 7, ("smoke", profile), None)[0] for _ in range(2))
    assert one == other


def test_the_whole_suite_judges_a_night():
    assert {one.check for one in judging.suite()} == {one.id for one in CATALOGUE.values() if not one.afterwards}


def test_a_night_that_was_not_accepted_changes_no_history(fleet):
    profile = night_profile(fleet[0].rig.profiles["smoke"])
    fault = new_fault("power_limit_low", {}, "now", "another boot")
    outcome, readings = park.one_night(fleet[0], 3, ("smoke", profile), None, fault)
    assert park.after(None, outcome, readings) is None


def test_a_fault_that_no_profile_looks_for_is_said(fleet):
    with pytest.raises(LookupError, match="no profile"):
        park.profiles_of(fleet[0], FaultInfo("none", "", ("spec.waivers",), 1))
