"""Steps beside the burns: each is one load of the agent, with what the spec says of it. Pure.

A workload is added by one entry in `WORKLOADS`, its name in `rigctl.model.spec.Workload`, and, where it is a program
of the agent, a file in `rigctl/agent/scripts/`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from rigctl.model.reading import Facts
    from rigctl.model.spec import RigSpec

TRAINING_LIMIT_S = 900
"""A training step that has not ended after so long is stopped, seconds."""


@dataclass(frozen=True)
class Workload:
    """One step that is neither rest nor burn."""

    name: str
    limit_s: float
    """It is stopped after so long, seconds."""
    expected_s: Callable[[RigSpec], float | None]
    """How long it is expected to take, seconds; None where the spec does not ask for it."""
    step: Callable[[RigSpec, Facts], dict[str, Any]]
    """What the plan's step holds beside name and seconds, as the agent reads it: `loads`, and what they need."""


def script(
    name: str, arguments: dict[str, Any], *, python: Literal["system", "torch"], needs_cards: bool
) -> dict[str, Any]:
    """Return the plan's words for a step that runs one of the agent's own programs."""
    program = {"name": name, "python": python, "arguments": arguments, "needs_cards": needs_cards}
    return {"loads": ["script"], "script": program}


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


WORKLOADS: tuple[Workload, ...] = (
    Workload("p2p", P2P_LIMIT_S, _p2p_s, _p2p),
    Workload("train", TRAINING_LIMIT_S, _training_s, _training),
)
"""In the order in which they run, after the burns."""
