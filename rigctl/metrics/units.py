"""The units in which checks say their figures, and Prometheus' base unit for each."""

from __future__ import annotations

import re

KB, MIB = 1000, 1 << 20
_UNITS = {
    "°C": ("celsius", 1.0),
    "°C/W": ("celsius_per_watt", 1.0),
    "W": ("watts", 1.0),
    "s": ("seconds", 1.0),
    "Hz": ("hertz", 1.0),
    "MHz": ("hertz", 1e6),
    "rpm": ("revolutions_per_minute", 1.0),
    "share": ("ratio", 1.0),
    "×": ("ratio", 1.0),
    "of its best wake": ("ratio", 1.0),
    "%": ("ratio", 0.01),
    "% used": ("ratio", 0.01),
    "% spare": ("ratio", 0.01),
    "MiB": ("bytes", float(MIB)),
    "GB": ("bytes", float(KB**3)),
    "GB free": ("bytes", float(KB**3)),
    "wrong bytes": ("bytes", 1.0),
    "MB/s": ("bytes_per_second", float(KB**2)),
    "GB/s": ("bytes_per_second", float(KB**3)),
    "Mbit/s": ("bytes_per_second", KB**2 / 8),
    "Gflop/s": ("flop_per_second", float(KB**3)),
    "TFLOP/s": ("flop_per_second", float(KB**4)),
    "tokens/s": ("tokens_per_second", 1.0),
    "tokens/J": ("tokens_per_joule", 1.0),
}
"""Name and factor. What counts something (`errors`, `lanes`) keeps its word; a disk's GB is 1000³ bytes."""


_OVER = " over "


def base(unit: str | None) -> tuple[str, float]:
    """Return the base unit's name and what a figure is multiplied with; empty where a figure has no unit."""
    if unit is None:
        return "", 1.0
    plain, _, _ = unit.partition(_OVER)
    known = _UNITS.get(plain)
    return known if known is not None else (re.sub(r"[^a-z0-9]+", "_", unit.lower()).strip("_"), 1.0)


def over(unit: str | None) -> str:
    """Return against what a figure is measured, where its unit says so: `coolant`, `its own rest`."""
    return (unit or "").partition(_OVER)[2].removeprefix("the ")
