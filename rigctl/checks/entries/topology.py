"""Cards, links and lanes."""

from __future__ import annotations

from rigctl.checks.info import GPU, LOADS, CheckInfo

_P2P = ("p2p",)
_SMI = ("nvidia-smi",)
_BUS_FIX = "reseat card and riser; look at the slot for dirt; a riser may need a lower generation set in the BIOS"

ENTRIES = (
    CheckInfo(
        "topology.gpu_count",
        "as many cards as declared",
        nvml=True,
        limit_from=("parts.gpu_count",),
        fix="power off; power cables, riser, slot",
    ),
    CheckInfo(
        "topology.gpu_model",
        "each card is of the declared model",
        nvml=True,
        limit_from=("parts.gpu_model",),
        fix="put the declared card in, or correct the spec",
    ),
    CheckInfo(
        "topology.fabric_manager",
        "the fabric manager runs, of the driver's own version",
        nvml=True,
        requires=("NVSwitches", "nvidia-fabricmanager"),
        limit_from=("parts.nvswitch_links", "the loaded driver"),
        fix="install nvidia-fabricmanager of the driver's own version, and start it",
    ),
    CheckInfo(
        "topology.gpu_memory",
        "each card has the declared memory",
        nvml=True,
        limit_from=("parts.min_gpu_memory_mib",),
        fix="another card, or one with failed memory: look at its Xid messages and its label",
    ),
    CheckInfo(
        "topology.nvlink",
        "each pair of cards is joined exactly as declared",
        nvml=True,
        requires=_SMI,
        limit_from=("parts.links", "parts.nvswitch_links"),
        fix="power off and reseat the bridge on both cards; with NVSwitches, the fabric manager first",
    ),
    CheckInfo(
        "topology.nvlink_speed",
        "each NVLink runs at the declared speed",
        nvml=True,
        requires=_SMI,
        limit_from=("parts.min_nvlink_gb_per_s",),
        fix="reseat the bridge; try another one",
    ),
    CheckInfo(
        "topology.nvlink_errors",
        "links send little again under load",
        LOADS,
        nvml=True,
        requires=("NVLink's error counters",),
        limit_from=("limits.max_nvlink_crc_errors",),
        fix="reseat the bridge on both cards; try another one",
    ),
    CheckInfo(
        "topology.p2p_access",
        "joined cards reach each other's memory",
        nvml=True,
        limit_from=("parts.links",),
        fix="the driver's own word says where to look: `CNS` the links, `DR` the driver's module options",
    ),
    CheckInfo(
        "topology.p2p_bytes",
        "what one card sends arrives at the other as it was",
        _P2P,
        nvml=True,
        requires=("PyTorch with CUDA",),
        limit_from=("the pattern that was sent",),
        fix="another driver first; then IOMMU and ACS; until it is mended NCCL_P2P_DISABLE=1",
    ),
    CheckInfo(
        "topology.numa",
        "each card on the declared NUMA node",
        nvml=True,
        requires=("sysfs of PCI devices",),
        limit_from=("parts.gpu_numa_nodes",),
        fix="BIOS: NUMA, node interleaving; or the card sits in another slot",
    ),
    CheckInfo(
        "topology.aer_port",
        "few PCIe errors reported by the ports above each card",
        LOADS,
        nvml=True,
        requires=("AER of the ports, handled by the kernel",),
        limit_from=("limits.max_aer_corrected_per_min",),
        fix=_BUS_FIX,
    ),
    CheckInfo(
        "topology.aer_card",
        "few PCIe errors reported by each card",
        LOADS,
        nvml=True,
        requires=("AER of the cards, handled by the kernel",),
        limit_from=("limits.max_aer_corrected_per_min",),
        fix=_BUS_FIX,
    ),
    CheckInfo(
        "topology.pcie_replays",
        "few PCIe packets sent again under load",
        LOADS,
        nvml=True,
        requires=("the cards' replay counters",),
        limit_from=("limits.max_pcie_replays",),
        fix=_BUS_FIX,
    ),
    CheckInfo(
        "topology.pcie_gen",
        "PCIe generation under load",
        GPU,
        nvml=True,
        limit_from=("parts.pcie_gen_under_load",),
        fix="reseat card and riser; look at the slot's setting in the BIOS",
    ),
    CheckInfo(
        "topology.pcie_width",
        "PCIe lanes under load",
        GPU,
        nvml=True,
        limit_from=("parts.pcie_width_under_load",),
        fix="reseat card and riser; some boards halve the width when a neighbouring slot is used",
    ),
)
