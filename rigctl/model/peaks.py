"""What a card can do at most on paper: dense peaks by model, as NVIDIA states them.

Dense: without structured sparsity, which doubles the figures in many tables. FP16 and BF16 with FP32 accumulation, as
training uses them; GeForce cards do twice that with FP16 accumulation, and such figures are not comparable. Stated at
the boost clock: a card that is cool and allowed to goes a little beyond.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Peak:
    """Peaks of one model."""

    fp32_tflops: float
    """With TF32 where the card has it."""
    fp16_tflops: float
    """And BF16 where the card has it."""
    memory_gb_per_s: float
    source: str


_GA102 = "NVIDIA Ampere GA102 GPU architecture whitepaper, V2"
_ADA = "NVIDIA Ada GPU architecture whitepaper"
_H100 = "NVIDIA H100 datasheet; its tensor figures, which are with sparsity, halved"

PEAKS: dict[str, Peak] = {
    "NVIDIA GeForce RTX 3090": Peak(35.6, 71.0, 936, _GA102),
    "NVIDIA GeForce RTX 3090 Ti": Peak(
        40.0, 80.0, 1008, "84 SMs at 1860 MHz with the rates per SM of the GA102 whitepaper; NVIDIA's product page"
    ),
    "NVIDIA RTX A6000": Peak(77.4, 154.8, 768, _GA102),
    "NVIDIA GeForce RTX 4090": Peak(82.6, 165.2, 1008, _ADA),
    "NVIDIA GeForce RTX 5090": Peak(104.8, 209.5, 1792, "NVIDIA RTX Blackwell GPU architecture whitepaper"),
    "NVIDIA A100-SXM4-80GB": Peak(156.0, 312.0, 2039, "NVIDIA A100 datasheet"),
    "NVIDIA H100 80GB HBM3": Peak(494.7, 989.4, 3350, _H100),
    "Tesla V100-SXM2-16GB": Peak(15.7, 125.0, 900, "NVIDIA V100 datasheet"),
}
"""By the name that NVML tells."""

MOST_OF_PEAK = 1.25
"""More than this share of its peak no card does: the fastest that was published of these, a product in TF32 on an RTX
3090 Ti, is 1.05, and no board's clock limit is a quarter above its boost clock. What is beyond was not measured.
"""


def mfu(tflops: float, model: str, dtype: str) -> float | None:
    """Return the share of its dense peak that a card does (model FLOPS utilisation); None for a model not listed.

    Args:
        tflops: what one card does, TFLOP/s.
        model: the card's name by NVML.
        dtype: `fp32`, `fp16` or `bf16`.
    """
    peak = PEAKS.get(model)
    if peak is None:
        return None
    return tflops / (peak.fp32_tflops if dtype == "fp32" else peak.fp16_tflops)
