"""The plan's steps, carried out one after another on simulated hardware, as the guard does on a rig."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rigctl.sim.nights import switched
from rigctl.sim.nights.programs import DISK, PROGRAMS, Program, Turn, tell
from rigctl.sim.nights.watch import MONO_S
from rigctl.sim.nights.work import GpuBurn, stress_ng

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rigctl.model.spec import ProfileSpec, RigSpec
    from rigctl.sim.nights.board import Board
    from rigctl.sim.nights.hardware import Hardware
    from rigctl.sim.nights.recorder import Recorder

RAMP_STEPS = 4
RAMP_SHARE = 0.1
"""As the guard's ramp: so many steps, and this share of a burn at most."""
ENDING_S = 1.0
"""Between two steps a load ends and the next one begins, seconds."""


@dataclass
class Carrier:
    """Carries out one plan."""

    spec: RigSpec
    profile: ProfileSpec
    rig: Hardware
    board: Board
    told: Recorder
    seed: int
    logs: dict[str, str] = field(default_factory=dict)
    stopped: str | None = None
    """Why the guard stopped the run; None: it did not."""

    def __post_init__(self) -> None:
        """Prepare the noise of what is measured."""
        self._chance = random.Random(f"{self.seed}:work")  # noqa: S311 - noise, to be repeatable

    def carry_out(self, steps: list[dict[str, Any]], expected_s: Mapping[str, float]) -> None:
        """Run each step, of which each is expected to take so long; a rig that goes off runs none after it."""
        for step in steps:
            name = str(step["name"])
            if self.rig.off:
                return
            if self.stopped is not None:
                self.told.say("step_skipped", name, because=f"the guard stopped the run: {self.stopped}")
                continue
            self._step(name, step, expected_s[name])

    def _step(self, name: str, step: Mapping[str, Any], seconds: float) -> None:
        loads = [str(load) for load in step["loads"]]
        self.told.say("step_started", name, seconds=seconds, loads=loads)
        for number, load in enumerate(loads):
            argv = ["./gpu_burn", "-c", "compare.fatbin", f"{seconds:.0f}"] if load == "gpu" else [load]
            self.told.say("load_started", name, load=load, pid=4000 + number, argv=argv)
        if _uses_cards(loads, step):
            self.rig.happen()
        stages = step.get("script", {}).get("arguments", {}).get("stages")
        ran_s = self._switched(name, stages) if stages else self._steady(name, loads, seconds)
        if self.rig.off:
            return
        self.rig.work(0.0, 0.0)
        self.rig.tick(ENDING_S)
        status = 0 if self.stopped is None else -15
        for number, load in enumerate(loads):
            end = {"load": load, "pid": 4000 + number, "exit_status": status, "seconds": ran_s, "overran": False}
            self.told.say("load_exited", name, **end)
        self.told.say("step_finished", name, seconds=ran_s)

    def _switched(self, name: str, stages: list[dict[str, Any]]) -> float:
        """Switch cards and processor on and off; return how long that took, seconds."""
        ran_s, result, log = switched.run(self.rig, self.told, name, stages, 1 / self.profile.sample_hz)
        self.stopped = result.stopped
        self.logs[f"{name}.log"] = log
        if result.told is not None:
            self.logs[f"{name}.json"] = result.told
        return ran_s

    def _steady(self, name: str, loads: list[str], seconds: float) -> float:
        """Put to work, and let it run; return how long it did, seconds."""
        burn = GpuBurn(self.rig, seconds) if "gpu" in loads else None
        asked, begun_s = self._asked(name, loads), MONO_S + self.told.passed_s
        self.rig.work(asked.cards, asked.cpu, asked.slots)
        ran_s = self._run(name, seconds, burn)
        ended = self.stopped is None
        if burn is not None:
            self.logs[f"{name}.log"] = burn.text(ended=ended)
        if "cpu" in loads and ended:
            self.logs[f"{name}{'_cpu' if burn is not None else ''}.yaml"] = stress_ng(seconds, self._chance)
        if name == DISK and ended:
            self.logs["disk.json"] = self.board.disk_speed()
        elif name in PROGRAMS and ended:
            turn = Turn(self.rig, self.spec, self._chance, (begun_s, MONO_S + self.told.passed_s))
            self.logs[f"{name}.json"] = tell(name, turn)
        return ran_s

    def _asked(self, name: str, loads: list[str]) -> Program:
        """Return what a step asks of cards and processor."""
        if name in PROGRAMS:
            return PROGRAMS[name]
        cards = 1.0 if "gpu" in loads else 0.0
        # Each worker of a card keeps one thread of the processor busy.
        feeding = cards * len(self.rig.machine.cards) / self.rig.identity["cpu"]["threads"]
        return Program(lambda _turn: {}, cards, 1.0 if "cpu" in loads else feeding)

    def _run(self, name: str, seconds: float, burn: GpuBurn | None) -> float:
        dt_s = 1 / self.profile.sample_hz
        ramp_s = min(self.profile.ramp_seconds, seconds * RAMP_SHARE) if burn is not None else 0.0
        own = dict(self.rig.limits_w)
        passed_s = 0.0
        while passed_s < seconds and self.stopped is None:
            ramps = passed_s < ramp_s
            self.rig.limits_w = self._ramped(own, passed_s / ramp_s) if ramps else own
            self.rig.tick(dt_s)
            passed_s += dt_s
            if burn is not None:
                burn.follow(passed_s, dt_s)
            self.stopped = self.told.look("ramp" if ramps else name, steady=not ramps)
        self.rig.limits_w = own
        return passed_s

    def _ramped(self, own: dict[int, float], share: float) -> dict[int, float]:
        low = float(self.rig.identity["card"]["power_min_w"])
        done = (int(share * RAMP_STEPS) + 1) / (RAMP_STEPS + 1)
        return {slot: low + (limit - low) * done for slot, limit in own.items()}


def _uses_cards(loads: list[str], step: Mapping[str, Any]) -> bool:
    return bool({"gpu", "train"} & set(loads)) or bool(step.get("script", {}).get("needs_cards"))
