"""What the compute steps told on the healthy rig: figures in the ranges of published ones for this card."""

from __future__ import annotations

import json
from typing import Any

UUIDS = ("GPU-11111111-0000-4000-8000-00000000a91f", "GPU-22222222-0000-4000-8000-00000000b02e")
MODEL = "NVIDIA GeForce RTX 3090 Ti"
RATES = {
    "matmul_fp32": 41.2,
    "matmul_fp16": 80.4,
    "matmul_bf16": 80.1,
    "layer": 60.2,
    "gpu_memory": 871.0,
    "host_to_device": 13.1,
    "device_to_host": 13.3,
}
LOSSES = (10.94, 10.61, 10.33, 9.87)


def figure(rate: float, **changes: Any) -> dict[str, Any]:
    """One rate, and the blocks of which it is the median."""
    known = {"rate": rate, "blocks": [rate * 0.998, rate, rate * 1.003], "settled": True, "warm_up_s": 1.2}
    return known | changes


def card(i: int, **figures: Any) -> dict[str, Any]:
    """What card `i` showed; `figures` are rates, or figures."""
    rates = {name: rate * (1, 0.99)[i] for name, rate in RATES.items()} | figures
    told = {name: figure(one) if isinstance(one, int | float) else one for name, one in rates.items()}
    return {"slot": i + 1, "name": MODEL, "uuid": UUIDS[i], "figures": told}


def compute(*cards: dict[str, Any], **changes: Any) -> str:
    """`compute.json`."""
    told = {"torch": "2.0.1+cu117", "device": "cuda", "cards": list(cards) or [card(0), card(1)]}
    return json.dumps(told | changes)


def tested(i: int, **changes: Any) -> dict[str, Any]:
    """What the memory test told of card `i`."""
    known = {
        "slot": i + 1,
        "name": MODEL,
        "uuid": UUIDS[i],
        "total_mib": 24247.4,
        "tested_mib": 21504.0,
        "patterns": 68,
        "compared_bytes": 68 * 21504 * 2**20,
        "wrong_words": 0,
        "wrong_bits": [0] * 32,
        "errors": [],
    }
    return known | changes


def gpu_memory(*cards: dict[str, Any], **changes: Any) -> str:
    """`gpu_memory.json`."""
    told = {"torch": "2.0.1+cu117", "device": "cuda", "cards": list(cards) or [tested(0), tested(1)]}
    return json.dumps(told | changes)


def alone(i: int, **changes: Any) -> dict[str, Any]:
    """What card `i` trained by itself."""
    known = {
        "slot": i + 1,
        "name": MODEL,
        "uuid": UUIDS[i],
        "tokens_per_s": (7_940.0, 7_880.0)[i],
        "step_tokens_per_s": [7_900.0, 7_940.0, 7_960.0],
        "losses": list(LOSSES),
        "repeated_losses": list(LOSSES[:3]),
    }
    return known | changes


def together(tokens_per_s: float = 15_030.0, **changes: Any) -> dict[str, Any]:
    """What all cards trained together, in the step that `train` of the healthy rig has."""
    known = {"tokens_per_s": tokens_per_s, "step_tokens_per_s": [tokens_per_s], "measured_mono_s": [1058.0, 1065.0]}
    return known | changes


def train_all(**changes: Any) -> str:
    """`train_all.json`."""
    told = {
        "torch": "2.0.1+cu117",
        "device": "cuda",
        "model": "gpt2_medium",
        "ranks": 2,
        "tflops_per_token_per_s": 42.16 / 17_408,
        "alone": [alone(0), alone(1)],
        "together": together(),
        "without_p2p": together(12_900.0),
        "weights_agree": True,
    }
    return json.dumps(told | changes)


def across(**changes: Any) -> str:
    """`train_across.json` of two rigs with two cards each."""
    told = {
        "torch": "2.0.1+cu117",
        "device": "cuda",
        "model": "gpt2_medium",
        "rigs": 2,
        "ranks": 4,
        "together": together(24_000.0),
        "weights_agree": True,
        "interface": "enp5s0",
    }
    return json.dumps(told | changes)


def diagnosis(*statuses: str, **changes: Any) -> str:
    """`dcgm.json` with one test on each card, in the form of DCGM 3; `statuses` are theirs."""
    results = [
        {"gpu_id": str(i), "status": status, "warnings": [] if status == "Pass" else ["memory mismatch"]}
        for i, status in enumerate(statuses or ("Pass", "Pass"))
    ]
    tests = [{"name": "GPU Memory", "results": results}]
    root = {"version": "3.1.8", "test_categories": [{"category": "Hardware", "tests": tests}]}
    told = {"installed": True, "argv": [], "exit_status": 0, "output": json.dumps({"DCGM GPU Diagnostic": root})}
    return json.dumps(told | changes)


LOGS = {
    "compute.json": compute(),
    "gpu_memory.json": gpu_memory(),
    "train_all.json": train_all(),
    "train_across.json": across(),
    "dcgm.json": diagnosis(),
}
COMPUTE: dict[str, Any] = {
    "device": "cuda",
    "min_matmul_fp32_tflops": 39.1,
    "min_matmul_fp16_tflops": 75.6,
    "min_matmul_bf16_tflops": 75.6,
    "min_layer_tflops": 52.5,
    "min_gpu_memory_gb_per_s": 800,
    "min_host_to_device_gb_per_s": 11.8,
    "min_device_to_host_gb_per_s": 11.8,
}
TRAINING: dict[str, Any] = {
    "min_all_tokens_per_s": 12_065,
    "min_scaling_share": 0.81,
    "min_p2p_gain": 1.04,
    "min_across_share": 0.7,
    "min_tokens_per_joule": 13.9,
}
