"""The physics of one rig: pure, no files, no clock of its own.

A card is one heat capacity (die and water block or heat sink) that gives its heat to the coolant, which is the air of
the case where fans cool it; the coolant is one heat capacity that gives it to the room. Power follows load, is capped
at the limit, and falls with the clocks when a thermal limit bites. `dt_s` is simulated time: a time scale shortens
every time constant here and nothing else.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

THROTTLE_IDLE = 0x1
THROTTLE_POWER_CAP = 0x4
THROTTLE_HW_SLOWDOWN = 0x8
THROTTLE_SW_THERMAL = 0x20
THROTTLE_HW_THERMAL = 0x40
THROTTLE_POWER_BRAKE = 0x80

POWER_EXPONENT = 2.4
"""Dynamic power over clock: frequency times voltage squared, with voltage rising less than the clock."""
FLOW_EXPONENT = 0.6
"""Heat transfer over flow, as in a turbulent channel."""
LEAKAGE_W_PER_C = 0.12
"""A warmer die draws a little more at the same clock."""
RAMP_S = 0.4
"""Power follows a load step with this time constant."""
SW_THERMAL_SHARE = 0.4
"""The share of the clock that the driver takes away by itself between target and slowdown temperature."""
HW_SLOWDOWN_FACTOR = 0.25
"""What the hardware leaves of the clock from the slowdown temperature on."""
POWER_BRAKE_FACTOR = 0.5
"""What a card keeps of its clock while supply or board signal power brake."""
HW_RELEASE_C = 4.0
"""The hardware releases the clock this far below the slowdown temperature."""
CPU_WORKS_SHARE = 0.25
"""From so much load on a processor runs at its burn's clock: a governor does not wait until the last core works, and a
rig on a busy host does not get all of the core that it asks for."""
MAX_STEP_S = 0.05
CLOCK_STEP_MHZ = 15
NOISE_W = 1.2
NOISE_KEPT = 0.9


@dataclass(frozen=True)
class CardParts:
    """What a card is made of. `conductance_w_per_c` is die to coolant at full flow."""

    slot: int
    idle_w: float
    burn_w: float
    settled_temp_c: float
    conductance_w_per_c: float
    stagnant_w_per_c: float
    capacity_j_per_c: float
    temp_target_c: float
    temp_slowdown_c: float
    temp_shutdown_c: float
    sm_idle_mhz: int
    sm_burn_mhz: int
    burn_gflops: float
    hotspot_over_c: float = 0.0
    """How much hotter than the sensor the hottest spot of the die is under a burn, °C; 0 where nobody shows it."""
    fan_curve: tuple[tuple[float, float], ...] = ()
    """What is asked of the card's fans by temperature (°C, %); empty for a card that water cools."""


@dataclass
class Card:
    """One card at one moment. `load` is what programs ask of it, 0 to 1."""

    parts: CardParts
    temp_c: float
    limit_w: float
    most_w: float | None = None
    """What the card keeps to by itself, whatever limit it is told, W; None: to that limit."""
    load: float = 0.0
    activity: float = 0.0
    power_w: float = 0.0
    sm_mhz: int = 0
    clock_share: float = 1.0
    throttle: int = THROTTLE_IDLE
    energy_j: float = 0.0
    hw_slowdown: bool = False
    power_brake: bool = False
    idle_extra_w: float = 0.0
    """What the card draws at rest beyond its standby, W."""
    lost: bool = False
    pace: float = 1.0
    """What the card gets done at its clock, as a share of what it should."""
    awake_share: float = 1.0
    """The clock that the card reaches since it woke last, as a share."""
    seating: float = 1.0
    """How well the cold plate or heat sink sits: 1, or the share of the heat path that is left."""
    fan_stuck_pct: float | None = None
    """Where the card's fans stay, whatever is asked of them, %; None: they do what is asked."""
    noise: random.Random = field(default_factory=random.Random)
    noise_w: float = 0.0

    def step(self, dt_s: float, coolant_c: float, flow: float) -> float:
        """Advance by `dt_s` seconds; return the heat that went into the coolant, in watts."""
        parts = self.parts
        if self.lost:
            self.load = 0.0
        self.activity += (self.load - self.activity) * min(1.0, dt_s / RAMP_S)
        self._choose_clock()
        self.power_w = 0.0 if self.lost else self._power(self.clock_share)
        moved = parts.conductance_w_per_c - parts.stagnant_w_per_c
        conductance = parts.stagnant_w_per_c + moved * float((flow * self.airflow) ** FLOW_EXPONENT)
        heat_w = self.seating * conductance * (self.temp_c - coolant_c)
        self.temp_c += (self.power_w - heat_w) * dt_s / parts.capacity_j_per_c
        return heat_w

    def tremble(self) -> None:
        """Draw the next value of the sensor noise, which wanders rather than jumps."""
        self.noise_w = NOISE_KEPT * self.noise_w + self.noise.gauss(0.0, NOISE_W * (1 - NOISE_KEPT**2) ** 0.5)
        steps = round(self.parts.sm_burn_mhz * self.clock_share / CLOCK_STEP_MHZ + self.noise.gauss(0.0, 0.4))
        floor = self.parts.sm_idle_mhz
        self.sm_mhz = max(floor, steps * CLOCK_STEP_MHZ) if self.busy else floor

    @property
    def busy(self) -> bool:
        """Whether a program keeps the card working."""
        return self.load > 0 and not self.lost

    @property
    def hotspot_c(self) -> float:
        """The hottest spot of the die: it is further above the sensor where the plate sits badly, °C."""
        return self.temp_c + self.parts.hotspot_over_c * self.power_w / self.parts.burn_w / self.seating

    @property
    def fan_asked_pct(self) -> float:
        """What is asked of the card's fans now, %; 0 where it has none."""
        return between(self.parts.fan_curve, self.temp_c) if self.parts.fan_curve else 0.0

    @property
    def airflow(self) -> float:
        """The air that the card's own fans move, as a share of what they move where the card settles; 1 under water."""
        if not self.parts.fan_curve:
            return 1.0
        turning_pct = self.fan_asked_pct if self.fan_stuck_pct is None else self.fan_stuck_pct
        return turning_pct / between(self.parts.fan_curve, self.parts.settled_temp_c)

    @property
    def shown_power_w(self) -> float:
        """What the power sensor says: with noise, never below the card's standby draw."""
        scale = 1.0 if self.busy else 0.25
        return 0.0 if self.lost else max(0.5 * self.parts.idle_w, self.power_w + scale * self.noise_w)

    @property
    def gflops(self) -> float:
        """FP32 rate of gpu-burn's matrix product at the present clock."""
        return 0.0 if self.lost else self.pace * self.parts.burn_gflops * self.sm_mhz / self.parts.sm_burn_mhz

    def _power(self, clock_share: float) -> float:
        parts = self.parts
        leak_w = LEAKAGE_W_PER_C * (self.temp_c - parts.settled_temp_c)
        dynamic_w = parts.burn_w - parts.idle_w + leak_w
        resting_w = parts.idle_w + (1 - self.activity) * self.idle_extra_w
        return resting_w + self.activity * dynamic_w * float(clock_share**POWER_EXPONENT)

    def _choose_clock(self) -> None:
        parts = self.parts
        self._follow_hw_slowdown()
        if not self.busy:
            self.clock_share = 1.0
            self.throttle = THROTTLE_IDLE | (THROTTLE_HW_SLOWDOWN | THROTTLE_HW_THERMAL if self.hw_slowdown else 0)
            return
        throttle, share = 0, 1.0
        wanted_w = self._power(1.0)
        if wanted_w > self.limit_w:
            throttle |= THROTTLE_POWER_CAP
            room = max(0.0, self.limit_w - parts.idle_w) / (wanted_w - parts.idle_w)
            share = room ** (1 / POWER_EXPONENT)
        over = (self.temp_c - parts.temp_target_c) / (parts.temp_slowdown_c - parts.temp_target_c)
        if over > 0:
            throttle |= THROTTLE_SW_THERMAL
            share = min(share, 1.0 - SW_THERMAL_SHARE * min(1.0, over))
        if self.hw_slowdown:
            throttle |= THROTTLE_HW_SLOWDOWN | THROTTLE_HW_THERMAL
            share = min(share, HW_SLOWDOWN_FACTOR)
        if self.power_brake:
            throttle |= THROTTLE_HW_SLOWDOWN | THROTTLE_POWER_BRAKE
            share = min(share, POWER_BRAKE_FACTOR)
        share = min(share, self.awake_share)
        floor = parts.sm_idle_mhz / parts.sm_burn_mhz
        self.clock_share, self.throttle = max(share, floor), throttle

    def _follow_hw_slowdown(self) -> None:
        if self.temp_c >= self.parts.temp_slowdown_c:
            self.hw_slowdown = True
        elif self.temp_c < self.parts.temp_slowdown_c - HW_RELEASE_C:
            self.hw_slowdown = False


@dataclass(frozen=True)
class MachineParts:
    """The rest of the rig: CPU, loop, supply. Efficiencies are points (watts out, share)."""

    ambient_c: float
    coolant_conductance_w_per_c: float
    coolant_capacity_j_per_c: float
    cpu_idle_w: float
    cpu_full_w: float
    cpu_r_c_per_w: float
    cpu_tau_s: float
    rest_w: float
    rest_per_w: float
    supply_efficiency: tuple[tuple[float, float], ...]
    cpu_rest_mhz: float = 2200.0
    cpu_burn_mhz: float = 4200.0
    """What all cores run at under full load."""
    cpu_nominal_mhz: float = 3700.0
    """What the processor's maker promises for that, as AMD states it of the 12-core Ryzen 9 5900X."""


@dataclass
class Machine:
    """A whole rig. `flow` is the pump's, 0 (dead) to 1; `cpu_load` is 0 to 1 of the CPU."""

    parts: MachineParts
    cards: list[Card]
    coolant_c: float
    flow: float = 1.0
    room_c: float = 24.0
    """How warm the room is now, °C."""
    air: float = 1.0
    """The air through radiator and case: 1, or the share of it that is left."""
    cpu_load: float = 0.0
    cpu_clock_share: float = 1.0
    """What is left of the processor's clock, where something holds it back."""
    most_step_s: float = MAX_STEP_S
    """The physics advances by no more at once, seconds; what settles does not depend on it."""
    cpu_temp_c: float = 0.0
    cpu_energy_j: float = 0.0
    noise: random.Random = field(default_factory=lambda: random.Random(0))  # noqa: S311 (noise of sensors, repeatable)

    def step(self, dt_s: float, time_scale: float = 1.0) -> None:
        """Advance by `dt_s` real seconds, in which temperatures live through `dt_s * time_scale`."""
        simulated_s = dt_s * time_scale
        count = max(1, round(simulated_s / self.most_step_s))
        for _ in range(count):
            self._small_step(simulated_s / count)
        for card in self.cards:
            card.tremble()
            card.energy_j += card.shown_power_w * dt_s
        self.cpu_energy_j += self.cpu_w * dt_s

    def _small_step(self, dt_s: float) -> None:
        parts = self.parts
        heat_w = sum(card.step(dt_s, self.coolant_c, self.flow) for card in self.cards)
        given_w = (
            parts.coolant_conductance_w_per_c
            * float((self.flow * self.air) ** FLOW_EXPONENT)
            * (self.coolant_c - self.room_c)
        )
        self.coolant_c += (heat_w - given_w) * dt_s / parts.coolant_capacity_j_per_c
        target_c = self.room_c + parts.cpu_r_c_per_w * self.cpu_w
        self.cpu_temp_c += (target_c - self.cpu_temp_c) * min(1.0, dt_s / parts.cpu_tau_s)

    @property
    def cpu_w(self) -> float:
        """Package power of the CPU."""
        dynamic_w = self.cpu_load * (self.parts.cpu_full_w - self.parts.cpu_idle_w)
        return self.parts.cpu_idle_w + dynamic_w * float(self.cpu_clock_share**POWER_EXPONENT)

    @property
    def cpu_mhz(self) -> float:
        """Mean clock of the processor's cores."""
        parts = self.parts
        works = min(1.0, self.cpu_load / CPU_WORKS_SHARE)
        wanted = parts.cpu_rest_mhz + works * (parts.cpu_burn_mhz - parts.cpu_rest_mhz)
        return min(wanted, parts.cpu_burn_mhz * self.cpu_clock_share)

    @property
    def wall_w(self) -> float:
        """What the wall meter sees: cards, CPU and the rest, through the supply."""
        parts = self.parts
        idle_w = parts.cpu_idle_w + sum(card.parts.idle_w for card in self.cards)
        loads_w = self.cpu_w + sum(card.shown_power_w for card in self.cards)
        out_w = loads_w + parts.rest_w + parts.rest_per_w * max(0.0, loads_w - idle_w)
        return out_w / between(parts.supply_efficiency, out_w)


def between(points: Sequence[tuple[float, float]], x: float) -> float:
    """Linear interpolation, constant outside the points."""
    if x <= points[0][0]:
        return points[0][1]
    for (x0, y0), (x1, y1) in itertools.pairwise(points):
        if x <= x1:
            return y0 + (y1 - y0) * (x - x0) / (x1 - x0)
    return points[-1][1]
