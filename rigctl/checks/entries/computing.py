"""What the cards compute, hold and train: measured by programs of the agent in PyTorch."""

from __future__ import annotations

from rigctl.checks.info import CheckInfo

_COMPUTE, _MEMORY, _ALL, _TRAIN = ("compute",), ("gpu_memory",), ("train_all",), ("train",)
_TORCH = ("PyTorch",)
_HISTORY = ("the rig's accepted runs", "limits.max_rate_fall_share")
_TWINS = ("limits.max_twin_gap_share",)
_SLOW = "temperature, throttle reasons and power limit first; then compare the cards, and driver and torch versions"
_BUS = "see topology.pcie_gen and topology.pcie_width; then NUMA, IOMMU, and the speed of the host's memory"
_LINKS = "see topology.nvlink, topology.p2p_access and throughput.p2p_one_way"


def _rate(name: str, title: str, key: str, fix: str) -> CheckInfo:
    limits = (f"compute.{key}", *_HISTORY, *_TWINS)
    return CheckInfo(f"throughput.{name}", title, _COMPUTE, nvml=True, requires=_TORCH, limit_from=limits, fix=fix)


ENTRIES = (
    _rate("matmul_fp32", "products of matrices in FP32 (TF32)", "min_matmul_fp32_tflops", _SLOW),
    _rate("matmul_fp16", "products of matrices in FP16", "min_matmul_fp16_tflops", _SLOW),
    _rate("matmul_bf16", "products of matrices in BF16", "min_matmul_bf16_tflops", _SLOW),
    _rate("layer", "a Transformer layer, forwards and backwards", "min_layer_tflops", _SLOW),
    _rate("gpu_memory", "how fast each card's memory is", "min_gpu_memory_gb_per_s", _SLOW),
    _rate("host_to_device", "copies from the host to each card", "min_host_to_device_gb_per_s", _BUS),
    _rate("device_to_host", "copies from each card to the host", "min_device_to_host_gb_per_s", _BUS),
    CheckInfo(
        "memory.gpu_pattern",
        "what is written into each card's memory is what is read",
        _MEMORY,
        nvml=True,
        requires=_TORCH,
        limit_from=("0 wrong words: the patterns that were written", "compute.min_tested_memory_share"),
        fix="lower memory clocks to tell overclocks from broken memory, then replace the card",
    ),
    CheckInfo(
        "throughput.train_each",
        "training on each card by itself",
        _ALL,
        nvml=True,
        requires=("PyTorch with CUDA", "two cards"),
        limit_from=("training.min_tokens_per_s", *_HISTORY, *_TWINS),
        fix=_SLOW,
    ),
    CheckInfo(
        "throughput.train_all",
        "training on all cards together",
        _ALL,
        nvml=True,
        requires=("PyTorch with CUDA and NCCL", "two cards"),
        limit_from=("training.min_all_tokens_per_s", *_HISTORY),
        fix="see throughput.train_each, then throughput.scaling",
    ),
    CheckInfo(
        "throughput.scaling",
        "what the exchange of gradients leaves of the cards' own pace",
        _ALL,
        nvml=True,
        requires=("PyTorch with CUDA and NCCL", "two cards"),
        limit_from=("training.min_scaling_share", *_HISTORY),
        fix=_LINKS,
    ),
    CheckInfo(
        "throughput.across",
        "what the network leaves of the pace of several rigs that train together",
        ("train_across",),
        nvml=False,
        requires=("PyTorch", "two rigs or more, and `rigctl accept --across`"),
        limit_from=("training.min_across_share", *_HISTORY),
        fix="see network.link on each of them, and throughput.train_all",
    ),
    CheckInfo(
        "throughput.p2p_gain",
        "how much faster training is with P2P than without",
        _ALL,
        nvml=True,
        requires=("PyTorch with CUDA and NCCL", "two cards that the spec joins"),
        limit_from=("training.min_p2p_gain", *_HISTORY),
        fix=_LINKS,
    ),
    CheckInfo(
        "throughput.loss",
        "training computes the same again, and the same on every card",
        _ALL,
        nvml=True,
        requires=("PyTorch with CUDA and NCCL", "two cards"),
        limit_from=("the same steps from the same beginning",),
        fix="run the GPU burn and the memory test: a card computes wrongly",
    ),
    CheckInfo(
        "throughput.tokens_per_joule",
        "what training brings for the energy that its card takes",
        _TRAIN,
        nvml=True,
        requires=_TORCH,
        limit_from=("training.min_tokens_per_joule", *_HISTORY),
        fix="see throughput.training and power.share_of_limit",
    ),
    CheckInfo(
        "measure.second_opinion",
        "DCGM's own diagnosis, where DCGM is installed, agrees",
        ("dcgm",),
        nvml=True,
        requires=("DCGM",),
        limit_from=("NVIDIA's own limits",),
        fix="look at both: what DCGM tested, and what our checks say of the same card",
    ),
)
