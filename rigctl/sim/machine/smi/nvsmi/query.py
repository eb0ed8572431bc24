"""`--query-gpu` and `--query-compute-apps`: comma-separated values."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from .throttle import EVENT_NAMES_FROM, REASONS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .card import Card

ABSENT = "[N/A]"
CLOCKS = ("graphics", "sm", "memory", "video")


@dataclass(frozen=True)
class Column:
    """One field: the name in the header, the unit, and how to ask a card."""

    name: str
    unit: str
    ask: Callable[[Card], object]


@dataclass(frozen=True)
class System:
    """What is the same for every card."""

    version: str
    count: int


def columns(system: System, branch: int) -> dict[str, Column]:
    """Every field that can be asked, by each of its names."""
    own = [*_identity(system), *_electric(), *_rates()]
    found = {column.name: column for column in own}
    for column in own:  # `clocks.current.sm` may be asked as `clocks.sm`, `gpu_name` as `name`
        if column.name.startswith("clocks.current."):
            found[column.name.replace("current.", "")] = column
    for kind in ("", "max."):  # the short names of the manual page
        for short, name in (("gr", "graphics"), ("mem", "memory")):
            found[f"clocks.{kind}{short}"] = found[f"clocks.{kind}{name}"]
    found |= {"gpu_name": found["name"], "gpu_uuid": found["uuid"], "gpu_bus_id": found["pci.bus_id"]}
    return found | _throttle(branch)


def _identity(system: System) -> list[Column]:
    return [
        Column("timestamp", "", lambda _: time.strftime("%Y/%m/%d %H:%M:%S.000")),
        Column("driver_version", "", lambda _: system.version),
        Column("count", "", lambda _: system.count),
        Column("index", "", lambda card: card.index),
        Column("name", "", lambda card: card.name),
        Column("uuid", "", lambda card: card.uuid),
        Column("serial", "", lambda card: card.text("Serial")),
        Column("vbios_version", "", lambda card: card.text("VbiosVersion")),
        Column("compute_cap", "", lambda card: card.compute_capability()),
        Column("pci.bus_id", "", lambda card: card.bus_id),
        Column("pci.domain", "", lambda card: f"0x{card.pci.domain:04X}"),
        Column("pci.bus", "", lambda card: f"0x{card.pci.bus:02X}"),
        Column("pci.device", "", lambda card: f"0x{card.pci.device:02X}"),
        Column("pci.device_id", "", lambda card: f"0x{card.pci.pciDeviceId:08X}"),
        Column("pci.sub_device_id", "", lambda card: f"0x{card.pci.pciSubSystemId:08X}"),
        Column("pcie.link.gen.current", "", lambda card: card.number("pcie_gen")),
        Column("pcie.link.gen.max", "", lambda card: card.number("pcie_gen_max")),
        Column("pcie.link.width.current", "", lambda card: card.number("pcie_width")),
        Column("pcie.link.width.max", "", lambda card: card.number("pcie_width_max")),
        Column("persistence_mode", "", lambda card: "Enabled" if card.number("persistence") else "Disabled"),
        Column("display_active", "", lambda _: "Disabled"),
        Column("display_mode", "", lambda _: "Disabled"),
        Column("compute_mode", "", lambda _: "Default"),
        Column("pstate", "", lambda card: f"P{card.number('pstate')}"),
        Column("mig.mode.current", "", lambda _: None),
        Column("ecc.mode.current", "", lambda _: None),
        Column("ecc.errors.uncorrected.volatile.total", "", lambda _: None),
    ]


def _electric() -> list[Column]:
    return [
        Column("power.management", "", lambda _: "Enabled"),
        Column("power.draw", "W", lambda card: _watts(card.number("power_mw"))),
        Column("power.limit", "W", lambda card: _watts(card.number("limit_mw"))),
        Column("enforced.power.limit", "W", lambda card: _watts(card.number("enforced_mw"))),
        Column("power.default_limit", "W", lambda card: _watts(card.number("default_mw"))),
        Column("power.min_limit", "W", lambda card: _watts(card.power_range()[0])),
        Column("power.max_limit", "W", lambda card: _watts(card.power_range()[1])),
        Column("temperature.gpu", "", lambda card: card.temperature()),
        Column("temperature.memory", "", lambda _: "N/A"),
        Column("fan.speed", "%", lambda card: card.number("fan")),
    ]


def _rates() -> list[Column]:
    return [
        Column("utilization.gpu", "%", lambda card: card.utilization().gpu),
        Column("utilization.memory", "%", lambda card: card.utilization().memory),
        *(Column(f"memory.{key}", "MiB", partial(_memory, key)) for key in ("total", "reserved", "used", "free")),
        *(Column(f"clocks.current.{name}", "MHz", partial(_clock, name)) for name in CLOCKS),
        *(Column(f"clocks.max.{name}", "MHz", partial(_max_clock, name)) for name in CLOCKS if name != "video"),
    ]


def _memory(key: str, card: Card) -> int:
    return card.memory_mib()[key]


def _clock(name: str, card: Card) -> int | None:
    return card.clock(name)


def _max_clock(name: str, card: Card) -> int | None:
    return card.clock(name, highest=True)


def _reason(bit: int, card: Card) -> str:
    return "Active" if card.throttle() & bit else "Not Active"


def _throttle(branch: int) -> dict[str, Column]:
    """Both names are understood from 535 on, and the header says the newer one."""
    old, new = "clocks_throttle_reasons", "clocks_event_reasons"
    prefixes = [old, new] if branch >= EVENT_NAMES_FROM else [old]
    shown = prefixes[-1]
    found = {}
    for prefix in prefixes:
        found[f"{prefix}.active"] = Column(f"{shown}.active", "", lambda card: f"0x{card.throttle():016X}")
        for name, bit in REASONS.items():
            found[f"{prefix}.{name}"] = Column(f"{shown}.{name}", "", partial(_reason, bit))
    return found


def _watts(milliwatts: int | None) -> str | None:
    return None if milliwatts is None else f"{milliwatts / 1000:.2f}"


def render(cards: Sequence[Card], wanted: Sequence[Column], options: set[str]) -> str:
    """The lines; options are `noheader` and `nounits`."""
    units = "nounits" not in options
    lines = [] if "noheader" in options else [", ".join(_header(column) for column in wanted)]
    lines += [", ".join(_value(column, card, units=units) for column in wanted) for card in cards]
    return "".join(f"{line}\n" for line in lines)


def render_processes(cards: Sequence[Card], names: Sequence[str], options: set[str]) -> str:
    """`--query-compute-apps`; unknown names raise KeyError."""
    titles = {"pid": "pid", "process_name": "process_name", "name": "process_name", "gpu_uuid": "gpu_uuid"}
    titles |= {"gpu_name": "gpu_name", "gpu_bus_id": "gpu_bus_id"}
    titles |= dict.fromkeys(("used_memory", "used_gpu_memory"), "used_gpu_memory [MiB]")
    unit = "" if "nounits" in options else " MiB"
    lines = [] if "noheader" in options else [", ".join(titles[name] for name in names)]
    for card in cards:
        for pid, process, memory in card.processes():
            values: dict[str, object] = {
                "pid": pid,
                "process_name": process,
                "used_gpu_memory [MiB]": f"{memory}{unit}",
            }
            values |= {"gpu_uuid": card.uuid, "gpu_name": card.name, "gpu_bus_id": card.bus_id}
            lines.append(", ".join(str(values[titles[name]]) for name in names))
    return "".join(f"{line}\n" for line in lines)


def _header(column: Column) -> str:
    """The header keeps its units, even with `nounits`."""
    return f"{column.name} [{column.unit}]" if column.unit else column.name


def _value(column: Column, card: Card, *, units: bool) -> str:
    value = column.ask(card)
    if value is None:
        return ABSENT
    return f"{value} {column.unit}" if column.unit and units else str(value)
