"""The steps that put a number on what the cards compute, and test their memory: programs of the agent. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rigctl.measure.workload import Workload, script

if TYPE_CHECKING:
    from rigctl.model.reading import Facts
    from rigctl.model.spec import RigSpec

START_S = 15
"""Starting the framework takes about so long, seconds."""

COMPUTE_LIMIT_S = 1800
BLOCK_S, BLOCKS, WARM_UP_S = 0.2, 15, 10.0
"""Each figure: blocks of 0.2 s, fifteen of them after at most ten seconds of warm-up, so 4 to 13 s."""
COMPUTE_CARD_S = 60
"""Seven figures of one card take about so long, seconds."""
LAYER = {"layer_seq_len": 128, "layer_hidden": 1024, "layer_heads": 16}
"""A layer of BERT-large over sequences of 128 tokens, as published figures have it."""

MEMORY_LIMIT_S = 3600
MEMORY_SHARE = 0.9
"""Of what is free: the comparison itself needs room on the card."""
MEMORY_BLOCK_MIB = 32
MEMORY_TURNS = 32
"""Walking bits in every place of a word."""
MEMORY_GIB_S = 2.5
"""All patterns over one GiB take about so long, seconds; our own estimate."""
CPU_MEMORY_MIB = 256
"""What the test takes of the host's memory where the spec names the CPU as device, MiB."""

TRAIN_ALL_LIMIT_S = 1800
TRAIN_ALL_RUN_S = 600
"""One torchrun that has not ended after so long is ended, seconds."""
TRAIN_ALL_STEPS = {"warmup_steps": 5, "measured_steps": 10, "repeat_steps": 3}
TRAIN_ALL_PASSES = 3
"""Each card alone, all together, and all together without P2P."""

DCGM_LIMIT_S = 1200
DCGM_LEVEL = 2
"""NVIDIA's second level: some minutes; beside its software tests it moves data and looks at the cards' memory."""


def _compute_s(spec: RigSpec) -> float | None:
    if spec.compute is None:
        return None
    return START_S + COMPUTE_CARD_S * (spec.parts.gpu_count if spec.compute.device == "cuda" else 1)


def _device(spec: RigSpec, facts: Facts) -> dict[str, Any]:
    """Return the words that name the device, and no other."""
    if spec.compute is None:
        return {}
    if spec.compute.device == "cpu":
        return {"device": "cpu", "threads": spec.compute.threads}
    return {"device": "cuda", "cards": len(facts.gpus)}


def _needs_cards(spec: RigSpec) -> bool:
    return spec.compute is not None and spec.compute.device == "cuda"


def _compute(spec: RigSpec, facts: Facts) -> dict[str, Any]:
    asked = spec.compute
    sizes = (
        {"matmul_n": asked.matmul_n, "stream_mib": asked.stream_mib, "layer_batch": asked.layer_batch} if asked else {}
    )
    pace = {"block_s": BLOCK_S, "blocks": BLOCKS, "warm_up_s": WARM_UP_S}
    arguments = {**_device(spec, facts), **sizes, **LAYER, **pace}
    return script("compute", arguments, python="torch", needs_cards=_needs_cards(spec))


def _memory_s(spec: RigSpec) -> float | None:
    if spec.compute is None:
        return None
    tested_mib = spec.parts.min_gpu_memory_mib * spec.parts.gpu_count
    return START_S + MEMORY_GIB_S * (tested_mib if spec.compute.device == "cuda" else CPU_MEMORY_MIB) / 1024


def _memory(spec: RigSpec, facts: Facts) -> dict[str, Any]:
    device = _device(spec, facts)
    if device.get("device") == "cpu":
        device["take_mib"] = CPU_MEMORY_MIB
    sizes = {"share": MEMORY_SHARE, "block_mib": MEMORY_BLOCK_MIB, "turns": MEMORY_TURNS}
    return script("gpu_memory", {**device, **sizes}, python="torch", needs_cards=_needs_cards(spec))


def _train_all_s(spec: RigSpec) -> float | None:
    """Expect training on all cards; None where there are no two cards that the spec trains on."""
    training = spec.training
    if training is None or training.device != "cuda" or spec.parts.gpu_count < 2:  # noqa: PLR2004 - two cards
        return None
    if training.min_tokens_per_s is None:
        return TRAIN_ALL_LIMIT_S
    tokens = training.seq_len * training.micro_batch * training.grad_accum
    steps = TRAIN_ALL_PASSES * (TRAIN_ALL_STEPS["warmup_steps"] + TRAIN_ALL_STEPS["measured_steps"])
    return 2 * START_S + tokens * (steps + TRAIN_ALL_STEPS["repeat_steps"]) / training.min_tokens_per_s


def _training_arguments(spec: RigSpec) -> dict[str, Any]:
    wanted = {"device", "model", "seq_len", "micro_batch", "grad_accum", "dtype", "threads"}
    return spec.training.model_dump(mode="json", include=wanted) if spec.training is not None else {}


def _train_all(spec: RigSpec, facts: Facts) -> dict[str, Any]:
    arguments = {
        "training": _training_arguments(spec),
        "ranks": len(facts.gpus),
        "limit_s": TRAIN_ALL_RUN_S,
        **TRAIN_ALL_STEPS,
    }
    return script("train_all", arguments, python="torch", needs_cards=True)


ACROSS_WAIT_S, ACROSS_RUN_S = 900, 600
"""The first rig waits so long for the last one, and training together is ended after so long, seconds."""
ACROSS_STEPS = {"warmup_steps": 5, "measured_steps": 20}
"""A network is slower than a bridge: steps enough for a median."""


def _across_s(spec: RigSpec) -> float | None:
    """Expect training with other rigs, waiting for them left out; None where nobody asked for it."""
    training = spec.training
    if training is None or spec.across is None:
        return None
    if training.min_tokens_per_s is None:
        return ACROSS_RUN_S
    tokens = training.seq_len * training.micro_batch * training.grad_accum
    return 2 * START_S + tokens * sum(ACROSS_STEPS.values()) / training.min_tokens_per_s


def _across(spec: RigSpec, facts: Facts) -> dict[str, Any]:
    on_cards = spec.training is not None and spec.training.device == "cuda"
    meeting = spec.across.model_dump(mode="json") if spec.across is not None else {}
    arguments = {
        "training": _training_arguments(spec),
        "ranks": len(facts.gpus) if on_cards else 1,
        "across": {**meeting, "wait_s": ACROSS_WAIT_S},
        "limit_s": ACROSS_WAIT_S + ACROSS_RUN_S,
        **ACROSS_STEPS,
    }
    return script("train_across", arguments, python="torch", needs_cards=on_cards)


def _dcgm_s(_spec: RigSpec) -> float | None:
    """Whether DCGM is there only the rig knows; without it the step ends at once."""
    return 5


def _dcgm(_spec: RigSpec, _facts: Facts) -> dict[str, Any]:
    arguments = {"program": "dcgmi", "level": DCGM_LEVEL, "limit_s": DCGM_LIMIT_S - 60}
    return script("dcgm_diag", arguments, python="system", needs_cards=True)


COMPUTE = Workload("compute", COMPUTE_LIMIT_S, _compute_s, _compute)
GPU_MEMORY = Workload("gpu_memory", MEMORY_LIMIT_S, _memory_s, _memory)
TRAIN_ALL = Workload("train_all", TRAIN_ALL_LIMIT_S, _train_all_s, _train_all)
TRAIN_ACROSS = Workload("train_across", ACROSS_WAIT_S + ACROSS_RUN_S + 60, _across_s, _across)
DCGM = Workload("dcgm", DCGM_LIMIT_S, _dcgm_s, _dcgm)
