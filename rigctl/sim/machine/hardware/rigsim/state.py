"""The state file: what the NVML library, nvidia-smi and the CUDA library read, as `key value` lines."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from .loads import Use
    from .physics import Card

STALE_AFTER_S = 5
"""A reader that finds an older state says that the hardware does not answer."""
PCIE_GEN_AT_REST = 1
PLAIN_KEYS = (
    "name brand architecture compute_capability cores bus_width pci_device_id pci_subsystem_id vbios memory_mib "
    "reserved_mib bar1_mib temp_target_c temp_max_c temp_slowdown_c temp_shutdown_c sm_idle_mhz sm_max_mhz "
    "mem_max_mhz pcie_gen_max pcie_width_max fans"
)
"""What the state takes over from the class as it is."""
MEMORY_UTIL_SHARE = 0.62
"""Memory controller utilisation of a matrix product, as a share of the card's."""


def write_atomically(path: Path, text: str, mode: int = 0o644) -> None:
    """Replace a file so that a reader sees the old or the new text, never half of one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text, encoding="utf-8")
    temporary.chmod(mode)
    temporary.replace(path)


def read_state(path: Path) -> dict[str, str]:
    """Read a state file back."""
    pairs = (line.partition(" ") for line in path.read_text(encoding="utf-8").splitlines())
    return {key: value for key, _, value in pairs}


def render(values: Mapping[str, object]) -> str:
    """Write the values as lines, in their order."""
    return "".join(f"{key} {value}\n" for key, value in values.items())


def identity_values(prefix: str, identity: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, object]:
    """What never changes about one card."""
    card = {**identity["card"], **own.get("instead", {})}
    plain = PLAIN_KEYS.split()
    values: dict[str, object] = {f"{prefix}.{key}": card[key] for key in plain}
    values |= {f"{prefix}.{key}": own[key] for key in ("slot", "uuid", "pci_bus_id", "serial", "socket") if key in own}
    for key in ("power_min", "power_default", "power_max"):
        values[f"{prefix}.{key}_mw"] = round(1000 * card[f"{key}_w"])
    return values


def card_values(
    prefix: str, identity: Mapping[str, Any], card: Card, uses: Sequence[Use], errors_per_s: float
) -> dict[str, object]:
    """What the card is doing now."""
    common = identity["card"]
    memory_mib = 1 + sum(use.memory_mib for use in uses)
    values: dict[str, object] = {
        "lost": int(card.lost),
        "temp_c": f"{card.temp_c:.2f}",
        "power_mw": round(1000 * card.shown_power_w),
        "power_limit_mw": round(1000 * card.limit_w),
        **({} if card.most_w is None else {"power_most_mw": round(1000 * card.most_w)}),
        "energy_mj": round(1000 * card.energy_j),
        "sm_mhz": card.sm_mhz,
        "mem_mhz": common["mem_compute_mhz"] if card.busy else common["mem_idle_mhz"],
        "pstate": 2 if card.busy else 8,
        "throttle": card.throttle,
        "pcie_gen": common["pcie_gen_max"] if card.busy else PCIE_GEN_AT_REST,
        "pcie_width": common["pcie_width"],
        "pcie_tx_kib_s": 4000 if card.busy else 0,
        "pcie_replay": 0,
        "util_gpu_pct": round(100 * card.load) if card.busy else 0,
        "util_mem_pct": round(100 * card.load * MEMORY_UTIL_SHARE) if card.busy else 0,
        "memory_used_mib": memory_mib,
        "gflops": f"{card.gflops:.1f}",
        "compute_errors_per_s": errors_per_s,
        "procs": len(uses),
    }
    if common["fans"]:
        # What is asked: NVML knows no more, whatever the fans do.
        values["fan_pct"] = round(card.fan_asked_pct)
    if "memory_over_core_c" in common:
        values["memory_temp_c"] = f"{card.temp_c + common['memory_over_core_c']:.2f}"
    values |= {f"proc.{i}": f"{use.pid} {use.memory_mib}" for i, use in enumerate(uses)}
    return {f"{prefix}.{key}": value for key, value in values.items()}


def link_values(
    prefix: str, identity: Mapping[str, Any], slot: int, bus_ids: Mapping[int, str], dead: frozenset[int]
) -> dict[str, object]:
    """The NVLinks of the card in `slot`; a link needs a card at both ends, or a switch at the other one.

    `dead` are link numbers without a signal.
    """
    links = identity["links"]
    if links.get("switches"):
        return _switch_values(prefix, links, dead)
    partner = next((b if a == slot else a for a, b in links["pairs"] if slot in {a, b}), None)
    count = int(links["per_pair"]) if partner is not None else 0
    values: dict[str, object] = {f"{prefix}.links": count}
    for link in range(count):
        active = partner in bus_ids and link not in dead
        values[f"{prefix}.link.{link}.active"] = int(active)
        values[f"{prefix}.link.{link}.mb_per_s"] = links["mb_per_s"] if active else 0
        if active and partner is not None:
            values[f"{prefix}.link.{link}.remote_bus_id"] = bus_ids[partner]
    return values


def _switch_values(prefix: str, links: Mapping[str, Any], dead: frozenset[int]) -> dict[str, object]:
    """Links to NVSwitches, spread over them evenly."""
    count, switches = int(links["per_card"]), links["switches"]
    values: dict[str, object] = {f"{prefix}.links": count}
    for link in range(count):
        active = link not in dead
        values[f"{prefix}.link.{link}.active"] = int(active)
        values[f"{prefix}.link.{link}.mb_per_s"] = links["mb_per_s"] if active else 0
        if active:
            values[f"{prefix}.link.{link}.remote_bus_id"] = switches[link % len(switches)]
            values[f"{prefix}.link.{link}.switch"] = 1
    return values
