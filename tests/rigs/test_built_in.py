"""Disk, network card and processor of a rig that go wrong all at once: each is named, and the other rig passes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from rigctl.sim import faults

from .conftest import PROFILES
from .test_acceptance import assert_well

if TYPE_CHECKING:
    from .conftest import Fleet

pytestmark = [pytest.mark.rigs, pytest.mark.slow, pytest.mark.timeout(600, func_only=True)]

FAULTS = {
    "cpu_throttled": "throughput.cpu_clock",
    "disk_full": "disk.space",
    "nic_slow": "network.link",
    "nvme_worn": "disk.health",
}
SHORT = {**PROFILES["burn"], "cpu_burn_seconds": 4, "all_burn_seconds": 0, "workloads": ["disk"]}


@pytest.fixture
def short(fleet: Fleet) -> Fleet:
    """The rigs, with a profile that burns the CPU and measures the disk."""
    profiles = fleet.state.inventory / "group_vars" / "all" / "tests.yml"
    profiles.write_text(yaml.safe_dump({"rig_profiles": {**PROFILES, "built_in": SHORT}}), encoding="utf-8")
    return fleet


def test_each_fault_is_named_on_its_rig_and_the_other_passes(short: Fleet):
    for name in FAULTS:
        faults.apply(short.state.directory, "rig2", name, {})
    accepted = short.accept("built_in")
    assert accepted.causes("rig2") == set(FAULTS.values())
    assert_well(accepted, "rig1")
    assert accepted.exit_code == 1


def test_a_slow_disk_is_named_and_its_file_is_gone(short: Fleet):
    faults.apply(short.state.directory, "rig2", "slow_disk", {})
    accepted = short.accept("built_in")
    assert accepted.causes("rig2") == {"disk.speed"}
    assert set(accepted.of("rig2", "fail")) == {"disk.speed[read]", "disk.speed[write]"}
    assert_well(accepted, "rig1")
