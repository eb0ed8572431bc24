"""The fabric manager of rigs with NVSwitches."""

from __future__ import annotations

import pytest

from rigctl.checks import fabric
from rigctl.checks.causes import with_causes
from rigctl.checks.say import Say
from rigctl.model.reading import FabricManagerFacts
from rigctl.model.verdict import Verdict

from . import healthy as h

SWITCHED = h.spec(parts={"links": (), "nvswitch_links": 18})
WELL = {"installed": True, "state": "active (running)", "version": "515.105.01"}


def judged(spec=SWITCHED, loaded="515.105.01", **changes):
    facts = h.facts(fabric_manager=FabricManagerFacts(**WELL | changes))
    facts = facts.model_copy(update={"driver": facts.driver.model_copy(update={"loaded": loaded})})
    (found,) = fabric.fabric_manager(spec, h.readings(facts=facts))
    return found


@pytest.mark.parametrize(
    ("changes", "verdict", "found"),
    [
        ({}, Verdict.PASS, "515.105.01"),
        ({"installed": False}, Verdict.FAIL, "not installed"),
        ({"state": "inactive (dead)"}, Verdict.FAIL, "inactive (dead)"),
        ({"state": "failed (failed)"}, Verdict.FAIL, "failed (failed)"),
        ({"state": "activating (start)"}, Verdict.FAIL, "activating (start)"),
        ({"state": None}, Verdict.FAIL, "unknown"),
        ({"version": "515.65.01"}, Verdict.FAIL, "515.65.01"),
        ({"version": None, "reason": "nv-fabricmanager: not found"}, Verdict.ERROR, None),
        ({"loaded": None}, Verdict.ERROR, None),
        ({"installed": None, "reason": "systemctl: timed out"}, Verdict.ERROR, None),
    ],
)
def test_it_runs_and_is_of_the_drivers_version(changes, verdict, found):
    said = judged(**changes)
    assert (said.verdict, said.found) == (verdict, found)
    assert bool(said.fix) == (verdict is not Verdict.PASS)


def test_a_rig_without_switches_needs_none_and_one_that_did_not_say_is_an_error():
    assert judged(h.spec(), installed=False).verdict is Verdict.SKIP
    (found,) = fabric.fabric_manager(SWITCHED, h.readings())
    assert found.verdict is Verdict.ERROR


def test_links_that_are_down_follow_from_a_manager_that_does_not_run():
    readings = h.readings(facts=h.facts(fabric_manager=FabricManagerFacts(installed=False)))
    links = Say("topology.nvlink", h.SLOT1, "NV18").failed("0 active NVLinks to the switches", "NV0", "x")
    manager, followed = with_causes([*fabric.fabric_manager(SWITCHED, readings), links], readings)
    assert followed.caused_by == manager.key
