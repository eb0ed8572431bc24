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
