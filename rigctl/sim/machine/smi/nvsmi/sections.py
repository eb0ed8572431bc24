"""`-q -x`: the XML form. One nested table of names and values, written for each driver branch."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

from .throttle import EVENT_NAMES_FROM, REASONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .card import Card

V12_FROM, V13_FROM, AVERAGE_POWER_FROM, EVENTS_FROM = 525, 595, 570, EVENT_NAMES_FROM
N_A = "N/A"
Element = tuple[str, Any]
"""A name, and a text or the elements inside."""


def render(cards: Sequence[Card], version: str, cuda: str, branch: int) -> str:
    """The whole document."""
    dtd = "v13" if branch >= V13_FROM else "v12" if branch >= V12_FROM else "v11"
    indent = "\t" if branch >= V12_FROM else "    "
    lines = [
        '<?xml version="1.0" ?>',
        f'<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_{dtd}.dtd">',
        "<nvidia_smi_log>",
    ]
    head: list[Element] = [
        ("timestamp", time.strftime("%a %b %e %H:%M:%S %Y")),
        ("driver_version", version),
        ("cuda_version", cuda),
        ("attached_gpus", len(cards)),
    ]
    lines += _lines(head, indent, 1)
    for card in cards:
        lines.append(f'{indent}<gpu id="{card.bus_id}">')
        lines += _lines(card_elements(card, branch), indent, 2)
        lines += [f"{indent}</gpu>", ""]
    return "\n".join([*lines, "</nvidia_smi_log>"]) + "\n"


def card_elements(card: Card, branch: int) -> list[Element]:
    """Everything about one card."""
    memory, bar1, rates = card.memory_mib(), card.bar1_mib(), card.utilization()
    return [
        *_identity(card),
        ("pci", _pci(card)),
        ("fan_speed", _unit(card.number("fan"), "%")),
        ("performance_state", f"P{card.number('pstate')}"),
        _throttle(card, branch),
        ("fb_memory_usage", [(key, f"{memory[key]} MiB") for key in ("total", "reserved", "used", "free")]),
        ("bar1_memory_usage", [(key, f"{bar1[key]} MiB") for key in ("total", "used", "free")]),
        ("compute_mode", "Default"),
        ("utilization", _utilization(rates.gpu, rates.memory)),
        ("encoder_stats", _zeros()),
        ("fbc_stats", _zeros()),
        ("ecc_mode", [("current_ecc", N_A), ("pending_ecc", N_A)]),
        ("ecc_errors", [(period, _ecc_counts()) for period in ("volatile", "aggregate")]),
        ("retired_pages", _retired_pages()),
        ("remapped_rows", N_A),
        ("temperature", _temperature(card)),
        ("supported_gpu_target_temp", [("gpu_target_temp_min", "65 C"), ("gpu_target_temp_max", "91 C")]),
        _power(card, branch),
        *_clocks(card),
        ("processes", [("process_info", _process(*process)) for process in card.processes()]),
        ("accounted_processes", []),
    ]


def _identity(card: Card) -> list[Element]:
    return [
        ("product_name", card.name),
        ("product_brand", card.kind()[0]),
        ("product_architecture", card.kind()[1]),
        ("display_mode", "Disabled"),
        ("display_active", "Disabled"),
        ("persistence_mode", "Enabled" if card.number("persistence") else "Disabled"),
        ("mig_mode", [("current_mig", N_A), ("pending_mig", N_A)]),
        ("mig_devices", "None"),
        ("accounting_mode", "Disabled"),
        ("accounting_mode_buffer_size", 4000),
        ("driver_model", [("current_dm", N_A), ("pending_dm", N_A)]),
        ("serial", card.text("Serial") or N_A),
        ("uuid", card.uuid),
        ("minor_number", card.number("minor")),
        ("vbios_version", card.text("VbiosVersion")),
        ("multigpu_board", "No"),
        ("board_id", f"0x{card.number('board_id'):x}"),
        ("gpu_part_number", N_A),
        ("gpu_module_id", 0),
        ("inforom_version", [(key, N_A) for key in ("img_version", "oem_object", "ecc_object", "pwr_object")]),
        ("gpu_operation_mode", [("current_gom", N_A), ("pending_gom", N_A)]),
        ("gsp_firmware_version", N_A),
        ("gpu_virtualization_mode", [("virtualization_mode", "None"), ("host_vgpu_mode", N_A)]),
        ("ibmnpu", [("relaxed_ordering_mode", N_A)]),
    ]


def _pci(card: Card) -> list[Element]:
    generations: list[Element] = [
        ("max_link_gen", card.number("pcie_gen_max")),
        ("current_link_gen", card.number("pcie_gen")),
    ]
    widths: list[Element] = [
        ("max_link_width", f"{card.number('pcie_width_max')}x"),
        ("current_link_width", f"{card.number('pcie_width')}x"),
    ]
    traffic = f"{card.pcie_kib_per_s()} KB/s"
    return [
        ("pci_bus", f"{card.pci.bus:02X}"),
        ("pci_device", f"{card.pci.device:02X}"),
        ("pci_domain", f"{card.pci.domain:04X}"),
        ("pci_device_id", f"{card.pci.pciDeviceId:08X}"),
        ("pci_bus_id", card.bus_id),
        ("pci_sub_system_id", f"{card.pci.pciSubSystemId:08X}"),
        ("pci_gpu_link_info", [("pcie_gen", generations), ("link_widths", widths)]),
        ("pci_bridge_chip", [("bridge_chip_type", N_A), ("bridge_chip_fw", N_A)]),
        ("replay_counter", card.number("pcie_replay")),
        ("replay_rollover_counter", 0),
        ("tx_util", traffic),
        ("rx_util", traffic),
    ]


def _throttle(card: Card, branch: int) -> Element:
    word = "event" if branch >= EVENTS_FROM else "throttle"
    mask = card.throttle()
    rows = [(f"clocks_{word}_reason_{name}", "Active" if mask & bit else "Not Active") for name, bit in REASONS.items()]
    return (f"clocks_{word}_reasons", rows)


def _utilization(gpu: int, memory: int) -> list[Element]:
    return [("gpu_util", f"{gpu} %"), ("memory_util", f"{memory} %"), ("encoder_util", "0 %"), ("decoder_util", "0 %")]


def _zeros() -> list[Element]:
    return [("session_count", 0), ("average_fps", 0), ("average_latency", 0)]


def _ecc_counts() -> list[Element]:
    return [(f"{part}_{kind}", N_A) for part in ("sram", "dram") for kind in ("correctable", "uncorrectable")]


def _retired_pages() -> list[Element]:
    none: list[Element] = [("retired_count", N_A), ("retired_pagelist", N_A)]
    pending: list[Element] = [("pending_blacklist", N_A), ("pending_retirement", N_A)]
    return [("multiple_single_bit_retirement", none), ("double_bit_retirement", none), *pending]


def _temperature(card: Card) -> list[Element]:
    return [
        ("gpu_temp", _unit(card.temperature(), "C")),
        ("gpu_temp_max_threshold", _unit(card.threshold("shutdown"), "C")),
        ("gpu_temp_slow_threshold", _unit(card.threshold("slowdown"), "C")),
        ("gpu_temp_max_gpu_threshold", _unit(card.threshold("max"), "C")),
        ("gpu_target_temperature", _unit(card.threshold("target"), "C")),
        ("memory_temp", N_A),
        ("gpu_temp_max_mem_threshold", N_A),
    ]


def _power(card: Card, branch: int) -> Element:
    low, high = card.power_range()
    draw, limit = _watts(card.number("power_mw")), _watts(card.number("limit_mw"))
    enforced = _watts(card.number("enforced_mw"))
    default = ("default_power_limit", _watts(card.number("default_mw")))
    bounds: list[Element] = [("min_power_limit", _watts(low)), ("max_power_limit", _watts(high))]
    state = ("power_state", f"P{card.number('pstate')}")
    if branch < EVENTS_FROM:
        rows = [state, ("power_management", "Supported"), ("power_draw", draw), ("power_limit", limit), default]
        return ("power_readings", [*rows, ("enforced_power_limit", enforced), *bounds])
    draws = [("power_draw", draw)]
    if branch >= AVERAGE_POWER_FROM:
        draws = [("average_power_draw", draw), ("instant_power_draw", draw)]
    limits = [("current_power_limit", enforced), ("requested_power_limit", limit)]
    return ("gpu_power_readings", [state, *draws, *limits, default, *bounds])


def _clocks(card: Card) -> list[Element]:
    names = (("graphics_clock", "graphics"), ("sm_clock", "sm"), ("mem_clock", "memory"), ("video_clock", "video"))
    none: list[Element] = [("graphics_clock", N_A), ("mem_clock", N_A)]
    return [
        ("clocks", [(tag, _unit(card.clock(clock), "MHz")) for tag, clock in names]),
        ("applications_clocks", none),
        ("default_applications_clocks", none),
        ("max_clocks", [(tag, _unit(card.clock(clock, highest=True), "MHz")) for tag, clock in names]),
        ("max_customer_boost_clocks", [("graphics_clock", N_A)]),
        ("clock_policy", [("auto_boost", N_A), ("auto_boost_default", N_A)]),
        ("voltage", [("graphics_volt", N_A)]),
        ("supported_clocks", N_A),
    ]


def _process(pid: int, name: str, memory_mib: int) -> list[Element]:
    ids: list[Element] = [("gpu_instance_id", N_A), ("compute_instance_id", N_A)]
    return [*ids, ("pid", pid), ("type", "C"), ("process_name", name), ("used_memory", f"{memory_mib} MiB")]


def _watts(milliwatts: int | None) -> str:
    return N_A if milliwatts is None else f"{milliwatts / 1000:.2f} W"


def _unit(value: int | None, unit: str) -> str:
    return N_A if value is None else f"{value} {unit}"


def _lines(elements: Iterable[Element], indent: str, depth: int) -> list[str]:
    lines, pad = [], indent * depth
    for name, inside in elements:
        if isinstance(inside, list):
            lines += [f"{pad}<{name}>", *_lines(inside, indent, depth + 1), f"{pad}</{name}>"]
        elif name == "mig_devices":
            lines += [f"{pad}<{name}>", f"{pad}{indent}{inside}", f"{pad}</{name}>"]
        else:
            lines.append(f"{pad}<{name}>{escape(str(inside))}</{name}>")
    return lines
