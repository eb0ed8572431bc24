"""What is said of a check before any run: its id, what it needs, where its limit comes from, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rigctl.checks.load import STEP_LOAD, WAKES, steps_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rigctl.model.spec import ProfileSpec

IDLE = ("idle",)
CPU = ("cpu_burn", "all_burn")
GPU = ("gpu_burn", "all_burn")
GPU_BURN = ("gpu_burn",)
LOADS = ("cpu_burn", "gpu_burn", "all_burn", "train", WAKES, STEP_LOAD)
NVML = "NVML"
BASELINE = "the rig's newest accepted run"
"""A limit that the rig sets itself."""
CARD = "the card"
"""A limit that the card tells of itself, through NVML."""


@dataclass(frozen=True)
class CheckInfo:
    """One check of the catalogue."""

    id: str
    title: str
    steps: tuple[str, ...] = ()
    """The check is listed when the profile asks for one of these steps; empty: always."""
    nvml: bool = False
    """It cannot be judged while NVML cannot be asked."""
    afterwards: bool = False
    """It is judged over the other verdicts, where there is anything to judge."""
    requires: tuple[str, ...] = ()
    """What must be there beside steps and NVML, in words: a tool, a sensor, an earlier run."""
    limit_from: tuple[str, ...] = ()
    """Where its limits come from: keys of the spec (`limits.max_idle_power_w`), or words."""
    fix: str = ""
    """What to do first when it fails; a verdict may know better."""

    def listed(self, profile: ProfileSpec) -> bool:
        """Whether a run with this profile must say something about the check."""
        return not self.afterwards and (not self.steps or bool(steps_of(profile) & set(self.steps)))

    @property
    def needs(self) -> tuple[str, ...]:
        """Everything that it requires, NVML first."""
        return (*((NVML,) if self.nvml else ()), *self.requires)

    def seconds(self, expected: Mapping[str, float]) -> float:
        """Return how long the steps take on which it is judged, seconds; other checks share them.

        Args:
            expected: How long each step of a profile is expected to take on a rig, seconds. A check that needs no
                step is judged on what is read in any case, and adds nothing.
        """
        return sum((expected.get(step, 0.0) for step in self.steps), 0.0)
