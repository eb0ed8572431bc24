"""Faults of the cooling on a rig: each is the cause, on its rig alone, of whatever else is too warm."""

from __future__ import annotations

import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from rigctl.sim import faults

from .test_acceptance import assert_well

if TYPE_CHECKING:
    from .conftest import Fleet

pytestmark = [pytest.mark.rigs, pytest.mark.slow, pytest.mark.timeout(600, func_only=True)]


RESTED_C = 26
"""The cards' room and two degrees: less air takes longer to cool what an earlier test has heated."""
COOLS_S = 300


@pytest.fixture
def cool(fleet: Fleet) -> Fleet:
    """The rigs, as cool as a night's rest leaves them: °C/W is measured from there."""
    asked = "nvidia-smi --query-gpu=temperature.gpu --format=csv,noheader"
    deadline = time.monotonic() + COOLS_S
    for rig in fleet.state.rigs:
        words = ["ssh", "-F", str(fleet.state.ssh_config), rig.name, asked]
        temps = [RESTED_C + 1]
        while max(temps) > RESTED_C:
            assert time.monotonic() < deadline, f"{rig.name} does not cool down: {temps}"
            done = subprocess.run(words, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL)
            temps = [int(line) for line in done.stdout.split()]
    return fleet


@pytest.mark.parametrize(
    ("fault", "causes", "exit_code"),
    [
        ("pump_weak", {"thermals.resistance"}, 1),
        ("plate_badly_seated", {"thermals.resistance"}, 1),
        ("air_blocked", {"thermals.resistance"}, 1),
        ("fan_stuck", {"thermals.resistance"}, 1),
        ("room_warm", {"thermals.rest_temp"}, 1),
        ("tachometer_lies", {"thermals.fans", "thermals.resistance"}, 1),
        ("sensors_invalid", {"thermals.guard"}, 3),
    ],
)
def test_a_fault_of_the_cooling_is_named_on_its_rig_and_the_other_passes(cool: Fleet, fault, causes, exit_code):
    faults.apply(cool.state.directory, "rig2", fault, {})
    accepted = cool.accept("settle")
    assert accepted.causes("rig2") == causes
    assert_well(accepted, "rig1")
    assert accepted.exit_code == exit_code


def test_a_fan_that_stops_under_load_ends_the_burn(fleet: Fleet):
    faults.apply(fleet.state.directory, "rig2", "fan_stuck", {"when": "load"})
    accepted = fleet.accept("burn")
    assert accepted.exit_code == 1
    failed = {v["check"] for v in accepted.of("rig2", "fail").values()}
    assert failed & {"thermals.fans", "thermals.guard"}
