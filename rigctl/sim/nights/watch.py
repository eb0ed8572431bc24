"""The guard of a night: the agent's own seeing and deciding, fed with the night's samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rigctl.agent.decide import Stop, decide
from rigctl.agent.seeing import Seeing, Thresholds
from rigctl.agent.situation import Limits, Situation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rigctl.model.reading import Facts

MONO_S = 1000.0
"""CLOCK_MONOTONIC at a plan's beginning, seconds."""


class Watch:
    """Looks at each sample as the guard does, and says when the run must stop."""

    def __init__(self, plan: Mapping[str, Any], facts: Facts) -> None:
        self._limits = Limits(
            plan["max_gpu_temp_c"],
            plan["stale_sample_s"],
            plan["controller_lost_s"],
            tuple(plan["expected_gpus"]),
            plan["history_max_gpu_temp_c"],
            plan["max_gpu_memory_temp_c"],
            plan["max_cpu_temp_c"],
        )
        self._thresholds = {gpu.uuid: Thresholds(gpu.slowdown_temp_c, gpu.memory_max_temp_c) for gpu in facts.gpus}
        self._seeing = Seeing()

    def take(self, sample: Mapping[str, Any]) -> None:
        """Look at a sample."""
        self._seeing.take(sample, self._thresholds)

    def unsteady(self, now_s: float) -> None:
        """Note that the load is still being raised."""
        self._seeing.unsteady(now_s)

    def decide(self, now_s: float) -> Stop | None:
        """Return why the run must stop now; None where it may go on. The controller is heard, nobody else works."""
        seen = Situation(
            now_s=now_s,
            watched_since_s=MONO_S,
            heard_s=now_s,
            cards=self._seeing.cards(),
            processor=self._seeing.processor(),
            fans_still=self._seeing.fans_still(),
        )
        return decide(self._limits, seen)
