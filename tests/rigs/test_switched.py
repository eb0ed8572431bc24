"""Switched loads on a rig: a supply that goes off at a step, cards that do not wake, and a rig that somebody uses."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

import pytest
import yaml

from rigctl.sim import faults

from .conftest import PROFILES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .conftest import Fleet

pytestmark = [pytest.mark.rigs, pytest.mark.slow, pytest.mark.timeout(600)]
RIG = "rig1"
REST = {**PROFILES["rest"], "idle_seconds": 2}
OWN = {
    "step": REST | {"step_load_seconds": 25},
    "wake": REST | {"wakes": 3, "wake_rest_seconds": 4, "wake_load_seconds": 4},
}


@pytest.fixture
def switching(fleet: Fleet) -> Iterator[Fleet]:
    """The fleet, whose first rig has profiles that switch loads and nothing else."""
    own = fleet.state.inventory / "host_vars" / RIG / "profiles.yml"
    own.write_text(yaml.safe_dump({"rig_profiles": PROFILES | OWN}), encoding="utf-8")
    yield fleet
    own.unlink()


def test_a_supply_that_goes_off_at_a_step_is_the_cause_and_the_rig_is_back(switching: Fleet) -> None:
    faults.apply(switching.state.directory, RIG, "psu_trip", {})
    accepted = switching.accept("step", RIG)
    assert accepted.exit_code == 1
    found = accepted.of(RIG, "fail", "error")
    assert found["power.step_load[rig]"]["reason"].startswith("the rig rebooted while cards and CPU were switched")
    assert found["kernel.same_boot[rig]"]["caused_by"] == "power.step_load[rig]"
    assert "power.step_load" in accepted.causes(RIG)
    (said,) = [note for note in accepted.notes(RIG) if note.startswith("connection cut")]
    assert "then resumed" in said


def test_a_card_that_wakes_slowly_and_one_that_is_lost(switching: Fleet) -> None:
    faults.apply(switching.state.directory, RIG, "slow_at_wake", {"every": "2"})
    slow = switching.accept("wake", RIG)
    assert "power.idle_to_load" in slow.causes(RIG)
    faults.clear(switching.state.directory, RIG)
    faults.apply(switching.state.directory, RIG, "lost_at_wake", {"every": "2"})
    lost = switching.accept("wake", RIG)
    assert "kernel.xid" in lost.causes(RIG)
    (of_card,) = [v for v in lost.of(RIG, "fail").values() if v["check"] == "power.idle_to_load"]
    assert of_card["caused_by"].startswith("kernel.xid[slot2")


def test_without_leave_the_step_load_is_blind_and_nothing_is_switched(switching: Fleet) -> None:
    spec = switching.state.inventory / "host_vars" / RIG / "spec.yml"
    before = spec.read_text(encoding="utf-8")
    written = yaml.safe_load(before)
    written["rig_spec_host"]["allow_step_load"] = False
    spec.write_text(yaml.safe_dump(written), encoding="utf-8")
    try:
        accepted = switching.accept("step", RIG)
    finally:
        spec.write_text(before, encoding="utf-8")
    (blind,) = [v for v in accepted.of(RIG, "blind").values() if v["check"] == "power.step_load"]
    assert "allow_step_load: true" in blind["reason"]
    assert not (accepted.run / RIG / "step_load.log").exists()


def test_a_rig_that_another_run_uses_is_busy_and_not_counted(switching: Fleet) -> None:
    """The first run holds the rig; the second one leaves it out, and says whose it is."""
    first: list[int] = []
    runs = threading.Thread(target=lambda: first.append(switching.accept("wake", RIG).exit_code))
    runs.start()
    try:
        deadline = 60
        while not list(switching.runs.glob(f"*/{RIG}/telemetry.jsonl")) and deadline:
            runs.join(1)
            deadline -= 1
        done = switching.rigctl("accept", RIG, "-i", str(switching.state.inventory), "--profile", "wake", "--json")
    finally:
        runs.join()
    record = json.loads(done.stdout)
    assert done.returncode == 3
    assert record["rigs"] == []
    (busy,) = record["busy"]
    assert "is under way on this rig since" in busy["users"]
    assert first != [3]
