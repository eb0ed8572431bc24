"""Coolant and room temperatures from hwmon, by their labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rigctl.agent.surroundings import Surroundings

from .test_agent_sensors import hwmon

if TYPE_CHECKING:
    from pathlib import Path


def test_water_and_room_are_told_by_their_labels(tmp_path: Path) -> None:
    hwmon(tmp_path, 0, "nct6798", {"temp1": ("SYSTIN", "40000"), "temp2": (None, "30000")})
    hwmon(tmp_path, 1, "d5next", {"temp1": ("Coolant temp", "34250\n")})
    hwmon(tmp_path, 2, "dell_smm", {"temp1": ("CPU", "70000"), "temp2": ("Ambient", "24000")})
    found = Surroundings(tmp_path).read()
    assert found == {"coolant_temps_c": {"d5next Coolant temp": 34.25}, "room_temps_c": {"dell_smm Ambient": 24}}


@pytest.mark.parametrize("text", ["", "N/A", "-128000", "127000", "2147483647", "34.5"])
def test_what_cannot_be_believed_is_left_out(tmp_path: Path, text: str) -> None:
    hwmon(tmp_path, 0, "kraken3", {"temp1": ("Coolant temp", text)})
    assert Surroundings(tmp_path).read()["coolant_temps_c"] == {}


def test_a_sensor_that_goes_away_is_left_out(tmp_path: Path) -> None:
    hwmon(tmp_path, 0, "kraken3", {"temp1": ("Coolant temp", "31000")})
    surroundings = Surroundings(tmp_path)
    (tmp_path / "class/hwmon/hwmon0/temp1_input").unlink()
    assert surroundings.read()["coolant_temps_c"] == {}


def test_a_rig_without_such_sensors_shows_none(tmp_path: Path) -> None:
    assert Surroundings(tmp_path).read() == {"coolant_temps_c": {}, "room_temps_c": {}}
