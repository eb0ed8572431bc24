"""What a run may change is noted before and put back afterwards, whatever of it can be; burns ramp up between."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pynvml
import pytest

from rigctl.agent import commands, settings
from rigctl.agent.errors import NvmlUnavailable
from rigctl.agent.nvml import Card
from rigctl.agent.places import Places
from rigctl.agent.ramp import Ramp
from rigctl.agent.settings import Before, PutBack, Setting, put_back, read_settings

if TYPE_CHECKING:
    from pathlib import Path


class Driver:
    """NVML by hand: two cards, each with its settings; what is set to None is not supported."""

    def __init__(self) -> None:
        self.values = {
            uuid: {"persistence": 1, "limit": 450_000, "clocks": None, "fans": [0, 0]} for uuid in ("GPU-a", "GPU-b")
        }
        self.refuses: set[str] = set()
        self.written: list[tuple[str, str, Any]] = []
        self.cards = tuple(Card(uuid, i, i + 1, uuid, "", 94.0) for i, uuid in enumerate(self.values))

    def get(self, handle: str, name: str) -> Any:
        value = self.values[handle][name]
        if value is None:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return value

    def set(self, handle: str, name: str, value: Any) -> None:
        if name in self.refuses:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NO_PERMISSION)
        self.values[handle][name] = value
        self.written.append((handle, name, value))

    def set_fan(self, handle: str, fan: int, policy: int) -> None:
        self.set(handle, "fans", [policy if i == fan else old for i, old in enumerate(self.get(handle, "fans"))])

    def close(self) -> None:
        return


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    made = Driver()
    calls = {
        "nvmlDeviceGetNumFans": lambda h: len(made.get(h, "fans")),
        "nvmlDeviceGetFanControlPolicy_v2": lambda h, fan: made.get(h, "fans")[fan],
        "nvmlDeviceSetDefaultFanSpeed_v2": lambda h, fan: made.set_fan(h, fan, 0),
        "nvmlDeviceSetFanControlPolicy": made.set_fan,
        "nvmlDeviceGetApplicationsClock": lambda h, which: made.get(h, "clocks")[0 if which == 2 else 1],
        "nvmlDeviceSetApplicationsClocks": lambda h, memory, core: made.set(h, "clocks", [memory, core]),
        "nvmlDeviceGetPowerManagementLimitConstraints": lambda h: [100_000, made.get(h, "limit") and 480_000],
        "nvmlErrorString": lambda code: {4: "Insufficient Permissions", 3: "Not Supported"}[code],
    }
    for name, call in calls.items():
        monkeypatch.setattr(pynvml, name, call)
    own = {
        "persistence mode": by_hand(made, settings.SETTINGS[0], "persistence"),
        "power limit": by_hand(made, settings.POWER_LIMIT, "limit"),
    }
    monkeypatch.setattr(settings, "SETTINGS", tuple(own.get(one.name, one) for one in settings.SETTINGS))
    monkeypatch.setattr("rigctl.agent.ramp.POWER_LIMIT", own["power limit"])
    monkeypatch.setattr(settings, "Nvml", lambda: made)
    return made


def by_hand(driver: Driver, setting: Setting, key: str) -> Setting:
    """The setting, with the driver put in by hand."""
    return replace(
        setting, read=lambda handle: driver.get(handle, key), write=lambda handle, value: driver.set(handle, key, value)
    )


def test_what_a_card_does_not_expose_is_not_noted(driver: Driver) -> None:
    driver.values["GPU-a"]["clocks"] = [9501, 1410]
    found = read_settings(driver.cards)
    assert found["GPU-a"] == {
        "persistence mode": 1,
        "power limit": 450_000,
        "application clocks": [9501, 1410],
        "fan control": [0, 0],
    }
    assert "application clocks" not in found["GPU-b"]


def test_only_what_differs_is_put_back_and_said(driver: Driver) -> None:
    driver.values["GPU-a"]["clocks"] = [9501, 1410]
    before = Before(read_settings(driver.cards))
    driver.values["GPU-a"] |= {"limit": 100_000, "clocks": [9501, 300], "fans": [1, 0]}
    done = put_back(before)
    assert done == PutBack(
        [
            "slot1: power limit 450 W (was 100 W)",
            "slot1: application clocks 9501 and 1410 MHz (was 9501 and 300 MHz)",
            "slot1: fan control policies [0, 0] (was policies [1, 0])",
        ],
        [],
    )
    assert {handle for handle, _, _ in driver.written} == {"GPU-a"}
    assert put_back(before) == PutBack()


def test_what_cannot_be_put_back_is_said_and_the_rest_is(driver: Driver) -> None:
    before = Before(read_settings(driver.cards))
    driver.values["GPU-b"] |= {"limit": 100_000, "persistence": 0}
    driver.refuses = {"limit"}
    done = put_back(before)
    assert done.restored == ["slot2: persistence mode 1 (was 0)"]
    assert done.failed == ["slot2: power limit 450 W: Insufficient Permissions"]


def test_a_card_that_takes_a_setting_and_keeps_another_one_is_no_success(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Before(read_settings(driver.cards))
    driver.values["GPU-a"]["limit"] = 100_000
    monkeypatch.setattr(driver, "set", lambda *_args: None)
    assert put_back(before).failed == ["slot1: power limit 450 W: the card stays at 100 W"]


def test_a_card_that_is_gone_and_a_driver_that_is_gone_are_said(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Before(read_settings(driver.cards))
    driver.cards = driver.cards[:1]
    assert put_back(before).failed == ["card …PU-b: it is not there any more"]

    def none() -> None:
        raise NvmlUnavailable("Driver/library version mismatch")

    monkeypatch.setattr(settings, "Nvml", none)
    assert put_back(before).failed == ["settings of the cards: Driver/library version mismatch"]


def test_services_start_again_also_without_a_driver(
    driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "systemctl"
    program.write_text(
        '#!/bin/sh\n[ "$3" = gone.service ] && { echo "Unit gone.service not found." >&2; exit 5; }\nexit 0\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    done = put_back(Before({}, ["miner.service", "gone.service"]))
    assert done.restored == ["service miner.service started again"]
    assert done.failed == ["service gone.service: Unit gone.service not found."]


def test_restore_tells_what_it_did_and_finds_nothing_the_second_time(driver: Driver, tmp_path: Path) -> None:
    places = Places(tmp_path / "spool", tmp_path / "run")
    places.spool("r1").mkdir(parents=True)
    Before(read_settings(driver.cards)).keep(places.before("r1"))
    driver.values["GPU-a"]["limit"] = 100_000
    told = commands.restore("r1", places)
    assert told == {"restored": ["slot1: power limit 450 W (was 100 W)"], "failed": []}
    assert json.loads((places.spool("r1") / "restored.json").read_text()) == told
    assert commands.restore("r1", places) == {"restored": [], "failed": []}


def test_a_driver_that_hangs_does_not_hold_the_unit_and_is_said(
    driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = Places(tmp_path / "spool", tmp_path / "run")
    places.spool("r1").mkdir(parents=True)
    Before(read_settings(driver.cards)).keep(places.before("r1"))
    monkeypatch.setattr(commands, "RESTORE_S", 0.2)
    monkeypatch.setattr(settings, "put_back", lambda _before: time.sleep(3))
    told = commands.restore("r1", places)
    assert told["failed"] == ["the driver did not answer within 0.2 s"]
    assert places.before("r1").exists(), "what is not put back stays on record"


def test_a_ramp_begins_at_the_lowest_limit_and_ends_at_the_cards_own(driver: Driver) -> None:
    told: list[tuple[str, dict[str, Any]]] = []
    driver.values["GPU-b"]["limit"] = 300_000
    ramp = Ramp(
        {"GPU-a": 450_000, "GPU-b": 300_000}, 0.2, lambda event, **detail: told.append((event, detail)), lambda: driver
    )  # type: ignore[arg-type,return-value]
    ramp.start()
    ramp.join(5)
    own = [value for handle, name, value in driver.written if (handle, name) == ("GPU-a", "limit")]
    assert own == [100_000, 187_500, 275_000, 362_500, 450_000]
    assert [value for handle, _, value in driver.written if handle == "GPU-b"][-1] == 300_000
    assert told == [("ramp_finished", {"cards": 2})]


def test_a_ramp_that_is_hurried_puts_the_limits_back_at_once(driver: Driver) -> None:
    ramp = Ramp({"GPU-a": 450_000}, 60, lambda _event, **_detail: None, lambda: driver)  # type: ignore[arg-type,return-value]
    ramp.start()
    while driver.values["GPU-a"]["limit"] != 100_000:
        time.sleep(0.01)
    assert ramp.end(5)
    assert driver.values["GPU-a"]["limit"] == 450_000


def test_a_card_that_refuses_is_burnt_without_a_ramp_and_that_is_said(driver: Driver) -> None:
    told: list[tuple[str, dict[str, Any]]] = []
    driver.refuses = {"limit"}
    ramp = Ramp({"GPU-a": 450_000}, 5, lambda event, **detail: told.append((event, detail)), lambda: driver)  # type: ignore[arg-type,return-value]
    ramp.start()
    ramp.join(5)
    assert not ramp.is_alive()
    assert ("ramp_skipped", {"because": "Insufficient Permissions"}) in told
    assert driver.values["GPU-a"]["limit"] == 450_000
