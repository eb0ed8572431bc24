"""Faults of links and bus: what they change, and that the agent's own code reads it off the simulated rig."""

from __future__ import annotations

import time

import pytest

from rigctl.agent import bus
from rigctl.sim.machine.hardware.rigsim import faultctl

from .conftest import NEEDS_COMPILER, put_load, state_of


def tick(daemon, times=1):
    for _ in range(times):
        daemon.tick(0.1)
    return state_of(daemon)


def apply(daemon, name, **parameters):
    faultctl.apply(daemon.paths, name, parameters, "now")
    return tick(daemon, 2)


def load_both(daemon):
    put_load(daemon.paths, "gpu 0 compute 1 0", "gpu 1 compute 1 0")


def card(daemon, index=1):
    return bus.errors_of(state_of(daemon)[f"gpu.{index}.pci_bus_id"], daemon.paths.sys)


def test_all_links_are_down(daemon):
    state = apply(daemon, "links_inactive")
    assert {state[f"gpu.{i}.link.{link}.active"] for i in range(2) for link in range(4)} == {"0"}


def test_link_errors_rise_under_load_only(daemon):
    state = apply(daemon, "link_errors", slot="2", link="1", per_s="100")
    assert "gpu.1.link.1.errors" not in state
    load_both(daemon)
    state = tick(daemon, 30)
    assert 250 <= int(state["gpu.1.link.1.errors"]) <= 300
    assert "gpu.0.link.1.errors" not in state


@pytest.mark.parametrize(
    ("fault", "key", "rest", "loaded"), [("pcie_narrow", "width", "8", "4"), ("pcie_slow", "gen", "1", "3")]
)
def test_lanes_and_generation_fall_under_load(daemon, fault, key, rest, loaded):
    assert apply(daemon, fault)[f"gpu.1.pcie_{key}"] == rest
    load_both(daemon)
    state = tick(daemon, 5)
    assert state[f"gpu.1.pcie_{key}"] == loaded
    assert state[f"gpu.0.pcie_{key}"] == {"width": "8", "gen": "4"}[key]


def test_replays_rise_under_load(daemon):
    apply(daemon, "pcie_replays", per_s="50")
    load_both(daemon)
    assert int(tick(daemon, 20)["gpu.1.pcie_replay"]) > 80


def test_only_the_root_port_counts_what_a_riser_damages(daemon):
    apply(daemon, "aer_root_port", slot="2", per_s="100")
    assert card(daemon)["ports"][0]["counts"]["correctable"]["BadTLP"] == 0
    load_both(daemon)
    tick(daemon, 20)
    found = card(daemon)
    assert found["ports"][0]["address"] == "0000:00:02.1"
    assert found["ports"][0]["counts"]["correctable"]["BadTLP"] > 150
    assert set(found["card"]["counts"]["correctable"].values()) == {0}
    assert card(daemon, 0)["ports"][0]["counts"]["correctable"]["BadTLP"] == 0


def test_a_card_is_below_a_port_of_its_own_and_a_missing_one_is_not_listed(daemon):
    bus_id = state_of(daemon)["gpu.1.pci_bus_id"]
    place = bus.place(bus_id, daemon.paths.sys)
    assert (place["listed"], place["root_port"], place["numa_node"]) == (True, "0000:00:02.1", None)
    assert bus.numa_nodes(daemon.paths.sys) == [0]
    apply(daemon, "card_missing", slot="2")
    assert not bus.place(bus_id, daemon.paths.sys)["listed"]


def test_every_device_of_the_bus_says_what_it_is(daemon):
    listed = sorted((daemon.paths.sys / "bus/pci/devices").iterdir())
    assert [device.joinpath("class").read_text().strip() for device in listed] == ["0x060400"] * 2 + ["0x030000"] * 2


def test_a_card_falls_off_the_bus_once_and_comes_back_when_taken_back(daemon):
    state = apply(daemon, "falls_off_bus", slot="2")
    assert (state["gpu.1.lost"], state["driver.hangs"]) == ("1", "0")
    state = tick(daemon, 15)
    assert state["driver.hangs"] == "1"
    assert daemon.paths.kernel_log.read_text().count("): 79,") == 1
    faultctl.clear(daemon.paths, "falls_off_bus")
    state = tick(daemon, 2)
    assert (state["gpu.1.lost"], state["driver.hangs"]) == ("0", "0")


@NEEDS_COMPILER
def test_nvidia_smi_hangs_while_a_card_is_off_the_bus(rig):
    rig.fault("apply", "falls_off_bus", "slot=2")
    deadline = time.monotonic() + 10
    while rig.state()["driver.hangs"] != "1":
        assert time.monotonic() < deadline
        rig.settle()
    assert rig.run("timeout", "1", "nvidia-smi", "-L").returncode == 124


@NEEDS_COMPILER
def test_a_slow_matrix_takes_so_long(rig):
    rig.fault("apply", "slow_topo", "seconds=1")
    begun = time.monotonic()
    assert "NV4" in rig.smi("topo", "-m").stdout
    assert time.monotonic() - begun >= 1
