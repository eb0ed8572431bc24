"""Faults of the cooling, through the physics: the checks find each by measuring, and the right one is the cause."""

from __future__ import annotations

import pytest

from rigctl.checks import cooling, fans, thermals
from rigctl.checks.causes import with_causes
from rigctl.checks.load import steps_of
from rigctl.model.baseline import Baseline, Figure
from rigctl.model.spec import ProfileSpec
from rigctl.model.verdict import Verdict
from rigctl.sim.burns import Burn
from rigctl.sim.machine.hardware.rigsim.identity import load_template, make_identity
from tests.checks import healthy as h

PROFILE = ProfileSpec(
    idle_seconds=30, cpu_burn_seconds=0, gpu_burn_seconds=600, all_burn_seconds=0, train=False, sample_hz=1
)
LIMITS = {"max_gpu_temp_spread_c": 8, "max_gpu_c_per_w": 0.10, "max_rest_temp_c": 35}


def burnt(*faults, rig_class="dual_3090ti", **how):
    identity = make_identity(load_template(rig_class), "rig1", seed=7)
    return Burn(identity, tuple((name, dict(parameters)) for name, parameters in faults), **how).run()


def verdicts(readings, baseline=None, count=2, **limits):
    spec = h.spec(limits=LIMITS | limits, parts={"gpu_count": count})
    found = [
        *fans.fans(spec, readings, baseline),
        *cooling.resistance(spec, readings, baseline),
        *cooling.rest_temp(spec, readings, PROFILE),
        *thermals.settled_gpu_temp(spec, readings),
        *cooling.card_spread(spec, readings),
        *thermals.steady_state(spec, readings, PROFILE),
        *thermals.memory_temp(spec, readings),
        *thermals.throttle(spec, readings, PROFILE),
    ]
    return with_causes(found, readings)


def causes(found):
    return {v.check for v in found if v.verdict in (Verdict.FAIL, Verdict.ERROR) and v.caused_by is None}


@pytest.fixture(scope="module")
def healthy():
    return burnt(limit_w=480.0)


def baseline_of(readings, count=2):
    uuids = {gpu.subject: gpu.uuid for gpu in readings.facts.gpus}
    found = [v for v in verdicts(readings, None, count) if isinstance(v.found, int | float)]
    figures = tuple(
        Figure(check=v.check, subject=uuids.get(v.subject, v.subject), found=float(v.found), unit=v.unit) for v in found
    )
    return Baseline(
        run_id="r1", profile="standard", ended_at="2026-11-01T02:00:00Z", facts=readings.facts, figures=figures, runs=1
    )


def test_a_healthy_rig_settles_as_the_reference_rig_did(healthy):
    found = verdicts(healthy)
    assert {v.verdict for v in found} == {Verdict.PASS, Verdict.BLIND}
    settled = [v.found for v in found if v.check == "thermals.settled_gpu_temp"]
    assert settled == [pytest.approx(58, abs=0.6), pytest.approx(55, abs=0.6)]
    assert steps_of(PROFILE) == {"idle", "gpu_burn"}


@pytest.mark.parametrize("room_c", [12.0, 18.0, 30.0])
def test_no_season_changes_the_resistance(healthy, room_c):
    found = [
        [v.found for v in verdicts(readings) if v.check == "thermals.resistance"]
        for readings in (healthy, burnt(limit_w=480.0, room_c=room_c))
    ]
    assert found[0] == pytest.approx(found[1], rel=0.02)


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        (("pump_weak", {}), "thermals.resistance"),
        (("plate_badly_seated", {}), "thermals.resistance"),
        (("air_blocked", {}), "thermals.resistance"),
        (("fan_stuck", {}), "thermals.resistance"),
        (("room_warm", {}), "thermals.rest_temp"),
    ],
)
def test_each_fault_is_found_as_what_it_is(fault, cause):
    assert causes(verdicts(burnt(fault, limit_w=480.0))) == {cause}


def test_a_tachometer_that_lies_does_not_hide_the_heat():
    assert causes(verdicts(burnt(("tachometer_lies", {}), limit_w=480.0))) == {"thermals.fans", "thermals.resistance"}


def test_a_bad_plate_is_told_of_its_card_only():
    found = verdicts(burnt(("plate_badly_seated", {"slot": "1"}), limit_w=480.0))
    assert {v.subject[:5] for v in found if v.verdict is Verdict.FAIL} == {"slot1"}


def test_a_zero_of_the_sensor_is_an_error_and_no_pass():
    found = verdicts(burnt(("sensors_invalid", {"slot": "2"}), limit_w=480.0))
    of_it = [
        v
        for v in found
        if v.subject.startswith("slot2") and v.check in ("thermals.settled_gpu_temp", "thermals.resistance")
    ]
    assert {v.verdict for v in of_it} == {Verdict.ERROR}


def test_a_cold_winter_hides_no_weak_pump(healthy):
    """It settles below the limit of the settled temperature, and fails all the same."""
    winter = burnt(("pump_weak", {"pct": "45"}), limit_w=480.0, room_c=10.0)
    found = verdicts(winter, baseline_of(healthy))
    assert {v.verdict for v in found if v.check == "thermals.settled_gpu_temp"} == {Verdict.PASS}
    assert causes(found) == {"thermals.resistance"}


def test_an_air_cooled_card_whose_fans_stand_is_found_and_its_twins_are_well():
    well = burnt(rig_class="quad_3090_blower")
    stuck = burnt(("fan_stuck", {"slot": "2"}), rig_class="quad_3090_blower")
    limits = {"max_settled_gpu_temp_c": None, "max_gpu_c_per_w": 0.21}
    assert causes(verdicts(well, None, 4, **limits)) == set()
    found = verdicts(stuck, None, 4, **limits)
    assert {v.subject[:5] for v in found if v.verdict is Verdict.FAIL} == {"slot2"}
    assert "thermals.throttle" in {v.check for v in found if v.verdict is Verdict.FAIL}


def test_cards_of_a_data_centre_show_their_memory():
    readings = burnt(rig_class="octo_a100")
    found = [
        v for v in verdicts(readings, None, 8, max_settled_gpu_memory_temp_c=95) if v.check == "thermals.memory_temp"
    ]
    assert {v.verdict for v in found} == {Verdict.PASS}
    hot = burnt(("air_blocked", {}), rig_class="octo_a100")
    worse = [v for v in verdicts(hot, None, 8, max_settled_gpu_memory_temp_c=80) if v.check == "thermals.memory_temp"]
    assert Verdict.FAIL in {v.verdict for v in worse}


def test_a_bad_plate_shows_in_the_hot_spot_of_cards_that_tell_it():
    """The sensor of the core is well below its slowdown, and the hottest spot is not."""
    seated = burnt(rig_class="octo_h100")
    badly = burnt(("plate_badly_seated", {"slot": "1", "pct": "60"}), rig_class="octo_h100")
    spec = h.spec(parts={"gpu_count": 8})
    found = [{v.subject[:5]: v.verdict for v in thermals.hotspot_temp(spec, one)} for one in (seated, badly)]
    assert set(found[0].values()) == {Verdict.PASS}
    assert {slot for slot, verdict in found[1].items() if verdict is Verdict.FAIL} == {"slot1"}
