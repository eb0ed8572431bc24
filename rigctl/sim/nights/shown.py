"""What the agent sees of a rig's cards through NVML: facts, samples, counters, as its JSON has them."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

from rigctl.sim.machine.hardware.rigsim import state, thermal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rigctl.sim.machine.hardware.rigsim.physics import Card
    from rigctl.sim.nights.hardware import Hardware

LOST = "GPU is lost"
"""NVML's own words."""
MB_PER_GB = 1000
NOT_SUPPORTED = "Not Supported"
"""NVML's words for what a card does not have."""
ECC_COUNTS = {"corrected": "0.0", "uncorrected": "1.0", "lifetime_corrected": "0.1", "lifetime_uncorrected": "1.1"}
"""NVML's numbers of the kind of error, and of the time since when it is counted."""
ROWS = ("corrected", "uncorrected", "pending", "failed")
BANKS = ("max", "high", "partial", "low", "none")
NOT_THERE = ("ecc", "remapped_rows")
"""What cards without error correction do not tell."""


def links(rig: Hardware, card: Card) -> list[dict[str, Any]]:
    """Return the card's NVLinks as LinkFacts."""
    bus_ids = {one.parts.slot: str(rig.own(one)["pci_bus_id"]) for one in rig.present()}
    shown = state.link_values("g", rig.identity, card.parts.slot, bus_ids, rig.wiring.dead_links)
    found = []
    for link in range(int(str(shown["g.links"]))):
        active = bool(shown[f"g.link.{link}.active"])
        speed = float(str(shown[f"g.link.{link}.mb_per_s"])) / MB_PER_GB
        remote = shown.get(f"g.link.{link}.remote_bus_id")
        found.append(
            {
                "link": link,
                "active": active,
                "remote_pci_bus_id": remote,
                "speed_gb_per_s": speed if active else None,
            }
        )
    return found


def card_facts(rig: Hardware, card: Card, index: int) -> dict[str, Any]:
    """Return the identity of one card as GpuFacts."""
    common, own = rig.common(card), rig.own(card)
    known = links(rig, card)
    health, missing = _memory(rig, card)
    missing |= {} if known else {"links": NOT_SUPPORTED}
    serial = own.get("serial")
    if serial is None:
        missing["serial"] = NOT_SUPPORTED
    return {
        "index": index,
        "slot": index + 1,
        "uuid": own["uuid"],
        "pci_bus_id": own["pci_bus_id"],
        "name": common["name"],
        "serial": serial,
        "vbios": common["vbios"],
        "memory_mib": common["memory_mib"],
        "compute_capability": common["compute_capability"],
        "power_limit_w": card.limit_w,
        "power_default_w": common["power_default_w"],
        "power_min_w": common["power_min_w"],
        "power_max_w": common["power_max_w"],
        "slowdown_temp_c": float(common["temp_slowdown_c"]),
        "shutdown_temp_c": float(common["temp_shutdown_c"]),
        "memory_max_temp_c": common.get("temp_memory_max_c"),
        "max_pcie_gen": common["pcie_gen_max"],
        "max_pcie_width": common["pcie_width_max"],
        "links": known,
        **health,
        "missing": missing,
    }


def _memory(rig: Hardware, card: Card) -> tuple[dict[str, Any], dict[str, str]]:
    """Return what a card tells of errors and rows of its memory, and what is missing of it with NVML's reason."""
    told = {key: int(str(value)) for key, value in rig.memory.shown("g", card.parts.slot, rig.identity).items()}
    if not told:
        return {}, dict.fromkeys(NOT_THERE, NOT_SUPPORTED)
    counts = {name: told[f"g.ecc.{kind}"] for name, kind in ECC_COUNTS.items()}
    rows = {name: told[f"g.rows.{name}"] for name in ROWS}
    banks = {name: told.get(f"g.rows.bank.{number}", 0) for number, name in enumerate(BANKS)}
    ecc = {"on": bool(told["g.ecc.on"]), **counts}
    return {"ecc": ecc, "remapped_rows": {**rows, "banks": banks}}, {}


def pair_facts(rig: Hardware) -> list[dict[str, Any]]:
    """Return whether the driver lets each pair of cards reach each other."""
    word = "DR" if rig.wiring.rig()["p2p.disabled"] else None
    cards = list(enumerate(rig.present(), start=1))
    found = []
    for (one, card), (other, _) in combinations(cards, 2):
        joined = any(link["active"] for link in links(rig, card))
        said = word or ("OK" if joined else "CNS")
        found.append({"slots": (one, other), "read": said, "write": said})
    return found


def sample(rig: Hardware, card: Card, slot: int, active: tuple[bool, ...]) -> dict[str, Any]:
    """Return one card at this moment as GpuSample; `slot` is the agent's count, `active` its links."""
    uuid = rig.own(card)["uuid"]
    if card.lost:
        return {"uuid": uuid, "slot": slot, "error": LOST}
    common = rig.identity["card"]
    gen, width = common["pcie_gen_max"] if card.busy else state.PCIE_GEN_AT_REST, common["pcie_width"]
    lanes = rig.wiring.shown("g", card, {"g.pcie_gen": gen, "g.pcie_width": width})
    broken = thermal.shown("g", card.parts.slot, rig.active)
    over_c, hot_spot = common.get("memory_over_core_c"), card.parts.hotspot_over_c
    return {
        "uuid": uuid,
        "slot": slot,
        # NVML speaks in whole degrees.
        "temp_c": float(round(float(str(broken.get("g.temp_c", card.temp_c))))),
        "power_w": round(card.shown_power_w, 3),
        "limit_w": card.limit_w,
        "sm_mhz": card.sm_mhz,
        "mem_mhz": common["mem_compute_mhz"] if card.busy else common["mem_idle_mhz"],
        "util_pct": round(100 * card.load) if card.busy else 0,
        "fan_pct": round(card.fan_asked_pct) if common["fans"] else None,
        "memory_temp_c": None if over_c is None else float(round(card.temp_c + over_c)),
        "margin_c": float(round(card.parts.temp_slowdown_c - card.hotspot_c)) if hot_spot else None,
        "throttle": card.throttle,
        "pcie_gen": int(str(lanes.get("g.pcie_gen", gen))),
        "pcie_width": int(str(lanes.get("g.pcie_width", width))),
        "links_active": active,
        "fan_rpm": None,
        "error": None,
    }


def counters(rig: Hardware, card: Card, slot: int, aer: Mapping[str, Any]) -> dict[str, Any]:
    """Return what one card has counted as CardCounters; `aer` is what the kernel shows of its bus."""
    counted = rig.wiring.shown("g", card, {"g.pcie_gen": 1, "g.pcie_width": 1})
    rows = []
    for link in links(rig, card):
        errors = int(str(counted.get(f"g.link.{link['link']}.errors", 0)))
        kinds = {"replay": errors, "recovery": 0, "crc_flit": errors, "crc_data": 0}
        if link["active"]:
            rows.append({"link": link["link"], **kinds})
    replays = int(str(counted.get("g.pcie_replay", 0)))
    health, missing = _memory(rig, card)
    return {
        "uuid": rig.own(card)["uuid"],
        "slot": slot,
        "links": rows,
        "pcie_replays": replays,
        "aer": aer,
        **health,
        "missing": missing,
        "faults": [],
    }
