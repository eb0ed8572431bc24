"""Every check, in the order in which verdicts are shown.

What a check says of itself stands in `rigctl/checks/entries/`, one module per subject; its place among all stands here.
"""

from __future__ import annotations

from rigctl.checks.entries import (
    computing,
    disk,
    identity,
    kernel,
    measure,
    memory,
    network,
    power,
    software,
    thermals,
    throughput,
    topology,
)
from rigctl.checks.info import CheckInfo

__all__ = ["CATALOGUE", "ORDER", "USER", "CheckInfo", "order"]

ORDER: tuple[str, ...] = (
    "measure.reached",
    "measure.probes",
    "kernel.same_boot",
    "software.driver_version",
    "identity.settings",
    "identity.machine",
    "identity.modules",
    "disk.space",
    "disk.health",
    "disk.size",
    "network.link",
    "topology.gpu_count",
    "topology.gpu_model",
    "identity.cards",
    "identity.card_firmware",
    "topology.gpu_memory",
    "topology.fabric_manager",
    "topology.nvlink",
    "topology.nvlink_speed",
    "topology.nvlink_errors",
    "topology.p2p_access",
    "topology.p2p_bytes",
    "topology.numa",
    "topology.aer_port",
    "topology.aer_card",
    "topology.pcie_replays",
    "topology.pcie_gen",
    "topology.pcie_width",
    "kernel.time_sync",
    "kernel.clock",
    "memory.host",
    "memory.ecc",
    "memory.remapped_rows",
    "memory.gpu_pattern",
    "kernel.xid",
    "power.brake",
    "thermals.fans",
    "thermals.resistance",
    "thermals.rest_temp",
    "thermals.settled_gpu_temp",
    "thermals.card_spread",
    "thermals.steady_state",
    "thermals.memory_temp",
    "thermals.guard",
    "thermals.throttle",
    "thermals.cpu_temp",
    "thermals.hotspot_temp",
    "thermals.fan_speed",
    "power.limit",
    "power.idle",
    "power.share_of_limit",
    "power.wall",
    "power.residual",
    "power.step_load",
    "power.idle_to_load",
    "software.gpu_burn_build",
    "throughput.gpu_burn",
    "throughput.burn_gflops",
    "throughput.cpu_burn",
    "throughput.cpu_clock",
    "disk.speed",
    "throughput.p2p_one_way",
    "throughput.p2p_both_ways",
    "software.torch",
    "throughput.loss",
    "throughput.host_to_device",
    "throughput.device_to_host",
    "throughput.gpu_memory",
    "throughput.matmul_fp32",
    "throughput.matmul_fp16",
    "throughput.matmul_bf16",
    "throughput.layer",
    "throughput.training",
    "throughput.tokens_per_joule",
    "throughput.train_each",
    "throughput.p2p_gain",
    "throughput.scaling",
    "throughput.train_all",
    "throughput.across",
    "software.cuda_toolkit",
    "measure.second_opinion",
    "measure.telemetry",
    "measure.left_as_found",
    "spec.waivers",
)
"""What can be a cause comes first: of two causes found at once, the first in this order is named first."""

_SUBJECTS = (
    measure,
    kernel,
    memory,
    software,
    identity,
    topology,
    thermals,
    power,
    throughput,
    computing,
    disk,
    network,
)
_ENTRIES: dict[str, CheckInfo] = {info.id: info for subject in _SUBJECTS for info in subject.ENTRIES}
CATALOGUE: dict[str, CheckInfo] = {check: _ENTRIES[check] for check in ORDER}
"""Every check by id, in their order."""
USER = "user."
"""Checks of the user's own test files: `user.<file>.<test>`."""


def order(check: str) -> tuple[int, str]:
    """Return the place of a check among all: the catalogue's, then the user's own by name."""
    return (ORDER.index(check) if check in CATALOGUE else len(ORDER), check)
