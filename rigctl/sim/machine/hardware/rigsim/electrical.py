"""What faults of the power do to cards, processor and wall meter.

A low limit, power brake, no rest; cards that get less done; a processor that is held back; a meter that lies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .faults import Applied
    from .physics import Machine


def follow(machine: Machine, active: Sequence[Applied], driver: str | None = None) -> None:
    """Set what the active faults want of each card; its limit must have been set before.

    Args:
        machine: The rig.
        active: The faults that have happened.
        driver: Version of the loaded module; None where none is.
    """
    by_name = {one.name: one.values for one in active}

    def of(name: str, slot: int) -> dict[str, int]:
        values = by_name.get(name, {})
        return values if values.get("slot") == slot else {}

    machine.cpu_clock_share = by_name.get("cpu_throttled", {}).get("pct", 100) / 100
    slow = by_name.get("cards_slow", {"pct": 100, "since": 0})
    branch = int((driver or "0").partition(".")[0])
    for card in machine.cards:
        slot = card.parts.slot
        card.pace = slow["pct"] / 100 if branch >= slow["since"] else 1.0
        card.most_w = of("power_limit_low", slot).get("watts")
        card.limit_w = min(card.limit_w, card.most_w or card.limit_w)
        card.power_brake = bool(of("power_brake", slot))
        card.idle_extra_w = float(of("idle_power_high", slot).get("watts", 0))


class Shown:
    """What the wall meter shows of the power at the wall."""

    def __init__(self) -> None:
        self._last_w: float | None = None

    def power_w(self, wall_w: float, active: Sequence[Applied]) -> float:
        """As it is; as it was when the meter got stuck; or a wrong share of it."""
        by_name = {one.name: one.values for one in active}
        if "wall_meter_stuck" not in by_name or self._last_w is None:
            self._last_w = wall_w
        return self._last_w * by_name.get("wall_meter_absurd", {}).get("pct", 100) / 100
