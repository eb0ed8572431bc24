"""What people and firmware change on a rig: cards exchanged, moved or flashed, a BIOS that forgot its settings.

Each is a change of the rig's identity or of what /sys shows, and goes away with its fault.
"""

from __future__ import annotations

import copy
import hashlib
import shutil
import uuid
from typing import TYPE_CHECKING, Any

from . import pcibus
from .state import write_atomically

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from .faults import Applied
    from .paths import Paths

IDENTITY_FAULTS: tuple[tuple[str, str, tuple[str, ...], bool], ...] = (
    ("card_swapped", "A card was replaced by another one of its model.", ("identity.cards",), True),
    ("card_moved", "A card and its neighbour were put into each other's slots.", ("identity.cards",), True),
    ("wrong_card", "A card was replaced by one of another model.", ("topology.gpu_model",), True),
    ("vbios_changed", "Somebody has flashed another VBIOS to a card.", ("identity.card_firmware",), True),
    ("bios_defaults", "The BIOS went back to its defaults: Above 4G off, ASPM on.", ("identity.settings",), False),
    ("foreign_module", "A kernel module from elsewhere is loaded.", ("identity.modules",), False),
    ("nvme_added", "A disk was added, and the cards' bus numbers shifted. Nothing is wrong.", (), False),
)
"""Name, summary, the checks that must name it (none: acceptance passes), and whether it names a card by its slot."""

MODULE = "rgb_fans"
OTHER_MODEL = {
    "name": "NVIDIA GeForce RTX 3080",
    "memory_mib": 10240,
    "pci_device_id": "0x220610DE",
    "vbios": "94.02.26.40.01",
}
"""As public captures of `nvidia-smi -q` and the PCI ID list show it."""
EXPRESS_AT, ASPM_L1, REPORTS_CORRECTED = 0x60, 0x02, 0x01
HIGH, LOW = 0x78_0000_0000, 0xC000_0000
"""Where BAR1 of the first card lies with and without `Above 4G decoding`."""
MIB = 1 << 20
PREFETCHABLE = 0x14220C


def changed(given: Mapping[str, Any], active: Sequence[Applied]) -> dict[str, Any]:
    """Return the rig's identity as the active faults have made it."""
    identity: dict[str, Any] = copy.deepcopy(dict(given))
    cards = identity["cards"]
    for fault in active:
        slot = fault.values.get("slot")
        card = next((one for one in cards if int(one["slot"]) == slot), None)
        if fault.name in ("card_swapped", "wrong_card") and card is not None:
            _another(card)
        if fault.name == "wrong_card" and card is not None:
            card["instead"] = OTHER_MODEL
        elif fault.name == "vbios_changed" and card is not None:
            card["instead"] = {"vbios": f"{identity['card']['vbios'][:-2]}FE"}
        elif fault.name == "card_moved" and card is not None:
            _exchange(card, cards[(cards.index(card) + 1) % len(cards)])
        elif fault.name == "nvme_added":
            for one in cards:
                one["pci_bus_id"] = _shifted(str(one["pci_bus_id"]))
    return identity


def _shifted(bus_id: str) -> str:
    """Return a bus number that is one further: a disk has taken the first."""
    domain, bus, rest = bus_id.split(":")
    return f"{domain}:{int(bus, 16) + 1:02X}:{rest}"


def _another(card: dict[str, Any]) -> None:
    digest = hashlib.sha256(f"{card['uuid']} replaced".encode()).hexdigest()
    card["uuid"] = f"GPU-{uuid.UUID(hex=digest[:32], version=4)}"
    if "serial" in card:
        card["serial"] = str(int(digest[32:44], 16) % 10 ** len(card["serial"])).zfill(len(card["serial"]))


def _exchange(one: dict[str, Any], other: dict[str, Any]) -> None:
    for key in ("uuid", "serial"):
        if key in one:
            one[key], other[key] = other[key], one[key]


def show(paths: Paths, given: Mapping[str, Any], identity: Mapping[str, Any], active: Sequence[Applied]) -> None:
    """Write what /sys shows of it: the cards at their addresses, their windows and links, foreign modules."""
    names = {fault.name for fault in active}
    now = {pcibus.address(str(card["pci_bus_id"])): pcibus.folder(paths, card) for card in identity["cards"]}
    for card in given["cards"]:
        for bus_id in (str(card["pci_bus_id"]), _shifted(str(card["pci_bus_id"]))):
            link = paths.sys / "bus/pci/devices" / pcibus.address(bus_id)
            if link.is_symlink() and link.readlink() != now.get(link.name):
                link.unlink()
    pcibus.prepare(paths, identity)
    for number, card in enumerate(identity["cards"]):
        _window(pcibus.folder(paths, card), int(identity["card"]["bar1_mib"]) * MIB, number, "bios_defaults" in names)
    module = paths.sys / "module" / MODULE
    if "foreign_module" in names:
        module.mkdir(parents=True, exist_ok=True)
        write_atomically(module / "taint", "OE\n")
    else:
        shutil.rmtree(module, ignore_errors=True)


def _window(folder: Path, size: int, number: int, defaults: bool) -> None:
    start = (LOW if defaults else HIGH) + number * max(size, 256 * MIB)
    lines = ["0x00000000fb000000 0x00000000fbffffff 0x0000000000040200"]
    lines.append(f"0x{start:016x} 0x{start + size - 1:016x} 0x{PREFETCHABLE:016x}")
    write_atomically(folder / "resource", "\n".join(lines) + "\n")
    space = bytearray(256)
    space[0x34], space[EXPRESS_AT] = EXPRESS_AT, 0x10
    space[EXPRESS_AT + 8] = REPORTS_CORRECTED
    space[EXPRESS_AT + 0x10] = ASPM_L1 if defaults else 0
    (folder / "config").write_bytes(space)
