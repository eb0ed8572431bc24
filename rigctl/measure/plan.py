"""From spec and profile to the plan that the agent carries out under its guard. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rigctl.model.reading import Facts
    from rigctl.model.spec import ProfileSpec, RigSpec

STALE_SAMPLE_S = 5
"""The burn stops itself after so long without a valid sample of every card, seconds."""
TRAINING_LIMIT_S = 900
"""A training step that has not ended after so long is stopped, seconds."""

LOADS = {
    "idle": (),
    "cpu_burn": ("cpu",),
    "gpu_burn": ("gpu",),
    "all_burn": ("cpu", "gpu"),
    "train": ("train",),
}
"""Load steps in the order in which they run, and what each puts to work."""


def step_seconds(spec: RigSpec, profile: ProfileSpec) -> dict[str, float]:
    """Return the steps that the profile asks for and how long each is expected to take, seconds."""
    asked = {
        "idle": profile.idle_seconds,
        "cpu_burn": profile.cpu_burn_seconds,
        "gpu_burn": profile.gpu_burn_seconds,
        "all_burn": profile.all_burn_seconds,
    }
    steps = {name: seconds for name, seconds in asked.items() if seconds > 0}
    if profile.train and spec.training is not None:
        steps["train"] = _training_seconds(spec)
    return steps


def _training_seconds(spec: RigSpec) -> float:
    """Expect a training at the floor's pace, plus 15 s to start the framework."""
    training = spec.training
    if training is None:
        return 0.0
    tokens = training.seq_len * training.micro_batch * training.grad_accum
    steps = training.warmup_steps + training.measured_steps
    return 15 + tokens * steps / training.min_tokens_per_s


def has_load(spec: RigSpec, profile: ProfileSpec) -> bool:
    """Whether the profile puts any load on the rig."""
    return any(LOADS[name] for name in step_seconds(spec, profile))


def build_plan(run_id: str, spec: RigSpec, profile: ProfileSpec, facts: Facts) -> dict[str, Any]:
    """Return the plan as the agent's `start` reads it (JSON object)."""
    steps: list[dict[str, Any]] = []
    for name, seconds in step_seconds(spec, profile).items():
        step: dict[str, Any] = {"name": name, "seconds": seconds, "loads": list(LOADS[name])}
        if name == "train" and spec.training is not None:
            step["seconds"] = TRAINING_LIMIT_S
            step["training"] = spec.training.model_dump(mode="json")
        steps.append(step)
    meter = spec.wall_meter
    return {
        "run_id": run_id,
        "sample_hz": profile.sample_hz,
        "controller_lost_s": profile.controller_lost_s,
        "max_gpu_temp_c": spec.limits.guard_max_gpu_temp_c,
        "stale_sample_s": STALE_SAMPLE_S,
        "expected_gpus": [gpu.uuid for gpu in facts.gpus],
        "wall_meter": {"form": meter.form, "url": meter.url} if meter is not None and meter.url else None,
        "gpu_burn_dir": spec.software.gpu_burn_dir,
        "torch_venv": spec.software.torch_venv,
        "steps": steps,
    }
