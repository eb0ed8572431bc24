"""Cards that do not wake rightly from rest: off the bus, or with clocks that stay low; not each time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .faults import Applied
    from .physics import Card

RESTED_S = 2.5
"""A card that had nothing to do for so long is asleep, real seconds."""
SLOW_SHARE = 0.3
"""The clock at which a card stays that woke badly, as a share."""


@dataclass
class Wakes:
    """How long each card has rested, and how often it has woken since its fault was applied."""

    _rested_s: dict[int, float] = field(default_factory=dict)
    _wakes: dict[int, int] = field(default_factory=dict)
    _lost: frozenset[int] = frozenset()

    def step(self, dt_s: float, cards: Sequence[Card], active: Sequence[Applied]) -> frozenset[int]:
        """Advance by `dt_s` real seconds; return the slots whose cards are off the bus since they should have woken."""
        by_name = {one.name: one.values for one in active}
        of_slot = {values["slot"]: (name, values) for name, values in by_name.items() if name in NAMES}
        for card in cards:
            slot = card.parts.slot
            name, values = of_slot.get(slot, ("", {}))
            if not name:
                self._wakes.pop(slot, None)
                card.awake_share = 1.0
            if card.load > 0 and self._rested_s.get(slot, 0.0) >= RESTED_S and name:
                self._wake(card, name, values)
            self._rested_s[slot] = 0.0 if card.load > 0 else self._rested_s.get(slot, 0.0) + dt_s
        self._lost = self._lost & frozenset(slot for slot, (name, _) in of_slot.items() if name == LOST)
        return self._lost

    def _wake(self, card: Card, name: str, values: dict[str, int]) -> None:
        slot = card.parts.slot
        self._wakes[slot] = self._wakes.get(slot, 0) + 1
        badly = self._wakes[slot] % values["every"] == 0
        card.awake_share = SLOW_SHARE if badly and name == SLOW else 1.0
        if badly and name == LOST:
            self._lost |= {slot}


LOST, SLOW = NAMES = ("lost_at_wake", "slow_at_wake")
