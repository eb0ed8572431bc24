"""Topology: the declared cards, links and lanes; nvidia-smi on the host must agree with NVML."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rigctl.acceptance.ahead import NVLINK, TOPO
from rigctl.acceptance.asking import ask
from rigctl.checks import counters, fabric, links, numa, p2p, topology
from rigctl.checks.probes import not_asked

if TYPE_CHECKING:
    from testinfra.host import Host

    from rigctl.acceptance.plugin import Judge
    from rigctl.model.reading import Readings
    from rigctl.model.spec import ProfileSpec, RigSpec


@pytest.mark.check("topology.gpu_count")
def test_gpu_count(spec: RigSpec, readings: Readings, judge: Judge) -> None:
    """As many cards as declared."""
    judge(topology.gpu_count(spec, readings))


@pytest.mark.check("topology.gpu_model")
def test_gpu_model(spec: RigSpec, readings: Readings, judge: Judge) -> None:
    """Each card is of the declared model."""
    judge(topology.gpu_model(spec, readings))


@pytest.mark.check("topology.gpu_memory")
def test_gpu_memory(spec: RigSpec, readings: Readings, judge: Judge) -> None:
    """Each card has the declared memory."""
    judge(topology.gpu_memory(spec, readings))


@pytest.mark.check("topology.nvlink")
def test_nvlink(host: Host, spec: RigSpec, readings: Readings, judge: Judge) -> None:
    """Each pair of cards is joined exactly as declared."""
    asked = (not_asked(readings, TOPO) or ask(host, TOPO)) if spec.parts.links or spec.parts.nvswitch_links else None
    judge(links.pairs(spec, readings, asked))


@pytest.mark.check("topology.nvlink_speed")
def test_nvlink_speed(host: Host, spec: RigSpec, readings: Readings, judge: Judge) -> None:
    """Each link runs at the declared speed."""
    asked = (not_asked(readings, NVLINK) or ask(host, NVLINK)) if spec.parts.min_nvlink_gb_per_s else None
    judge(links.speed(spec, readings, asked))


@pytest.mark.check("topology.pcie_gen")
def test_pcie_gen(spec: RigSpec, readings: Readings, profile: ProfileSpec, judge: Judge) -> None:
    """Each card runs at the declared PCIe generation under load."""
    judge(topology.pcie_gen(spec, readings, profile))


@pytest.mark.check("topology.pcie_width")
def test_pcie_width(spec: RigSpec, readings: Readings, profile: ProfileSpec, judge: Judge) -> None:
    """Each card runs on the declared lanes under load."""
    judge(topology.pcie_width(spec, readings, profile))


@pytest.mark.check("topology.nvlink_errors")
def test_nvlink_errors(spec: RigSpec, readings: Readings, judge: Judge) -> None:
    """Links send little again under load."""
    judge(counters.nvlink_errors(spec, readings))


@pytest.mark.check("topology.aer_port")
def test_aer_port(spec: RigSpec, readings: Readings, judge: Judge) -> None:
    """The ports above each card report few PCIe errors."""
    judge(counters.aer_port(spec, readings))


@pytest.mark.check("topology.aer_card")
def test_aer_card(spec: RigSpec, readings: Readings, judge: Judge) -> None:
    """Each card reports few PCIe errors."""
    judge(counters.aer_card(spec, readings))


@pytest.mark.check("topology.pcie_replays")
def test_pcie_replays(spec: RigSpec, readings: Readings, judge: Judge) -> None:
    """Each card sends few PCIe packets again."""
    judge(counters.pcie_replays(spec, readings))


@pytest.mark.check("topology.fabric_manager")
def test_fabric_manager(spec: RigSpec, readings: Readings, judge: Judge) -> None:
    """The fabric manager runs, where the board has NVSwitches."""
    judge(fabric.fabric_manager(spec, readings))


@pytest.mark.check("topology.numa")
def test_numa(spec: RigSpec, readings: Readings, judge: Judge) -> None:
    """Each card is on the declared NUMA node."""
    judge(numa.numa(spec, readings))


@pytest.mark.check("topology.p2p_access")
def test_p2p_access(spec: RigSpec, readings: Readings, judge: Judge) -> None:
    """Joined cards reach each other's memory."""
    judge(p2p.access(spec, readings))


@pytest.mark.check("topology.p2p_bytes")
def test_p2p_bytes(spec: RigSpec, readings: Readings, judge: Judge) -> None:
    """What one card sends arrives at the other as it was."""
    judge(p2p.same_bytes(spec, readings))


@pytest.mark.check("throughput.p2p_one_way")
def test_p2p_one_way(spec: RigSpec, readings: Readings, judge: Judge) -> None:
    """Copies between cards are as fast as declared, one direction at a time."""
    judge(p2p.one_way(spec, readings))


@pytest.mark.check("throughput.p2p_both_ways")
def test_p2p_both_ways(spec: RigSpec, readings: Readings, judge: Judge) -> None:
    """So are they in both directions at once."""
    judge(p2p.both_ways(spec, readings))
