"""The plan's steps that switch cards and CPU on and off together. Pure."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rigctl.checks.load import STEP_LOAD, WAKES
from rigctl.measure.workload import script
from rigctl.model.switched import step_load_asked, step_load_stages, wake_stages

if TYPE_CHECKING:
    from rigctl.model.reading import Facts
    from rigctl.model.spec import ProfileSpec, RigSpec
    from rigctl.model.switched import Stage

MATRIX = 4096
"""Rows and columns of the matrices that are multiplied: 5 ms of a card of 25 Tflop/s, short beside 0.1 s of work."""
STAGE_MARGIN_S = 10
"""Opening the cards, sync and asking who is logged in take a stage at most so much longer, seconds."""
START_MARGIN_S = 60
"""CUDA's start takes seconds a card where no persistence daemon holds the driver."""


def switched_stages(spec: RigSpec, profile: ProfileSpec, *, first: bool) -> dict[str, tuple[Stage, ...]]:
    """Return the switched steps that are run, in their order, and the stages of each.

    The step load is the last step of all: a supply that does not bear it takes the rig with it.
    """
    steps = {WAKES: wake_stages(profile)} if profile.wakes else {}
    if step_load_asked(spec, profile, first=first):
        steps[STEP_LOAD] = step_load_stages(profile)
    return steps


def seconds(stages: tuple[Stage, ...]) -> float:
    """Return how long the stages are expected to take, seconds."""
    return sum(stage.seconds for stage in stages)


def switched_step(name: str, stages: tuple[Stage, ...], spec: RigSpec, facts: Facts) -> dict[str, Any]:
    """Return one step as the agent reads it."""
    arguments = {
        "cards": [{"slot": gpu.slot, "uuid": gpu.uuid} for gpu in facts.gpus],
        "stages": [asdict(stage) for stage in stages],
        "size": MATRIX,
        "torch_venv": spec.software.torch_venv,
        # Who works on a rig loses it when the supply goes off.
        "alone": name == STEP_LOAD,
    }
    step = script("switched", arguments, python="system", needs_cards=True)
    step["script"]["switches"] = True
    limit_s = seconds(stages) + STAGE_MARGIN_S * len(stages) + START_MARGIN_S
    return {"name": name, "seconds": limit_s, **step}
