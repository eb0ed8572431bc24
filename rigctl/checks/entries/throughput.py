"""What the rig computes and copies, how fast, and whether rightly."""

from __future__ import annotations

from rigctl.checks.info import BASELINE, CPU, GPU, GPU_BURN, CheckInfo

_P2P = ("p2p",)
_P2P_FIX = "see topology.nvlink, topology.pcie_gen and topology.pcie_width of both cards"

ENTRIES = (
    CheckInfo(
        "throughput.gpu_burn",
        "gpu-burn finds no error",
        GPU,
        nvml=True,
        requires=("gpu-burn",),
        limit_from=("0 errors: gpu-burn compares each of its products with the first one",),
        fix="a card computes wrongly: lower clocks or limit to tell supply from silicon, then replace it",
    ),
    CheckInfo(
        "throughput.burn_gflops",
        "gpu-burn's rate",
        GPU_BURN,
        nvml=True,
        requires=("gpu-burn",),
        limit_from=("limits.min_burn_gflops", "limits.max_burn_gflops_drift"),
        fix="temperature, throttle reasons and power limit first, then PCIe lanes; drift: heat builds up",
    ),
    CheckInfo(
        "throughput.cpu_burn",
        "stress-ng finds no error",
        CPU,
        requires=("stress-ng",),
        limit_from=("0 errors: stress-ng verifies its own sums",),
        fix="CPU or memory computed wrongly: undo overclocks, run a memory test",
    ),
    CheckInfo(
        "throughput.cpu_clock",
        "the CPU keeps its clock under load",
        CPU,
        requires=("stress-ng", "the cores' measured clock (cpufreq)"),
        limit_from=("limits.min_cpu_mhz", "the processor's nominal clock", BASELINE),
        fix="heat: the cooler; else power limit, governor and energy profile, then voltage regulators and supply",
    ),
    CheckInfo(
        "throughput.p2p_one_way",
        "copies between cards, one direction at a time",
        _P2P,
        nvml=True,
        requires=("PyTorch with CUDA",),
        limit_from=("limits.min_p2p_one_way_gb_per_s",),
        fix=_P2P_FIX,
    ),
    CheckInfo(
        "throughput.p2p_both_ways",
        "copies between cards in both directions at once",
        _P2P,
        nvml=True,
        requires=("PyTorch with CUDA",),
        limit_from=("limits.min_p2p_both_ways_gb_per_s",),
        fix=_P2P_FIX,
    ),
    CheckInfo(
        "throughput.training",
        "training at the spec's pace",
        ("train",),
        requires=("PyTorch",),
        limit_from=("training.min_tokens_per_s",),
        fix="temperature, throttle reasons, power limit, PCIe lanes; on a CPU: quota, governor, other load",
    ),
)
