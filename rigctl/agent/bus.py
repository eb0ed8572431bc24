"""The PCI bus as the kernel shows it under /sys: which port a card hangs on, its NUMA node, and AER's counters.

The kernel counts errors for every device that has the capability, but only while it handles AER itself: it lists the
ports that it handles under `pci_express/drivers/aer`. Where firmware kept AER to itself (`_OSC`), where it is switched
off (`pci=noaer`) or the kernel was built without, the files stand there all the same and say 0 for ever; so a zero is
believed only where the port is listed. Sources: the kernel's Documentation/PCI/pcieaer-howto and
Documentation/ABI/testing/sysfs-bus-pci-devices-aer_stats.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from . import dmi, seat
from .cpu import SYS

if TYPE_CHECKING:
    from pathlib import Path

_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_COUNT = re.compile(r"(\w+) (\d+)")
KINDS = ("correctable", "nonfatal", "fatal")
CAPABILITIES_AT, CAPABILITY_EXPRESS, DEVICE_CONTROL = 0x34, 0x10, 8
"""Offsets in a device's configuration space, and the number of the PCI Express capability (PCI Express Base Spec.)."""
MOST_CAPABILITIES = 48
REPORTS_CORRECTED = 0x1


def address_of(nvml_bus_id: str) -> str:
    """The kernel's address of a card: NVML says `00000000:01:00.0`, the kernel `0000:01:00.0`."""
    domain, _, rest = nvml_bus_id.lower().partition(":")
    return f"{int(domain, 16):04x}:{rest}"


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return None


def device(address: str, sys: Path = SYS) -> Path | None:
    """A device's folder, at its place below its ports; None where the kernel does not list it."""
    path = sys / "bus/pci/devices" / address
    return path.resolve() if path.exists() else None


def ports_of(folder: Path) -> list[Path]:
    """The ports above a device, its root port first."""
    return [parent for parent in reversed(folder.parents) if _ADDRESS.fullmatch(parent.name)]


def place(nvml_bus_id: str, sys: Path = SYS) -> dict[str, Any]:
    """Where a card hangs: root port, the way down from it, NUMA node, and what the BIOS made of its slot."""
    address = address_of(nvml_bus_id)
    folder = device(address, sys)
    known: dict[str, Any] = {"pci_address": address, "listed": folder is not None, "numa_node": None, "root_port": None}
    if folder is not None:
        node = _text(folder / "numa_node") or ""
        ports = ports_of(folder)
        known["numa_node"] = int(node) if node.isdecimal() else None
        known["root_port"] = ports[0].name if ports else None
        known |= seat.seat(folder, ports, express_at(_space(folder)), sys)
        known["label"] = seat.label(folder, ports, dmi.slot_labels(dmi.read(sys)), sys)
    return known


def numa_nodes(sys: Path = SYS) -> list[int]:
    """The NUMA nodes that are online; empty where the kernel does not say."""
    nodes: list[int] = []
    for part in filter(None, (_text(sys / "devices/system/node/online") or "").split(",")):
        first, _, last = part.partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            nodes += range(int(first), int(last or first) + 1)
    return nodes


def errors_of(nvml_bus_id: str, sys: Path = SYS) -> dict[str, Any]:
    """AER's counters of a card and of each port above it: `counts` by kind and name, or `blind` with the reason."""
    folder = device(address_of(nvml_bus_id), sys)
    if folder is None:
        return {"card": {"error": f"the kernel lists no device {address_of(nvml_bus_id)}"}, "ports": []}
    ports = ports_of(folder)
    handled = _not_handled(ports[0].name, sys) if ports else "it has no root port, as in a virtual machine"
    card = {"blind": handled} if handled else _own(folder)
    return {
        "card": card,
        "ports": [{"address": port.name, **({"blind": handled} if handled else _counts(port))} for port in ports],
    }


def _not_handled(root_port: str, sys: Path) -> str:
    """Why the kernel handles no errors of a root port; empty where it does."""
    driver = sys / "bus/pci_express/drivers/aer"
    if not driver.is_dir():
        return "the kernel handles no AER: built without it, or switched off (pci=noaer)"
    if not any(entry.name.startswith(f"{root_port}:") for entry in driver.iterdir()):
        return f"AER of root port {root_port} is the firmware's own, or its port has none"
    return ""


def _own(folder: Path) -> dict[str, Any]:
    """A card's own counters; where it was told not to report corrected errors, it can be read for nothing."""
    reports = _reports_corrected(folder)
    if reports is False:
        return {"blind": "the card is told not to report corrected errors (Device Control)"}
    return _counts(folder)


def _counts(folder: Path) -> dict[str, Any]:
    counts: dict[str, dict[str, int]] = {}
    for kind in KINDS:
        text = _text(folder / f"aer_dev_{kind}")
        if text is None:
            return {"blind": f"{folder.name} has no AER"}
        matches = [_COUNT.fullmatch(line.strip()) for line in text.splitlines()]
        if not matches or None in matches:
            return {"error": f"aer_dev_{kind} of {folder.name} cannot be read: {text[:80]!r}"}
        counts[kind] = {
            match[1]: int(match[2]) for match in matches if match is not None and not match[1].startswith("TOTAL_")
        }
    return {"counts": counts}


def _reports_corrected(folder: Path) -> bool | None:
    """Whether a device reports corrected errors; None where its configuration space cannot be read."""
    space = _space(folder)
    at = express_at(space)
    return None if at is None else bool(space[at + DEVICE_CONTROL] & REPORTS_CORRECTED)


def _space(folder: Path) -> bytes:
    try:
        return (folder / "config").read_bytes()
    except OSError:
        return b""


def express_at(space: bytes) -> int | None:
    """Where the PCI Express capability lies in a configuration space; None where that cannot be read."""
    at = space[CAPABILITIES_AT] if len(space) > CAPABILITIES_AT else 0
    for _ in range(MOST_CAPABILITIES):
        if at == 0 or at + DEVICE_CONTROL >= len(space):
            return None
        if space[at] == CAPABILITY_EXPRESS:
            return at
        at = space[at + 1]
    return None
