"""What faults of the cooling do to the physics, and what tachometers say of it.

A fault changes what moves heat: water, air, the seat of a plate, the room. Sensors then show what follows, except where
the sensor itself is what is broken.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .faults import Applied
    from .physics import Machine

ONE_FAN_LESS = 0.2
"""The air through a radiator one of whose fans stands still, as a share: the others push it back out there."""
FAN_JITTER_RPM = 9
"""A tachometer counts pulses of something that turns: no two readings are quite alike."""


def follow(machine: Machine, active: Sequence[Applied]) -> None:
    """Set what moves heat as the active faults want it; without any, as it should be."""
    by_name = {one.name: one.values for one in active}
    stuck = by_name.get("fan_stuck")
    water = not any(card.parts.fan_curve for card in machine.cards)
    machine.flow = 0.0 if "pump_dead" in by_name else by_name.get("pump_weak", {}).get("pct", 100) / 100
    machine.room_c = float(by_name["room_warm"]["celsius"]) if "room_warm" in by_name else machine.parts.ambient_c
    machine.air = by_name.get("air_blocked", {}).get("pct", 100) / 100
    if "tachometer_lies" in by_name or (water and stuck is not None):
        machine.air *= ONE_FAN_LESS
    plate = by_name.get("plate_badly_seated", {})
    for card in machine.cards:
        card.seating = plate["pct"] / 100 if plate.get("slot") == card.parts.slot else 1.0
        card.fan_stuck_pct = 0.0 if stuck is not None and not water and stuck["slot"] == card.parts.slot else None


def shown(prefix: str, slot: int, active: Sequence[Applied]) -> dict[str, object]:
    """What a broken sensor of a card says instead of the truth."""
    broken = any(one.name == "sensors_invalid" and one.values["slot"] == slot for one in active)
    return {f"{prefix}.temp_c": "0.00"} if broken else {}


def tachometers(machine: Machine, identity: Mapping[str, Any], applied: Sequence[Applied], tick: int) -> dict[str, int]:
    """Speeds of the radiator's fans, rpm, by label: they follow the water; none on a rig without a radiator."""
    fans: Mapping[str, Any] = identity["loop"].get("fans", {})
    names = {one.name for one in applied if one.active}
    rise = max(0.0, min(1.0, (machine.coolant_c - machine.room_c) / 10.0))
    speeds: dict[str, int] = {}
    for number, (label, limits) in enumerate(fans.items()):
        broken = number == 0 and names & {"fan_stuck", "tachometer_lies"}
        slow, fast = limits
        if broken:
            speeds[label] = int(fast) if "tachometer_lies" in names else 0
        else:
            jitter = random.Random(f"{label}:{tick}").randint(-FAN_JITTER_RPM, FAN_JITTER_RPM)  # noqa: S311 (noise)
            speeds[label] = round(slow + (fast - slow) * rise) + jitter
    return speeds
