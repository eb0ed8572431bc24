"""`-q` in text, whole or the sections that `-d` names."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from .throttle import EVENT_NAMES_FROM, REASONS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .card import Card

N_A = "N/A"
LABEL_WIDTH = 34
Row = tuple[str, object]


def render(cards: Sequence[Card], version: str, cuda: str, branch: int, wanted: Sequence[str]) -> str:
    """The log; KeyError names a section that does not exist."""
    sections = {name: SECTIONS[name] for name in wanted} if wanted else SECTIONS
    lines = ["", "==============NVSMI LOG==============", ""]
    lines.append(_line(0, "Timestamp", time.strftime("%a %b %e %H:%M:%S %Y")))
    lines += [_line(0, "Driver Version", version), _line(0, "CUDA Version", cuda), ""]
    lines.append(_line(0, "Attached GPUs", len(cards)))
    for card in cards:
        lines.append(f"GPU {card.bus_id}")
        if not wanted:
            lines += [_line(1, label, value) for label, value in _identity(card)]
        for ask in sections.values():
            title, rows = ask(card, branch)
            lines.append(f"    {title}")
            lines += [_line(2, label, value) for label, value in rows]
        lines.append("")
    return "\n".join(lines) + "\n"


def _line(depth: int, label: str, value: object) -> str:
    pad = " " * 4 * depth
    return f"{pad}{label:<{41 - len(pad)}} : {value}"


def _identity(card: Card) -> list[Row]:
    return [
        ("Product Name", card.name),
        ("Product Brand", card.kind()[0]),
        ("Product Architecture", card.kind()[1]),
        ("Persistence Mode", "Enabled" if card.number("persistence") else "Disabled"),
        ("Serial Number", card.text("Serial") or N_A),
        ("GPU UUID", card.uuid),
        ("Minor Number", card.number("minor")),
        ("VBIOS Version", card.text("VbiosVersion")),
        ("Fan Speed", N_A if card.number("fan") is None else f"{card.number('fan')} %"),
    ]


def _temperature(card: Card, _: int) -> tuple[str, list[Row]]:
    return "Temperature", [
        ("GPU Current Temp", f"{card.temperature()} C"),
        ("GPU Shutdown Temp", f"{card.threshold('shutdown')} C"),
        ("GPU Slowdown Temp", f"{card.threshold('slowdown')} C"),
        ("GPU Max Operating Temp", f"{card.threshold('max')} C"),
        ("GPU Target Temperature", f"{card.threshold('target')} C"),
        ("Memory Current Temp", N_A),
        ("Memory Max Operating Temp", N_A),
    ]


def _power(card: Card, _: int) -> tuple[str, list[Row]]:
    low, high = card.power_range()
    limit = _watts(card.number("limit_mw"))
    return "Power Readings", [
        ("Power Management", "Supported"),
        ("Power Draw", _watts(card.number("power_mw"))),
        ("Power Limit", limit),
        ("Default Power Limit", _watts(card.number("default_mw"))),
        ("Enforced Power Limit", _watts(card.number("enforced_mw"))),
        ("Min Power Limit", _watts(low)),
        ("Max Power Limit", _watts(high)),
    ]


def _clock(card: Card, _: int) -> tuple[str, list[Row]]:
    clocks = (("Graphics", "graphics"), ("SM", "sm"), ("Memory", "memory"), ("Video", "video"))
    return "Clocks", [(label, f"{card.clock(key)} MHz") for label, key in clocks]


def _memory(card: Card, _: int) -> tuple[str, list[Row]]:
    memory = card.memory_mib()
    return "FB Memory Usage", [(key.title(), f"{memory[key]} MiB") for key in ("total", "reserved", "used", "free")]


def _utilization(card: Card, _: int) -> tuple[str, list[Row]]:
    rates = card.utilization()
    return "Utilization", [("Gpu", f"{rates.gpu} %"), ("Memory", f"{rates.memory} %")]


def _performance(card: Card, branch: int) -> tuple[str, list[Row]]:
    mask = card.throttle()
    word = "Event" if branch >= EVENT_NAMES_FROM else "Throttle"
    reasons = [(f"    {name}", "Active" if mask & bit else "Not Active") for name, bit in REASONS.items()]
    return "Performance", [("State", f"P{card.number('pstate')}"), (f"Clocks {word} Reasons", ""), *reasons]


def _watts(milliwatts: int | None) -> str:
    return N_A if milliwatts is None else f"{milliwatts / 1000:.2f} W"


SECTIONS: dict[str, Callable[[Card, int], tuple[str, list[Row]]]] = {
    "MEMORY": _memory,
    "UTILIZATION": _utilization,
    "TEMPERATURE": _temperature,
    "POWER": _power,
    "CLOCK": _clock,
    "PERFORMANCE": _performance,
}
