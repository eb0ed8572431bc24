"""Topology: the declared cards, links and lanes; nvidia-smi on the host must agree with NVML."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rigctl.acceptance.asking import ask
from rigctl.checks import links, topology

if TYPE_CHECKING:
    from testinfra.host import Host

    from rigctl.acceptance.plugin import Judge
    from rigctl.model.reading import Readings
    from rigctl.model.spec import ProfileSpec, RigSpec

# With a dead card nvidia-smi can hang for good, so each call is bounded on the rig.
TOPO = "timeout -k 5 30 nvidia-smi topo -m"
NVLINK = "timeout -k 5 30 nvidia-smi nvlink -s"


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
    judge(links.pairs(spec, readings, ask(host, TOPO) if spec.parts.links or spec.parts.nvswitch_links else None))


@pytest.mark.check("topology.nvlink_speed")
def test_nvlink_speed(host: Host, spec: RigSpec, readings: Readings, judge: Judge) -> None:
    """Each link runs at the declared speed."""
    judge(links.speed(spec, readings, ask(host, NVLINK) if spec.parts.min_nvlink_gb_per_s else None))


@pytest.mark.check("topology.pcie_gen")
def test_pcie_gen(spec: RigSpec, readings: Readings, profile: ProfileSpec, judge: Judge) -> None:
    """Each card runs at the declared PCIe generation under load."""
    judge(topology.pcie_gen(spec, readings, profile))


@pytest.mark.check("topology.pcie_width")
def test_pcie_width(spec: RigSpec, readings: Readings, profile: ProfileSpec, judge: Judge) -> None:
    """Each card runs on the declared lanes under load."""
    judge(topology.pcie_width(spec, readings, profile))
