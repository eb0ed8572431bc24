"""Faults of links and bus on a rig: each is the cause, on its rig alone, of whatever else follows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from rigctl.sim import faults

from .test_acceptance import assert_well

if TYPE_CHECKING:
    from .conftest import Fleet

pytestmark = [pytest.mark.rigs, pytest.mark.slow, pytest.mark.timeout(600, func_only=True)]


@pytest.mark.parametrize(
    ("fault", "causes"),
    [
        ("links_inactive", {"topology.nvlink"}),
        ("link_errors", {"topology.nvlink_errors"}),
        ("no_p2p", {"topology.p2p_access"}),
        ("pcie_narrow", {"topology.pcie_width"}),
        ("pcie_slow", {"topology.pcie_gen"}),
        ("pcie_replays", {"topology.pcie_replays"}),
        ("aer_root_port", {"topology.aer_port"}),
        ("slow_topo", {"measure.probes"}),
    ],
)
def test_a_fault_of_the_wiring_is_named_on_its_rig_and_the_other_passes(fleet: Fleet, fault, causes):
    faults.apply(fleet.state.directory, "rig2", fault, {})
    accepted = fleet.accept("burn")
    assert accepted.causes("rig2") == causes
    assert_well(accepted, "rig1")
    assert accepted.exit_code == 1


def test_a_card_that_falls_off_the_bus_under_load_is_named_and_its_hanging_driver_holds_nobody(fleet: Fleet):
    faults.apply(fleet.state.directory, "rig2", "falls_off_bus", {"when": "load"})
    accepted = fleet.accept("burn")
    assert accepted.causes("rig2") == {"kernel.xid"}
    assert_well(accepted, "rig1")
    assert accepted.exit_code == 1
    hung = [v for v in accepted.of("rig2", "fail").values() if v["check"] == "measure.probes"]
    assert len(hung) == 1
    assert hung[0]["caused_by"].startswith("kernel.xid[")
    probes = json.loads((accepted.run / "rig2" / "probes.json").read_text())["probes"]
    assert probes[-1]["exit_status"] is None
    assert sum(probe["seconds"] for probe in probes) < 60
