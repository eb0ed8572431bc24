"""Steps beside the burns: each is one load of the agent, with what the spec says of it. Pure.

A workload is added by one entry in `WORKLOADS`, its name in `rigctl.model.spec.Workload`, and, where it is a program
of the agent, a file in `rigctl/agent/scripts/`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rigctl.measure.computing import COMPUTE, DCGM, GPU_MEMORY, TRAIN_ACROSS, TRAIN_ALL
from rigctl.measure.workload import Workload, script

if TYPE_CHECKING:
    from rigctl.model.reading import Facts
    from rigctl.model.spec import RigSpec

TRAINING_LIMIT_S = 900
"""A training step that has not ended after so long is stopped, seconds."""


def _training_s(spec: RigSpec) -> float | None:
    """Expect a training at the floor's pace, plus 15 s to start the framework; without a floor, its limit."""
    training = spec.training
    if training is None:
        return None
    if training.min_tokens_per_s is None:
        return TRAINING_LIMIT_S
    tokens = training.seq_len * training.micro_batch * training.grad_accum
    steps = training.warmup_steps + training.measured_steps
    return 15 + tokens * steps / training.min_tokens_per_s


def _training(spec: RigSpec, _facts: Facts) -> dict[str, Any]:
    training = spec.training.model_dump(mode="json") if spec.training is not None else {}
    return {"loads": ["train"], "training": training}


P2P_LIMIT_S = 600
"""Copies between all pairs of cards that have not ended after so long are stopped, seconds."""
P2P_START_S, P2P_PAIR_S = 15, 3
"""Starting the framework, and one pair, take about so long, seconds."""
P2P_BYTES, P2P_REPEATS = 256 * 1024 * 1024, 10
"""Enough that the start of a copy is no part of its rate: 5 ms at 50 GB/s."""


def _p2p_s(spec: RigSpec) -> float | None:
    """Expect the copies between all pairs; None where there is no pair."""
    count = spec.parts.gpu_count
    return P2P_START_S + P2P_PAIR_S * count * (count - 1) / 2 if count > 1 else None


def _p2p(_spec: RigSpec, facts: Facts) -> dict[str, Any]:
    arguments = {"cards": len(facts.gpus), "bytes": P2P_BYTES, "repeats": P2P_REPEATS}
    return script("p2p", arguments, python="torch", needs_cards=True)


DISK_LIMIT_S = 180
"""A disk that has not been written and read after so long is stopped, seconds."""
DISK_JOB_S = 10
"""Writing and reading are ended after so long each, seconds."""
DISK_SHARE, DISK_MOST_BYTES, DISK_LEAST_BYTES = 0.05, 4 * 1024**3, 64 * 1024**2
"""The file takes this share of what is free at most: 4 GiB are more than a disk's own cache, 64 MiB a start."""


def _disk(spec: RigSpec, _facts: Facts) -> dict[str, Any]:
    arguments = {
        "directory": spec.parts.disk_directory,
        "share": DISK_SHARE,
        "most_bytes": DISK_MOST_BYTES,
        "least_bytes": DISK_LEAST_BYTES,
        "seconds": DISK_JOB_S,
    }
    return script("disk", arguments, python="system", needs_cards=False)


HOST_MEMORY_LIMIT_S = 15_000
"""More than a test of the host's memory may ask for, seconds."""


def _host_memory(spec: RigSpec, _facts: Facts) -> dict[str, Any]:
    asked = spec.host_memory
    arguments = {"seconds": asked.seconds, "share": asked.share_of_free} if asked is not None else {}
    return script("host_memory", arguments, python="system", needs_cards=False)


WORKLOADS: tuple[Workload, ...] = (
    Workload("disk", DISK_LIMIT_S, lambda _spec: 2 * DISK_JOB_S, _disk),
    Workload(
        "host_memory",
        HOST_MEMORY_LIMIT_S,
        lambda spec: None if spec.host_memory is None else spec.host_memory.seconds,
        _host_memory,
    ),
    Workload("p2p", P2P_LIMIT_S, _p2p_s, _p2p),
    COMPUTE,
    GPU_MEMORY,
    Workload("train", TRAINING_LIMIT_S, _training_s, _training),
    TRAIN_ALL,
    DCGM,
    TRAIN_ACROSS,
)
"""In the order in which they run, after the burns."""
