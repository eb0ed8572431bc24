"""`rig_nightly` and `rig_circuits` as people write them, and every way to write them wrong."""

from __future__ import annotations

from datetime import time
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from pydantic import ValidationError

from rigctl.errors import UsageError
from rigctl.model.nightly import Hours, NightlySpec, Secret
from rigctl.nightly.settings import load_park
from rigctl.starter import Starter, StarterRig, write_starter
from tests.nightly.park import WINDOW

if TYPE_CHECKING:
    from pathlib import Path


def test_times_as_yaml_reads_them() -> None:
    hours = Hours.model_validate(yaml.safe_load("{begin: 22:30, end: '06:00'}"))
    assert (hours.begin, hours.end, hours.seconds) == (time(22, 30), time(6), 7.5 * 3600)
    assert Hours.model_validate({"begin": "01:00", "end": "05:00"}).seconds == 4 * 3600


@pytest.mark.parametrize(
    ("moment", "inside"),
    [
        (time(21, 59), False),
        (time(22), True),
        (time(23, 59), True),
        (time(0), True),
        (time(5, 59), True),
        (time(6), False),
    ],
)
def test_a_window_over_midnight(moment: time, inside: bool) -> None:
    assert Hours.model_validate(WINDOW).holds(moment) is inside
    assert Hours.model_validate({"begin": "06:00", "end": "22:00"}).holds(moment) is not inside


@pytest.mark.parametrize(
    "wrong",
    [
        {"window": {"begin": "22:00", "end": "22:00"}},
        {"window": {"begin": "22:00:30", "end": "06:00"}},
        {"window": {"begin": 1440, "end": "06:00"}},
        {"window": WINDOW, "deep_every_days": 1},
        {"window": WINDOW, "busy": "kill"},
        {"window": WINDOW, "notify": ["mailto://x"]},
        {"window": WINDOW, "notify": [{}]},
        {"window": WINDOW, "heartbeat": {"env": "A", "keyring": "b/c"}},
        {"window": WINDOW, "heartbeat": {"keyring": "b"}},
        {"window": WINDOW, "reminder_hours": 0},
        {"window": WINDOW, "digest_weekday": 7},
        {"window": WINDOW, "profil": "standard"},
        {},
    ],
)
def test_wrong_settings(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        NightlySpec.model_validate(wrong)


def test_a_secret_is_in_one_place() -> None:
    assert Secret(env="RIGCTL_NOTIFY").keyring is None
    assert Secret(keyring="rigctl/notify").env is None


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    """A starter inventory of two rigs with a night."""
    folder = tmp_path / "inventory"
    rigs = (StarterRig("rig1", "192.0.2.1"), StarterRig("rig2", "192.0.2.2"))
    write_starter(folder, Starter(rigs, "ops"))
    return folder


def put(inventory: Path, **variables: Any) -> None:
    path = inventory / "group_vars" / "all" / "zz_night.yml"
    path.write_text(yaml.safe_dump(variables), encoding="utf-8")


def test_a_park_is_read(inventory: Path) -> None:
    put(inventory, rig_nightly={"window": WINDOW}, rig_circuits={"b4": {"max_w": 2300}}, rig_circuit="b4")
    park = load_park(inventory, "all")
    assert park.spec.profile == "standard"
    assert park.budgets == {"b4": 2300}
    assert set(park.circuit.values()) == {"b4"}


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({}, "the inventory has no rig_nightly"),
        ({"rig_nightly": {"window": WINDOW, "profil": "x"}}, "rig_nightly.profil: unknown key"),
        ({"rig_nightly": {"window": WINDOW, "profile": "nope"}}, "has no profile 'nope'"),
        ({"rig_nightly": {"window": WINDOW, "deep_profile": "nope"}}, "has no profile 'nope'"),
        ({"rig_nightly": {"window": WINDOW}, "rig_circuits": {"b4": {"max_w": 2300}}}, "no rig is on circuit b4"),
        ({"rig_nightly": {"window": WINDOW}, "rig_circuits": {"b4": {"max_w": "2300 W"}}}, "rig_circuits.b4.max_w"),
        ({"rig_nightly": {"window": WINDOW}, "rig_circuits": {"b4": 2300}}, "rig_circuits.b4"),
    ],
)
def test_what_is_refused(inventory: Path, variables: dict[str, Any], said: str) -> None:
    put(inventory, **variables)
    with pytest.raises(UsageError) as refused:
        load_park(inventory, "all")
    assert said in refused.value.message
    assert refused.value.hint
