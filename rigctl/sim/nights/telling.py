"""What a rig tells of its run: events and samples, in order, with their times."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rigctl.model.reading import RigEvent

MONO_S = 1000.0
"""CLOCK_MONOTONIC at the plan's beginning, seconds."""


@dataclass
class Telling:
    """The events of one run; `wall_s` is the time of day at its beginning."""

    wall_s: float
    events: list[RigEvent] = field(default_factory=list)

    def say(self, passed_s: float, event: str, step: str, **detail: Any) -> None:
        """Note an event at `passed_s` seconds after the beginning."""
        self.events.append(
            RigEvent(
                seq=len(self.events),
                t_mono_s=MONO_S + passed_s,
                t_wall_s=self.wall_s + passed_s,
                event=event,
                step=step,
                detail=detail,
            )
        )
