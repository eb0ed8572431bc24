"""The guard lets healthy burns alone, of every simulated class, cold and warm, ramped or not; and stops a dead pump."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest

from rigctl.agent.decide import Stop, decide
from rigctl.agent.ramp import STEPS
from rigctl.agent.seeing import Seeing, Thresholds
from rigctl.agent.situation import Limits, Situation
from rigctl.measure.plan import HISTORY_MARGIN_C
from rigctl.sim.machine.hardware.rigsim.build import build_machine
from rigctl.sim.machine.hardware.rigsim.identity import load_template, make_identity

if TYPE_CHECKING:
    from rigctl.sim.machine.hardware.rigsim.physics import Machine

CLASSES = (
    "dual_3090ti", "dual_4090", "dual_5090", "octo_4090", "octo_a100", "octo_h100", "quad_3090_blower", "quad_a6000",
)  # fmt: skip
SAMPLE_S = 0.25
TICK_S = 0.05
SPEC_C = 85.0
"""What a spec's guard_max_gpu_temp_c may say; each card's own slowdown − 5 holds beside it."""


class Rig:
    """A simulated machine under a burn, and what the guard would see of it."""

    def __init__(self, rig_class: str, seed: int, scale: float) -> None:
        identity = make_identity(load_template(rig_class), "rig1", seed=seed)
        self.machine: Machine = build_machine(identity, seed=seed)
        self.scale = scale
        self.own_w = [card.limit_w for card in self.machine.cards]
        self.lowest_w = float(identity["card"]["power_min_w"])
        self.t_s = 0.0

    def burn(self, seconds: float, ramp_s: float, history_c: dict[str, float]) -> tuple[Stop | None, list[list[float]]]:
        """The first reason to stop, or None; and each card's temperatures."""
        seeing, began_s, temps = Seeing(), self.t_s, [list[float]() for _ in self.machine.cards]
        limits = Limits(SPEC_C, 5, 60, tuple(map(uuid_of, range(len(temps)))), history_c)
        for card in self.machine.cards:
            card.load = 1.0
        stop = None
        while stop is None and self.t_s - began_s < seconds:
            self._advance(self.t_s - began_s, ramp_s)
            if self.t_s - began_s < ramp_s:
                seeing.unsteady(self.t_s)
            seeing.take(self._sample(temps), self._thresholds())
            stop = decide(limits, Situation(self.t_s, began_s, self.t_s, seeing.cards()))
        for card in self.machine.cards:
            card.load = 0.0
        return stop, temps

    def rest(self, seconds: float) -> None:
        for _ in range(round(seconds / TICK_S)):
            self.machine.step(TICK_S, self.scale)
            self.t_s += TICK_S

    def _advance(self, since_s: float, ramp_s: float) -> None:
        share = min(1.0, math.floor(since_s / ramp_s * STEPS) / STEPS) if ramp_s else 1.0
        for card, own in zip(self.machine.cards, self.own_w, strict=True):
            card.limit_w = self.lowest_w + (own - self.lowest_w) * share
        for _ in range(round(SAMPLE_S / TICK_S)):
            self.machine.step(TICK_S, self.scale)
            self.t_s += TICK_S

    def _sample(self, temps: list[list[float]]) -> dict[str, Any]:
        gpus = []
        for index, card in enumerate(self.machine.cards):
            # NVML says whole degrees.
            temp_c = float(round(card.temp_c))
            temps[index].append(temp_c)
            gpus.append({"uuid": uuid_of(index), "slot": index + 1, "temp_c": temp_c, "throttle": card.throttle})
        return {"t_mono_s": self.t_s, "gpus": gpus}

    def _thresholds(self) -> dict[str, Thresholds]:
        return {uuid_of(i): Thresholds(card.parts.temp_slowdown_c) for i, card in enumerate(self.machine.cards)}


def uuid_of(index: int) -> str:
    return f"GPU-{index}"


def settled(temps: list[list[float]]) -> dict[str, float]:
    """What a run would keep: each card's mean over the last third, and the margin on it."""
    thirds = [seen[-len(seen) // 3 :] for seen in temps]
    return {uuid_of(i): sum(third) / len(third) + HISTORY_MARGIN_C for i, third in enumerate(thirds)}


@pytest.mark.parametrize("rig_class", CLASSES)
@pytest.mark.parametrize(("scale", "seconds", "ramp_s"), [(1, 400, 5), (1, 400, 0), (20, 20, 2), (20, 30, 0)])
def test_a_healthy_burn_is_let_alone_cold_and_warm(rig_class: str, scale: float, seconds: float, ramp_s: float) -> None:
    rig = Rig(rig_class, seed=7, scale=scale)
    stop, temps = rig.burn(seconds, ramp_s, {})
    assert stop is None
    history = settled(temps)
    rig.rest(3)
    stop, _ = rig.burn(min(seconds, 60), ramp_s, history)
    assert stop is None, "warm, by its own history"
    cold, _ = Rig(rig_class, seed=8, scale=scale).burn(min(seconds, 60), ramp_s, history)
    assert cold is None, "cold, by its own history"


@pytest.mark.parametrize("ramp_s", [0, 5])
def test_a_dead_pump_is_stopped_below_the_limit_that_history_gives(ramp_s: float) -> None:
    rig = Rig("dual_3090ti", seed=7, scale=1)
    _, temps = rig.burn(400, ramp_s, {})
    history = settled(temps)
    rig.rest(300)
    rig.machine.flow = 0.0
    stop, temps = rig.burn(120, ramp_s, history)
    assert stop is not None
    assert (stop.reason, stop.limit_from) == ("temperature", "history")
    assert all(seen[-1] < history[uuid_of(index)] + 2 for index, seen in enumerate(temps))
