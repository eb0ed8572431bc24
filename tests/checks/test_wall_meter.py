"""The wall meter's forms in the spec, and what is said where it was not read."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from rigctl.checks import power
from rigctl.model.spec import WallMeterSpec
from rigctl.model.verdict import Verdict
from tests.checks import healthy as h


def unread(meter):
    """The verdict where no sample carries a reading."""
    silent = h.readings(samples=h.with_samples(("all_burn",), wall_power_w=None, wall_error=None))
    (verdict,) = power.wall(h.spec(wall_meter=meter), silent, h.PROFILE)
    return verdict


@pytest.mark.parametrize(
    ("words", "key"),
    [
        ({"form": "tasmota", "ups": "rack@192.0.2.5"}, "ups"),
        ({"form": "nut", "url": "http://192.0.2.5/"}, "url"),
        ({"form": "ipmi_dcmi", "command": ["x"]}, "command"),
    ],
)
def test_a_key_of_another_form_is_refused(words, key):
    with pytest.raises(ValidationError, match=f"wall_meter.{key} is not for form {words['form']}"):
        WallMeterSpec(**words)


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ({"form": "shelly", "url": "http://192.0.2.7/status"}, "http://192.0.2.7/status"),
        ({"form": "nut", "ups": "rack@192.0.2.5"}, "rack@192.0.2.5"),
        ({"form": "command", "command": ["rack-meter", "7"]}, "rack-meter 7"),
        ({"form": "ipmi_dcmi"}, "ipmitool dcmi power reading"),
    ],
)
def test_the_fix_names_what_has_to_be_asked(words, asked):
    verdict = unread(WallMeterSpec(**words))
    assert verdict.verdict is Verdict.ERROR
    assert f"reach {asked}?" in verdict.fix
    assert unread(WallMeterSpec(**words, required=False)).verdict is Verdict.BLIND


@pytest.mark.parametrize(("form", "key"), [("shelly", "url"), ("nut", "ups"), ("command", "command")])
def test_a_rig_that_names_no_meter_of_its_own_is_told_the_key(form, key):
    assert f"rig_spec_host.wall_meter.{key}" in unread(WallMeterSpec(form=form)).fix


def walled(watts, spec=None):
    """The verdict on all_burn where the meter showed `watts(step, watts as it should be)`."""
    samples = tuple(s.model_copy(update={"wall_power_w": watts(s.step, s.wall_power_w)}) for s in h.samples())
    (verdict,) = power.wall(spec or h.spec(), h.readings(samples=samples), h.PROFILE)
    return verdict


STUCK = {
    "from the start": lambda _step, _watts: 1240.0,
    "since the rest": lambda _step, _watts: 1100.0,
    "in the GPU burn": lambda step, watts: 1238.0 if step in ("gpu_burn", "all_burn") else watts,
    "the wrong way round": lambda step, watts: 1400.0 if step == "idle" else 1238.0 if step == "all_burn" else watts,
}


@pytest.mark.parametrize("watts", STUCK.values(), ids=STUCK)
def test_a_meter_that_does_not_follow_is_stuck_however_right_its_figure_looks(watts):
    verdict = walled(watts)
    assert verdict.verdict is Verdict.ERROR
    assert "the meter is stuck" in verdict.reason
    assert verdict.fix


@pytest.mark.parametrize(
    ("times", "said"), [(0.1, "no supply gives more"), (0.8, "no supply gives more"), (10, "scale")]
)
def test_a_meter_that_shows_what_cannot_be_is_absurd(times, said):
    verdict = walled(lambda _step, watts: watts * times)
    assert verdict.verdict is Verdict.ERROR
    assert said in verdict.reason


def test_where_the_meter_is_not_required_the_rig_is_blind_there():
    meter = WallMeterSpec(form="ipmi_dcmi", required=False)
    assert walled(lambda _step, _watts: 1240.0, h.spec(wall_meter=meter)).verdict is Verdict.BLIND


@pytest.mark.parametrize("step_w", [1.0, 12.5, 30.0])
def test_a_meter_of_coarse_steps_is_believed(step_w):
    verdict = walled(lambda _step, watts: step_w * round(watts / step_w))
    assert verdict.verdict is Verdict.PASS
