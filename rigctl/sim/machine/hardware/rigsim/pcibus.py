"""The PCI bus as /sys shows it: each card below a root port of its own, NUMA nodes, and AER's counters.

Only what is simulated is there: the host's own devices are none of the rig's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .state import write_atomically

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from .paths import Paths

CORRECTABLE = ("RxErr", "BadTLP", "BadDLLP", "Rollover", "Timeout", "NonFatalErr", "CorrIntErr", "HeaderOF")
UNCORRECTABLE = ("DLP", "SDES", "TLP", "FCP", "CmpltTO", "CmpltAbrt", "RxOF", "MalfTLP", "ECRC", "UnsupReq")
"""Names in the files of the kernel's drivers/pci/pcie/aer.c, in their order."""
ONE_NODE = "0"
VGA_CARD, BRIDGE = "0x030000\n", "0x060400\n"
"""What a device is, as include/linux/pci_ids.h numbers it."""


def root_port(slot: int) -> str:
    """Address of the root port above the card in a slot."""
    return f"0000:00:{slot:02x}.1"


def address(bus_id: str) -> str:
    """The kernel's address of a card; NVML's has eight digits of domain."""
    return bus_id[4:].lower()


def folder(paths: Paths, card: Mapping[str, Any]) -> Path:
    """A card's own folder, below its root port."""
    return paths.sys / "devices/pci0000:00" / root_port(int(card["slot"])) / address(str(card["pci_bus_id"]))


def prepare(paths: Paths, identity: Mapping[str, Any]) -> None:
    """Lay the tree out; harmless when it exists."""
    sockets = {int(card.get("socket", 0)) for card in identity["cards"]}
    handled = paths.sys / "bus/pci_express/drivers/aer"
    handled.mkdir(parents=True, exist_ok=True)
    (paths.sys / "bus/pci/devices").mkdir(parents=True, exist_ok=True)
    for card in identity["cards"]:
        place, port = folder(paths, card), root_port(int(card["slot"]))
        place.mkdir(parents=True, exist_ok=True)
        # Firmware of boards with one node often tells none.
        node = card.get("socket", 0) if len(sockets) > 1 else -1
        for device in (place, place.parent):
            write_atomically(device / "numa_node", f"{node}\n")
            _count(device, 0)
        (handled / f"{port}:pcie002").mkdir(exist_ok=True)
        _link(paths, place.parent)
        # Every device has one: gloo, which joins training processes, gives up at the first that has none.
        write_atomically(place / "class", VGA_CARD)
        write_atomically(place.parent / "class", BRIDGE)
    online = paths.sys / "devices/system/node/online"
    online.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(online, f"0-{len(sockets) - 1}\n" if len(sockets) > 1 else f"{ONE_NODE}\n")


def update(
    paths: Paths, identity: Mapping[str, Any], present: Collection[int], port_errors: Mapping[str, float]
) -> None:
    """List the cards in the slots `present`, and write what each root port has counted."""
    for card in identity["cards"]:
        place = folder(paths, card)
        link = paths.sys / "bus/pci/devices" / place.name
        if int(card["slot"]) in present:
            _link(paths, place)
        else:
            link.unlink(missing_ok=True)
        count = int(port_errors.get(place.parent.name, 0))
        if count:
            _count(place.parent, count)


def _link(paths: Paths, device: Path) -> None:
    link = paths.sys / "bus/pci/devices" / device.name
    if not link.is_symlink():
        link.symlink_to(device)


def _count(device: Path, bad_packets: int) -> None:
    """Write a device's counters; bad packets are corrected by sending them again."""
    counts = dict.fromkeys(CORRECTABLE, 0) | {"BadTLP": bad_packets}
    lines = [*(f"{name} {count}" for name, count in counts.items()), f"TOTAL_ERR_COR {bad_packets}"]
    write_atomically(device / "aer_dev_correctable", "\n".join(lines) + "\n")
    for kind, total in (("nonfatal", "TOTAL_ERR_NONFATAL"), ("fatal", "TOTAL_ERR_FATAL")):
        path = device / f"aer_dev_{kind}"
        if not path.exists():
            path.write_text("".join(f"{name} 0\n" for name in (*UNCORRECTABLE, total)), encoding="ascii")
