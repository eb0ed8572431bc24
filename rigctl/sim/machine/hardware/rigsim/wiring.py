"""What faults do to links and bus: NVLinks, PCIe lanes, error counters, and the driver of a card that is gone.

Counters rise while a card works, as they do on real rigs: nothing goes wrong on a link that nobody uses.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .pcibus import root_port

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping, Sequence

    from .faults import Applied
    from .physics import Card

HANGS_AFTER_S = 1.0
"""So long after a card has fallen off the bus its driver answers nobody new."""
MS_PER_S = 1000
MOST_LINKS = 18


@dataclass(frozen=True)
class Damage:
    """Packets that are damaged by chance, each for itself: so many a second on average, counted while a card works."""

    per_s: float
    chance: random.Random

    def within(self, dt_s: float) -> int:
        """Return how many there are in the next `dt_s` seconds; what waits for the next one has no memory."""
        if self.per_s <= 0:
            return 0
        count, passed_s = 0, self.chance.expovariate(self.per_s)
        while passed_s <= dt_s:
            count, passed_s = count + 1, passed_s + self.chance.expovariate(self.per_s)
        return count


@dataclass
class Wiring:
    """Counters since the driver was loaded, and since when a card is gone."""

    link_errors: dict[tuple[int, int], float] = field(default_factory=dict)
    """By slot and link."""
    replays: dict[int, float] = field(default_factory=dict)
    port_errors: dict[str, float] = field(default_factory=dict)
    """Bad packets that a root port reported, by its address."""
    gone_s: float = 0.0
    """How long a card has been gone, seconds."""
    by_chance: Mapping[tuple[int, int], Damage] = field(default_factory=dict)
    """What NVLinks damage without any fault, by slot and link."""
    bus_by_chance: Mapping[int, Damage] = field(default_factory=dict)
    """The same on a card's PCIe link, by slot."""
    returned: frozenset[int] = frozenset()
    """Slots whose cards have come back, because their fault was taken back."""
    _fallen: frozenset[int] = frozenset()
    _faults: dict[str, dict[str, int]] = field(default_factory=dict)

    def step(
        self, dt_s: float, cards: Sequence[Card], active: Sequence[Applied], asleep: frozenset[int] = frozenset()
    ) -> frozenset[int]:
        """Advance by `dt_s` real seconds; return the slots whose cards are off the bus by a fault.

        `asleep` are those that did not come back from rest.
        """
        self._faults = faults = {one.name: one.values for one in active}
        busy = {card.parts.slot for card in cards if card.busy}
        self._damage(dt_s, busy)
        errors = faults.get("link_errors")
        if errors is not None and errors["slot"] in busy:
            key = errors["slot"], errors["link"]
            self.link_errors[key] = self.link_errors.get(key, 0.0) + errors["per_s"] * dt_s
        aer = faults.get("aer_root_port")
        if aer is not None and aer["slot"] in busy:
            port = root_port(aer["slot"])
            self.port_errors[port] = self.port_errors.get(port, 0.0) + aer["per_s"] * dt_s
        replays = faults.get("pcie_replays")
        if replays is not None and replays["slot"] in busy:
            self.replays[replays["slot"]] = self.replays.get(replays["slot"], 0.0) + replays["per_s"] * dt_s
        falls = faults.get("falls_off_bus")
        now = asleep | ({falls["slot"]} if falls is not None else frozenset())
        self.gone_s = self.gone_s + dt_s if now else 0.0
        self.returned, self._fallen = self._fallen - now, now
        return now

    def _damage(self, dt_s: float, busy: set[int]) -> None:
        for key, damage in self.by_chance.items():
            count = damage.within(dt_s) if key[0] in busy else 0
            if count:
                self.link_errors[key] = self.link_errors.get(key, 0.0) + count
        for slot, damage in self.bus_by_chance.items():
            count = damage.within(dt_s) if slot in busy else 0
            if count:
                self.replays[slot] = self.replays.get(slot, 0.0) + count

    @property
    def dead_links(self) -> frozenset[int]:
        """Numbers of the links without a signal."""
        if "links_inactive" in self._faults or "fabric_manager_off" in self._faults:
            return frozenset(range(MOST_LINKS))
        nv3 = self._faults.get("nv3")
        return frozenset({nv3["link"]}) if nv3 is not None else frozenset()

    def rig(self) -> dict[str, object]:
        """What the driver as a whole does."""
        slow = self._faults.get("slow_topo", {}).get("seconds", 0)
        return {
            "driver.hangs": int(self.gone_s > HANGS_AFTER_S),
            "driver.topology_ms": slow * MS_PER_S,
            "p2p.disabled": int("no_p2p" in self._faults),
        }

    def shown(self, prefix: str, card: Card, values: Mapping[str, Any]) -> dict[str, object]:
        """What a card shows of its links and lanes instead of the healthy values."""
        slot, changed = card.parts.slot, dict[str, object]()
        for (of, link), count in self.link_errors.items():
            if of == slot:
                changed[f"{prefix}.link.{link}.errors"] = int(count)
        if slot in self.replays:
            changed[f"{prefix}.pcie_replay"] = int(self.replays[slot])
        for name, key in (("pcie_narrow", "width"), ("pcie_slow", "gen")):
            fault = self._faults.get(name)
            if fault is not None and fault["slot"] == slot and card.busy:
                own = int(values[f"{prefix}.pcie_{key}"])
                changed[f"{prefix}.pcie_{key}"] = min(own, fault["lanes" if key == "width" else "generation"])
        return changed
