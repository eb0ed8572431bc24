"""Faults of the power, through the physics: the checks find each by measuring, and the right one is the cause."""

from __future__ import annotations

import pytest

from rigctl.checks import brake, energy, power, thermals
from rigctl.checks.causes import with_causes
from rigctl.model.spec import ProfileSpec
from rigctl.model.verdict import Verdict
from rigctl.sim.burns import Burn
from rigctl.sim.machine.hardware.rigsim.identity import load_template, make_identity
from tests.checks import healthy as h

PROFILE = ProfileSpec(
    idle_seconds=30, cpu_burn_seconds=0, gpu_burn_seconds=120, all_burn_seconds=0, train=False, sample_hz=1
)
LIMITS = {"max_wall_residual_share": 0.25, "wall_power_gpu_burn_w": 1105.0}


def causes(*faults):
    identity = make_identity(load_template("dual_3090ti"), "rig1", seed=7)
    readings = Burn(identity, faults, limit_w=480.0, burn_s=120).run()
    spec = h.spec(limits=LIMITS)
    found = [
        *brake.brake(spec, readings),
        *thermals.throttle(spec, readings, PROFILE),
        *power.limit(spec, readings),
        *power.idle(spec, readings, None),
        *power.share_of_limit(spec, readings),
        *power.wall(spec, readings, PROFILE),
        *energy.residual(spec, readings, PROFILE),
    ]
    bad = [v for v in with_causes(found, readings) if v.verdict in (Verdict.FAIL, Verdict.ERROR)]
    return {(v.check, v.verdict) for v in bad if v.caused_by is None}


def test_a_healthy_rig_has_none():
    assert causes() == set()


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        (("power_limit_low", {"slot": "2"}), ("power.limit", Verdict.FAIL)),
        (("power_brake", {"slot": "1"}), ("power.brake", Verdict.FAIL)),
        (("idle_power_high", {}), ("power.idle", Verdict.FAIL)),
        (("wall_meter_stuck", {}), ("power.wall", Verdict.ERROR)),
        (("wall_meter_absurd", {}), ("power.wall", Verdict.ERROR)),
        (("wall_meter_absurd", {"pct": "2000"}), ("power.wall", Verdict.ERROR)),
    ],
)
def test_each_fault_is_found_as_what_it_is(fault, cause):
    assert causes(fault) == {cause}
