"""What surrounds the cards: temperatures of the coolant and of the room, from hwmon sensors that are labelled so.

Which sensor is which only its label tells: `Coolant temp` of pumps and controllers for water (kernel documentation:
hwmon/aquacomputer_d5next, nzxt-kraken2, nzxt-kraken3), `Ambient`, `Inlet` or `Intake` of server and workstation
boards. Sensors without such a label are left alone: a board's `SYSTIN` may hang anywhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .cpu import SYS

if TYPE_CHECKING:
    from pathlib import Path

_COOLANT = re.compile(r"coolant|water|liquid", re.IGNORECASE)
_ROOM = re.compile(r"ambient|inlet|intake|room", re.IGNORECASE)
BELIEVED_C = (-20.0, 90.0)
"""Neither water in a loop nor the air of a room is outside this; a sensor that is not plugged in says -128 or 127."""


@dataclass
class Surroundings:
    """The sensors, looked for once: reading them is all that a sample costs."""

    sys: Path = SYS
    _coolant: dict[str, Path] = field(default_factory=dict)
    _room: dict[str, Path] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Look for the sensors."""
        for chip in sorted((self.sys / "class/hwmon").glob("hwmon*")):
            for entry in sorted(chip.glob("temp*_input")):
                label = _text(entry.with_name(entry.name.replace("_input", "_label"))) or ""
                name = f"{_text(chip / 'name') or chip.name} {label}"
                if _COOLANT.search(label):
                    self._coolant[name] = entry
                elif _ROOM.search(label):
                    self._room[name] = entry

    def read(self) -> dict[str, dict[str, float]]:
        """Temperatures by `CHIP LABEL`, °C; a sensor that cannot be read, or not be believed, is left out."""
        return {"coolant_temps_c": _temperatures(self._coolant), "room_temps_c": _temperatures(self._room)}


def _temperatures(sensors: dict[str, Path]) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, path in sensors.items():
        text = _text(path) or ""
        temp_c = int(text) / 1000 if re.fullmatch(r"-?\d{1,9}", text) else None
        if temp_c is not None and BELIEVED_C[0] < temp_c < BELIEVED_C[1]:
            found[name] = temp_c
    return found


def _text(path: Path) -> str | None:
    """A small kernel file's text; None where it is not there or cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
