"""Loads that are switched on and off: their timetable, which the rig follows and the checks expect. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rigctl.model.spec import ProfileSpec, RigSpec

STEP_LOAD_HZ = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""How often a second cards and CPU are switched together: supplies and cables ring at different paces."""


@dataclass(frozen=True)
class Stage:
    """So many turns of work and rest, one after another."""

    name: str
    on_s: float
    off_s: float
    times: int
    rest_s: float = 0.0
    """Before the stage nobody holds a card for so long, seconds."""

    @property
    def seconds(self) -> float:
        """How long it takes, its rest included, seconds."""
        return self.rest_s + self.times * (self.on_s + self.off_s)


def step_load_stages(profile: ProfileSpec) -> tuple[Stage, ...]:
    """Return the stages of a step load: equal time for each pace, and each pace once at least."""
    share_s = profile.step_load_seconds / len(STEP_LOAD_HZ)
    return tuple(Stage(f"{hz:g} Hz", 0.5 / hz, 0.5 / hz, max(1, round(share_s * hz))) for hz in STEP_LOAD_HZ)


def wake_stages(profile: ProfileSpec) -> tuple[Stage, ...]:
    """Return the stages of rest and wake: each a rest, then work without a break."""
    on_s, rest_s = profile.wake_load_seconds, profile.wake_rest_seconds
    return tuple(Stage(f"wake {number}", on_s, 0.0, 1, rest_s) for number in range(1, profile.wakes + 1))


def step_load_asked(spec: RigSpec, profile: ProfileSpec, *, first: bool) -> bool:
    """Whether the step load is run: asked for by the profile, due now, and allowed by the spec.

    Args:
        spec: The rig's spec.
        profile: The profile.
        first: Whether this is the rig's first acceptance.
    """
    due = first or not profile.step_load_only_first
    return profile.step_load_seconds > 0 and due and spec.allow_step_load
