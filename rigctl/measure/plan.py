"""From spec and profile to the plan that the agent carries out under its guard. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rigctl.measure.switched import seconds, switched_stages, switched_step
from rigctl.measure.workloads import WORKLOADS

if TYPE_CHECKING:
    from rigctl.measure.claim import Claim
    from rigctl.measure.workload import Workload
    from rigctl.model.baseline import Baseline
    from rigctl.model.reading import Facts
    from rigctl.model.spec import ProfileSpec, RigSpec

STALE_SAMPLE_S = 5
"""The burn stops itself after so long without a valid sample of every card, seconds."""
HISTORY_MARGIN_C = 15
"""A card may become so much hotter than it ever settled at in this rig's accepted runs, °C; then its burn stops."""
LOADS = {"idle": (), "cpu_burn": ("cpu",), "gpu_burn": ("gpu",), "all_burn": ("cpu", "gpu")}
"""Rest and burns in the order in which they run, and what each puts to work."""


def step_seconds(spec: RigSpec, profile: ProfileSpec, *, first: bool = True) -> dict[str, float]:
    """Return the steps that are run and how long each is expected to take, seconds.

    `first`: whether this is the rig's first acceptance, at which a profile may ask for more.
    """
    asked = {
        "idle": profile.idle_seconds,
        "cpu_burn": profile.cpu_burn_seconds,
        "gpu_burn": profile.gpu_burn_seconds,
        "all_burn": profile.all_burn_seconds,
    }
    steps = {name: seconds for name, seconds in asked.items() if seconds > 0}
    for workload in _workloads(profile):
        expected = workload.expected_s(spec)
        if expected is not None:
            steps[workload.name] = expected
    switched = switched_stages(spec, profile, first=first)
    return steps | {name: seconds(stages) for name, stages in switched.items()}


def _workloads(profile: ProfileSpec) -> list[Workload]:
    names = {*profile.workloads, *(("train",) if profile.train else ())}
    return [workload for workload in WORKLOADS if workload.name in names]


def has_load(spec: RigSpec, profile: ProfileSpec, *, first: bool = True) -> bool:
    """Whether the profile puts any load on the rig."""
    return any(LOADS.get(name, (name,)) for name in step_seconds(spec, profile, first=first))


def history_limits(facts: Facts, baseline: Baseline | None) -> dict[str, float]:
    """What each card may reach by the rig's own history, °C, by UUID; cards that are new here have none."""
    settled = baseline.settled_max_c if baseline is not None else {}
    return {gpu.uuid: settled[gpu.uuid] + HISTORY_MARGIN_C for gpu in facts.gpus if gpu.uuid in settled}


def _meter(spec: RigSpec) -> dict[str, Any] | None:
    """Return how the agent asks the wall meter; None where the rig has none, or its own part is not written."""
    meter = spec.wall_meter
    if meter is None or meter.asked is None:
        return None
    return meter.model_dump(mode="json", exclude={"required"}, exclude_defaults=True)


def build_plan(  # noqa: PLR0913 - all that a plan is made of
    run_id: str,
    spec: RigSpec,
    profile: ProfileSpec,
    facts: Facts,
    claim: Claim,
    *,
    baseline: Baseline | None = None,
) -> dict[str, Any]:
    """Return the plan as the agent's `start` reads it (JSON object)."""
    first = baseline is None
    asked = step_seconds(spec, profile, first=first)
    steps: list[dict[str, Any]] = [
        {"name": name, "seconds": asked[name], "loads": list(loads)} for name, loads in LOADS.items() if name in asked
    ]
    steps += [
        {"name": workload.name, "seconds": workload.limit_s, **workload.step(spec, facts)}
        for workload in _workloads(profile)
        if workload.name in asked
    ]
    steps += [
        switched_step(name, stages, spec, facts) for name, stages in switched_stages(spec, profile, first=first).items()
    ]
    return {
        "run_id": run_id,
        "sample_hz": profile.sample_hz,
        "controller_lost_s": profile.controller_lost_s,
        "max_gpu_temp_c": spec.limits.guard_max_gpu_temp_c,
        "max_gpu_memory_temp_c": spec.limits.guard_max_gpu_memory_temp_c,
        "max_cpu_temp_c": spec.limits.guard_max_cpu_temp_c,
        "ramp_s": profile.ramp_seconds,
        "asked_by": claim.asked_by,
        "evict_users": claim.evict_users,
        "ignore_lock": claim.ignore_lock,
        "upgrade": claim.upgrade,
        "history_max_gpu_temp_c": history_limits(facts, baseline),
        "stale_sample_s": STALE_SAMPLE_S,
        "expected_gpus": [gpu.uuid for gpu in facts.gpus],
        "wall_meter": _meter(spec),
        "gpu_burn_dir": spec.software.gpu_burn_dir,
        "torch_venv": spec.software.torch_venv,
        "steps": steps,
    }
