"""Loads that are switched on and off, on simulated hardware: all workers follow one timetable, as the agent's do."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rigctl.sim.machine.hardware.rigsim.physics import Card
    from rigctl.sim.nights.hardware import Hardware
    from rigctl.sim.nights.recorder import Recorder

TICK_S, SWITCHED_S, LATER_S = 0.1, 1.0, 1.0
"""Fine enough for a supply, which feels a rise within half a second: so for a second from a switch on, then coarser."""
PIECE_GFLOP = 2 * 4096**3 / 1e9
"""One piece of a card's work: the product of two matrices of 4096 rows."""
CPU_PIECES_PER_S = 1500.0
LATE_MS, FIRST_MS = 1.5, 20.0
CPU = "cpu"


@dataclass(frozen=True)
class Switched:
    """What came of it: `told` is what the step writes, None where it wrote nothing."""

    told: str | None
    stopped: str | None


def run(
    rig: Hardware, told: Recorder, step: str, stages: list[dict[str, Any]], every_s: float
) -> tuple[float, Switched, str]:
    """Run all stages, with a sample every `every_s` seconds; return the seconds, what came of it, and the log."""
    begun_s, log, found = told.passed_s, "", []
    for stage in stages:
        log += f"{stage['name']}: {stage['times']} times\n"
        done = {card.parts.slot: 0.0 for card in rig.present()} | {0: 0.0}
        ended = _Looks(rig, told, step, every_s)
        ended.wait(float(stage.get("rest_s", 0.0)))
        for _ in range(int(stage["times"])):
            rig.work(1.0, 1.0)
            ended.wait(float(stage["on_s"]), done)
            rig.work(0.0, 0.0)
            ended.wait(float(stage["off_s"]))
        if rig.off or ended.stopped is not None:
            return told.passed_s - begun_s, Switched(None, ended.stopped), log
        found.append(
            {**{key: stage[key] for key in ("name", "on_s", "off_s", "times")}, "workers": _workers(rig, done)}
        )
    return told.passed_s - begun_s, Switched(json.dumps({"stages": found}), None), log


@dataclass
class _Looks:
    """Lets time pass, with samples now and then, until the rig goes off or the guard stops the load."""

    rig: Hardware
    told: Recorder
    step: str
    every_s: float
    stopped: str | None = None
    _due_s: float = 0.0

    def wait(self, seconds: float, done: dict[int, float] | None = None) -> None:
        """Let so much time pass; `done` counts what each worker does meanwhile."""
        begun_s, end_s = self.told.passed_s, self.told.passed_s + seconds
        while (left_s := end_s - self.told.passed_s) > TICK_S / 2 and self.stopped is None and not self.rig.off:
            dt_s = TICK_S if self.told.passed_s - begun_s < SWITCHED_S else min(LATER_S, left_s)
            self.rig.tick(dt_s)
            if done is not None:
                for card in self.rig.present():
                    done[card.parts.slot] += _pieces(card) * dt_s
                done[0] += CPU_PIECES_PER_S * dt_s
            if self.told.passed_s >= self._due_s and not self.rig.off:
                self._due_s = self.told.passed_s + self.every_s
                self.stopped = self.told.look(self.step, steady=False)


def _pieces(card: Card) -> float:
    """Return how many pieces of work a card does in a second."""
    return card.gflops / PIECE_GFLOP


def _workers(rig: Hardware, done: dict[int, float]) -> list[dict[str, Any]]:
    names = {card.parts.slot: f"slot{number}" for number, card in enumerate(rig.present(), start=1)} | {0: CPU}
    return [
        {"what": names[slot], "done": int(count), "late_ms": LATE_MS, "first_ms": FIRST_MS, "wrong": 0}
        for slot, count in done.items()
    ]
