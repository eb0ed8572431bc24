"""One rig's hardware for a night: physics, wiring and faults, advanced by whoever measures it."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rigctl.sim.machine.hardware.rigsim import changes, electrical, thermal
from rigctl.sim.machine.hardware.rigsim.build import build_machine
from rigctl.sim.machine.hardware.rigsim.mains import Supply
from rigctl.sim.machine.hardware.rigsim.memory import CardMemory
from rigctl.sim.machine.hardware.rigsim.physics import MAX_STEP_S
from rigctl.sim.machine.hardware.rigsim.wakes import Wakes
from rigctl.sim.machine.hardware.rigsim.wiring import Damage, Wiring

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rigctl.sim.machine.hardware.rigsim.faults import Applied
    from rigctl.sim.machine.hardware.rigsim.physics import Card

XID_GONE = "NVRM: Xid (PCI:{bus}): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
"""As the driver writes it where a card is gone."""


@dataclass(frozen=True)
class Conditions:
    """What a night is like for a healthy rig: season and age, nothing of it a fault."""

    room_c: float | None = None
    """None: as the class says, or as a fault has it."""
    air: float = 1.0
    """The air through radiator and case, as a share of a clean rig's."""
    flow: float = 1.0
    """What the pump moves, as a share of a new one's."""
    seats: tuple[float, ...] = ()
    """How well the plate of each card sits, as a share of a fresh one's, in the order of the slots."""
    meter: float = 1.0
    """What the wall meter shows of the power."""
    link_errors_per_s: Mapping[tuple[int, int], float] = field(default_factory=dict)
    """Packets that NVLinks damage by chance while the card works, by slot and link."""
    replays_per_s: Mapping[int, float] = field(default_factory=dict)
    """Packets that cards send over PCIe again, by slot."""


@dataclass
class Hardware:
    """One rig: its cards, what cools and feeds them, and what is wrong with it."""

    given: Mapping[str, Any]
    """The rig's identity as it was built."""
    faults: Sequence[Applied] = ()
    conditions: Conditions = field(default_factory=Conditions)
    seed: int = 0
    most_step_s: float = MAX_STEP_S
    """The physics advances by no more at once, seconds."""

    def __post_init__(self) -> None:
        """Build it, cold, with the faults that are there from the beginning."""
        self.machine = build_machine(dict(self.given), self.seed)
        self.machine.most_step_s = self.most_step_s
        self.wiring, self.wakes, self.supply = self._wired(), Wakes(), Supply()
        self.memory = CardMemory()
        self.off = False
        """Whether its supply has gone off under it."""
        self.limits_w = {card.parts.slot: card.limit_w for card in self.machine.cards}
        """What the driver was told to hold each card to, W, by slot."""
        self.kernel: list[tuple[float, str]] = []
        """What the driver wrote into the kernel's log, with the time since the beginning, seconds."""
        self.passed_s = 0.0
        self.identity: dict[str, Any] = {}
        self._active: tuple[str, ...] | None = None
        self._meter = electrical.Shown()
        self._noise = random.Random(f"{self.seed}:meter")  # noqa: S311 - noise, to be repeatable
        self._follow()
        for card in self.machine.cards:
            card.temp_c = self.machine.room_c
        self.machine.coolant_c = self.machine.room_c

    def _wired(self) -> Wiring:
        """Return links and bus with what they damage by chance."""
        age, chance = self.conditions, random.Random(f"{self.seed}:links")  # noqa: S311 - noise, to be repeatable
        return Wiring(
            by_chance={key: Damage(per_s, chance) for key, per_s in age.link_errors_per_s.items()},
            bus_by_chance={slot: Damage(per_s, chance) for slot, per_s in age.replays_per_s.items()},
        )

    @property
    def active(self) -> list[Applied]:
        """The faults that have happened."""
        return [one for one in self.faults if one.active]

    def fault(self, name: str) -> dict[str, int] | None:
        """Return the values of a fault that has happened; None where it has not."""
        return next((one.values for one in self.active if one.name == name), None)

    def happen(self) -> None:
        """Let the faults that wait for a load happen."""
        for one in self.faults:
            if one.status == "waiting for a load":
                one.status = "active"

    def present(self) -> list[Card]:
        """Return the cards that the bus shows, in its order: that is NVML's and the agent's."""
        missing = self.fault("card_missing")
        cards = [card for card in self.machine.cards if missing is None or card.parts.slot != missing["slot"]]
        return sorted(cards, key=lambda card: str(self.own(card)["pci_bus_id"]))

    def own(self, card: Card) -> dict[str, Any]:
        """Return what belongs to one card of the rig's identity as it is now."""
        return next(one for one in self.identity["cards"] if int(one["slot"]) == card.parts.slot)

    def common(self, card: Card) -> dict[str, Any]:
        """Return what the card's model is: the class's, or another one that sits there instead."""
        return {**self.identity["card"], **self.own(card).get("instead", {})}

    def work(self, cards: float, cpu: float, slots: Sequence[int] = ()) -> None:
        """Ask `cards` of every card (or of those in `slots`) and `cpu` of the processor, each 0 to 1."""
        here = {card.parts.slot for card in self.present()}
        for card in self.machine.cards:
            asked = card.parts.slot in here and (not slots or card.parts.slot in slots)
            card.load = cards if asked else 0.0
        self.machine.cpu_load = cpu

    def tick(self, dt_s: float) -> None:
        """Advance by `dt_s` seconds."""
        self._follow()
        asleep = self.wakes.step(dt_s, self.machine.cards, self.active)
        self.machine.step(dt_s)
        self.passed_s += dt_s
        self.off = self.off or self.supply.trips(dt_s, self.machine.wall_w, self.active)
        self._tell_of_memory(dt_s)
        falls = self.wiring.step(dt_s, self.machine.cards, self.active, asleep)
        for card in self.machine.cards:
            gone = card.parts.slot in falls or card.temp_c >= card.parts.temp_shutdown_c
            if gone and not card.lost:
                bus = str(self.own(card)["pci_bus_id"])[4:-2]
                self.kernel.append((self.passed_s, XID_GONE.format(bus=bus)))
            card.lost = gone or card.lost

    def _tell_of_memory(self, dt_s: float) -> None:
        """Let the cards' memory count its errors, and the driver say what it has to say of them."""
        ecc = bool(self.identity["card"].get("ecc"))
        here = {card.parts.slot: card for card in self.present()}
        for slot, told in self.memory.step(dt_s, self.machine.cards, self.active, ecc=ecc):
            if slot in here:
                bus = str(self.own(here[slot])["pci_bus_id"])[4:-2]
                self.kernel.append((self.passed_s, f"NVRM: Xid (PCI:{bus}): {told}"))

    @property
    def hangs(self) -> bool:
        """Whether the driver answers nobody any more."""
        return bool(self.wiring.rig()["driver.hangs"])

    def wall_w(self) -> float | None:
        """Return what the wall meter shows now, W; None where it does not answer."""
        shown = self._meter.power_w(self.machine.wall_w, self.active) * self.conditions.meter
        if self.fault("wall_meter_offline") is not None:
            return None
        noise = 1 + self._noise.gauss(0, 0.002) if self.fault("wall_meter_stuck") is None else 1.0
        return float(round(shown * noise))

    def _follow(self) -> None:
        active, machine, age = self.active, self.machine, self.conditions
        names = tuple(one.name for one in active)
        if names != self._active:
            self._active, self.identity = names, changes.changed(self.given, active)
        for card in machine.cards:
            card.limit_w = self.limits_w[card.parts.slot]
        thermal.follow(machine, active)
        electrical.follow(machine, active)
        if age.room_c is not None and self.fault("room_warm") is None:
            machine.room_c = age.room_c
        machine.air *= age.air
        machine.flow *= age.flow
        for card, seat in zip(machine.cards, age.seats, strict=False):
            card.seating *= seat
