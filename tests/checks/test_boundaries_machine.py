"""Comparisons of what the machine around the cards tells, at their edge."""

from __future__ import annotations

import json

import pytest

from rigctl.checks import clock, ecc, fabric, probes
from rigctl.checks.say import Say
from rigctl.model.reading import FabricManagerFacts
from rigctl.model.verdict import Verdict

from . import healthy as h
from .test_ecc import judged as corrected


def jumped(*steps):
    """The rig's clock set by so many seconds before these samples."""
    late, samples = 0.0, []
    for sample in h.samples():
        late += dict(steps).get(sample.seq, 0.0)
        samples.append(sample.model_copy(update={"t_wall_s": sample.t_wall_s + late}))
    return h.readings(samples=tuple(samples))


@pytest.mark.parametrize(
    ("steps", "seq"), [(((9, 4.0), (30, -4.0)), 9), (((9, 4.0), (30, 5.0)), 30), (((9, -4.0), (30, 3.0)), 9)]
)
def test_the_first_of_the_largest_jumps_is_named(steps, seq):
    found = clock._largest_jump(jumped(*steps))
    assert found is not None
    assert (found.step, found.seconds) == (h.samples()[seq].step, dict(steps)[seq])


def test_a_limit_of_our_own_is_said_to_be_ours():
    told = {"clock.json": json.dumps({"before_s": 1000.0, "rig_s": 1000.0, "after_s": 1000.0})}
    readings = h.readings(logs=h.logs() | told)
    declared = h.spec(sources={"limits.max_clock_offset_s": "our site's rule"})
    assert clock.OURS in clock.offset(h.spec(), readings)[0].source
    assert clock.OURS not in clock.offset(declared, readings)[0].source


def test_without_a_declared_limit_the_agents_own_bound_is_named():
    own = h.spec(limits={"max_probe_seconds": None})
    assert {v.source for v in probes.answers(own, h.readings())} == {"the agent's own bound"}
    assert "the agent's own bound" not in {v.source for v in probes.answers(h.spec(), h.readings())}


def test_a_limit_of_nvidias_own_for_corrected_errors_is_said_to_be_theirs():
    declared = h.spec(sources={"limits.max_ecc_corrected": "our site's rule"})
    assert ecc.GCM in corrected().source
    assert ecc.GCM not in corrected(spec=declared).source


@pytest.mark.parametrize(
    ("version", "driver", "verdict", "words"),
    [
        (None, "550.54.15", Verdict.ERROR, "its version is not known"),
        ("550.54.15", None, Verdict.ERROR, "no driver is loaded"),
        ("550.54.14", "550.54.15", Verdict.FAIL, "550.54.14, the loaded driver of 550.54.15"),
        ("550.54.15", "550.54.15", Verdict.PASS, "as the driver"),
    ],
)
def test_the_fabric_manager_is_of_the_drivers_version(version, driver, verdict, words):
    told = FabricManagerFacts(installed=True, state="active", version=version)
    found = fabric._running(Say("topology.fabric_manager"), "rig1", told, driver)
    assert (found.verdict, words in found.reason) == (verdict, True)
