"""Every check: its id, what it measures, and which steps a run must have for it to be listed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rigctl.checks.load import steps_of

if TYPE_CHECKING:
    from rigctl.model.spec import ProfileSpec

_CPU = ("cpu_burn", "all_burn")
_GPU = ("gpu_burn", "all_burn")
_LOADS = ("cpu_burn", "gpu_burn", "all_burn", "train")


@dataclass(frozen=True)
class CheckInfo:
    """One check of the catalogue."""

    id: str
    title: str
    steps: tuple[str, ...] = ()
    """The check is listed when the profile asks for one of these steps; empty: always."""
    nvml: bool = False
    """It cannot be judged while NVML cannot be asked."""
    afterwards: bool = False
    """It is judged over the other verdicts, where there is anything to judge."""

    def listed(self, profile: ProfileSpec) -> bool:
        """Whether a run with this profile must say something about the check."""
        return not self.afterwards and (not self.steps or bool(steps_of(profile) & set(self.steps)))


_ALL = (
    CheckInfo("measure.reached", "the rig was reached and measured to the end"),
    CheckInfo("measure.probes", "the driver answers in time", nvml=True),
    CheckInfo("kernel.same_boot", "no reboot during the run", _LOADS),
    CheckInfo("software.driver_version", "loaded driver, its library, packages and the asked branch are one"),
    CheckInfo("identity.settings", "the BIOS is set as asked and as accepted", nvml=True),
    CheckInfo("identity.machine", "board and parts are those that were accepted"),
    CheckInfo("identity.modules", "no foreign kernel module"),
    CheckInfo("topology.gpu_count", "as many cards as declared", nvml=True),
    CheckInfo("topology.gpu_model", "each card is of the declared model", nvml=True),
    CheckInfo("identity.cards", "the accepted cards in the accepted slots", nvml=True),
    CheckInfo("identity.card_firmware", "each card's VBIOS and power range are as accepted", nvml=True),
    CheckInfo("topology.gpu_memory", "each card has the declared memory", nvml=True),
    CheckInfo("topology.nvlink", "each pair of cards is joined exactly as declared", nvml=True),
    CheckInfo("topology.nvlink_speed", "each NVLink runs at the declared speed", nvml=True),
    CheckInfo("topology.nvlink_errors", "links send little again under load", _LOADS, nvml=True),
    CheckInfo("topology.p2p_access", "joined cards reach each other's memory", nvml=True),
    CheckInfo("topology.p2p_bytes", "what one card sends arrives at the other as it was", ("p2p",), nvml=True),
    CheckInfo("topology.numa", "each card on the declared NUMA node", nvml=True),
    CheckInfo("topology.aer_port", "few PCIe errors reported by the ports above each card", _LOADS, nvml=True),
    CheckInfo("topology.aer_card", "few PCIe errors reported by each card", _LOADS, nvml=True),
    CheckInfo("topology.pcie_replays", "few PCIe packets sent again under load", _LOADS, nvml=True),
    CheckInfo("topology.pcie_gen", "PCIe generation under load", _GPU, nvml=True),
    CheckInfo("topology.pcie_width", "PCIe lanes under load", _GPU, nvml=True),
    CheckInfo("kernel.xid", "no Xid in the kernel log"),
    CheckInfo("thermals.fans", "fans and pumps turn, and their tachometers can be believed", ("gpu_burn",), nvml=True),
    CheckInfo("thermals.resistance", "°C/W of each card, whatever the room", ("gpu_burn",), nvml=True),
    CheckInfo("thermals.rest_temp", "room, or the coolest card at rest", ("gpu_burn",), nvml=True),
    CheckInfo("thermals.settled_gpu_temp", "core temperature in the burn's last third", ("gpu_burn",), nvml=True),
    CheckInfo("thermals.card_spread", "no card settles much warmer than its twins", ("gpu_burn",), nvml=True),
    CheckInfo("thermals.steady_state", "each card's temperature came to rest", ("gpu_burn",), nvml=True),
    CheckInfo("thermals.memory_temp", "memory temperature in the burn's last third", ("gpu_burn",), nvml=True),
    CheckInfo("thermals.guard", "the guard let every load come to its own end", _LOADS, nvml=True),
    CheckInfo("thermals.throttle", "no fault held a card back", _GPU, nvml=True),
    CheckInfo("thermals.cpu_temp", "the CPU's highest temperature", _CPU),
    CheckInfo("thermals.hotspot_temp", "hot spot of each die", ("gpu_burn",), nvml=True),
    CheckInfo("thermals.fan_speed", "how fast fans are asked to turn", ("gpu_burn",), nvml=True),
    CheckInfo("power.limit", "each card's power limit", nvml=True),
    CheckInfo("power.idle", "what each card draws at rest", ("idle",), nvml=True),
    CheckInfo("power.share_of_limit", "each card draws its limit, and no more", ("gpu_burn",), nvml=True),
    CheckInfo("power.wall", "power at the wall under each load", _GPU, nvml=True),
    CheckInfo("power.residual", "wall power reconciled with cards and CPU", _GPU, nvml=True),
    CheckInfo("software.gpu_burn_build", "gpu-burn was built for these cards"),
    CheckInfo("throughput.gpu_burn", "gpu-burn finds no error", _GPU, nvml=True),
    CheckInfo("throughput.burn_gflops", "gpu-burn's rate", ("gpu_burn",), nvml=True),
    CheckInfo("throughput.cpu_burn", "stress-ng finds no error", _CPU),
    CheckInfo("throughput.p2p_one_way", "copies between cards, one direction at a time", ("p2p",), nvml=True),
    CheckInfo("throughput.p2p_both_ways", "copies between cards in both directions at once", ("p2p",), nvml=True),
    CheckInfo("software.torch", "PyTorch of the asked version and build"),
    CheckInfo("throughput.training", "training at the spec's pace", ("train",)),
    CheckInfo("software.cuda_toolkit", "the CUDA toolkit of the asked version"),
    CheckInfo("measure.telemetry", "samples without a gap, often enough", _LOADS),
    CheckInfo("measure.left_as_found", "limits, clocks, fans and services are as they were before the run", _LOADS),
    CheckInfo("spec.waivers", "accepted deviations have not run out", afterwards=True),
)
CATALOGUE: dict[str, CheckInfo] = {info.id: info for info in _ALL}
"""Every check by id, in the order in which verdicts are shown: what can be a cause comes first."""
USER = "user."
"""Checks of the user's own test files: `user.<file>.<test>`."""


def order(check: str) -> tuple[int, str]:
    """Return the place of a check among all: the catalogue's, then the user's own by name."""
    ids = list(CATALOGUE)
    return (ids.index(check) if check in CATALOGUE else len(ids), check)
