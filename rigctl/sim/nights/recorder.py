"""What is written down of a night while it runs: samples and events, each looked at by the guard at once."""

from __future__ import annotations

import random
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from rigctl.model.reading import GpuSample, RigEvent, Sample
from rigctl.sim.machine.hardware.rigsim import thermal
from rigctl.sim.nights import shown
from rigctl.sim.nights.watch import MONO_S, Watch

if TYPE_CHECKING:
    from rigctl.sim.nights.hardware import Hardware

TACHOMETERS = "nct6798"
"""The chip of the board that counts the fans' pulses."""
ON_ITS_WAY_S = 0.4
"""A sample is at the controller so much later: it polls about once a second."""
CLOCK_NOISE = 0.002
"""How much a mean of the cores' clocks moves from one look to the next, as a standard deviation."""


@dataclass
class Recorder:
    """Samples and events of one rig from the plan's beginning on."""

    rig: Hardware
    watch: Watch
    boot_id: str
    wall_s: float
    """The time of day at the beginning."""
    seed: int
    samples: list[Sample] = field(default_factory=list)
    events: list[RigEvent] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Begin now."""
        self._begun_s = self.rig.passed_s
        self._noise = random.Random(f"{self.seed}:clock")  # noqa: S311 - noise, to be repeatable
        self._links = {
            card.parts.slot: tuple(link["active"] for link in shown.links(self.rig, card))
            for card in self.rig.present()
        }

    @property
    def passed_s(self) -> float:
        """Seconds since the beginning."""
        return self.rig.passed_s - self._begun_s

    @property
    def begun_s(self) -> float:
        """The rig's own time at the beginning, seconds."""
        return self._begun_s

    def say(self, event: str, step: str, **detail: Any) -> None:
        """Note an event."""
        self.events.append(
            RigEvent(
                seq=len(self.events),
                t_mono_s=MONO_S + self.passed_s,
                t_wall_s=self.wall_s + self.passed_s,
                event=event,
                step=step,
                detail=detail,
            )
        )

    def look(self, step: str, *, steady: bool = True) -> str | None:
        """Take a sample and let the guard decide; return why it stops the load, None where it does not."""
        now_s = MONO_S + self.passed_s
        if not steady:
            self.watch.unsteady(now_s)
        self.sample(step)
        stop = self.watch.decide(now_s)
        if stop is None:
            return None
        self.say("guard_stopped", step, **{key: value for key, value in asdict(stop).items() if value is not None})
        return stop.reason

    def sample(self, step: str) -> None:
        """Take one sample of everything; a driver that hangs lets nobody."""
        rig, seq = self.rig, len(self.samples)
        if rig.hangs:
            return
        seen = [
            shown.sample(rig, card, slot, self._links[card.parts.slot])
            for slot, card in enumerate(rig.present(), start=1)
        ]
        fans = thermal.tachometers(rig.machine, rig.identity, rig.active, seq)
        wall_w = rig.wall_w()
        taken: dict[str, Any] = {
            "seq": seq,
            "t_mono_s": MONO_S + self.passed_s,
            "t_wall_s": self.wall_s + self.passed_s,
            "boot_id": self.boot_id,
            "step": step,
            # k10temp counts in eighths of a degree.
            "cpu_temp_c": round(rig.machine.cpu_temp_c * 8) / 8,
            "cpu_power_w": rig.machine.cpu_w,
            "cpu_util_pct": 100 * rig.machine.cpu_load,
            "cpu_mhz": round(rig.machine.cpu_mhz * self._noise.gauss(1.0, CLOCK_NOISE), 1),
            "fans_rpm": {f"{TACHOMETERS} {label}": rpm for label, rpm in fans.items()},
            "wall_power_w": wall_w,
            "wall_error": None if wall_w is not None else "connection refused",
            "cpu_throttles": None,
            "coolant_temps_c": {},
            "room_temps_c": {},
            "controller_wall_s": self.wall_s + self.passed_s + ON_ITS_WAY_S,
        }
        self.watch.take(taken | {"gpus": seen})
        gpus = tuple(GpuSample.model_construct(**one) for one in seen)
        self.samples.append(Sample.model_construct(**taken, gpus=gpus))
