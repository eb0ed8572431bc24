"""Where a card sits and what the BIOS made of it, from the PCI bus as the kernel shows it under /sys.

Bus numbers are given anew at each start and shift when a disk is added; the root port, which belongs to the processor,
and device and function of each step below it do not. Sources: PCI Express Base Specification (Link Control, ACS),
the kernel's Documentation/ABI/testing/sysfs-bus-pci and sysfs-kernel-iommu_groups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .cpu import SYS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

MIB = 1024 * 1024
FOUR_GIB = 1 << 32
BAR1 = 1
"""The line of `resource` that holds the window to the card's memory."""
LINK_CONTROL = 0x10
ASPM = ("off", "L0s", "L1", "L0s L1")
EXTENDED_AT, EXTENDED_ACS, ACS_CONTROL = 0x100, 0x000D, 6
REDIRECTS = 0x04 | 0x08
"""Request and completion redirect."""
MOST_CAPABILITIES = 96


def seat(folder: Path, ports: Sequence[Path], express_at: int | None, sys: Path = SYS) -> dict[str, Any]:
    """What PlaceFacts says beyond the address; None where the kernel does not show it.

    Args:
        folder: the card's own, at its place below its ports.
        ports: the ports above it, the root port first.
        express_at: where the PCI Express capability of the card's configuration space lies.
        sys: where /sys is.
    """
    start, size = _window(folder)
    return {
        "root_path": _text(ports[0] / "firmware_node/path") if ports else None,
        "below": "/".join(one.name.rpartition(":")[2] for one in (*ports[1:], folder)) if ports else None,
        "bar1_mib": None if size is None else size // MIB,
        "above_4g": None if start is None else start >= FOUR_GIB,
        "aspm": _aspm(folder, express_at),
        "iommu": _iommu(folder, sys),
        "acs_redirect": _redirects(ports),
    }


def label(folder: Path, ports: Sequence[Path], labels: Mapping[str, str], sys: Path = SYS) -> str | None:
    """What the board calls the slot: by the firmware's table, else by the kernel's own list of slots."""
    for one in (folder, *reversed(ports)):
        if one.name in labels:
            return labels[one.name]
    for slot in sorted((sys / "bus/pci/slots").glob("*/address")):
        if _text(slot) == folder.name.rpartition(".")[0]:
            return slot.parent.name
    return None


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip() or None
    except OSError:
        return None


def _space(folder: Path) -> bytes:
    """A device's configuration space, as much of it as the kernel gives."""
    try:
        return (folder / "config").read_bytes()
    except OSError:
        return b""


def _window(folder: Path) -> tuple[int | None, int | None]:
    """Start and size of BAR1, bytes."""
    lines = (_text(folder / "resource") or "").splitlines()
    try:
        start, end, flags = (int(word, 16) for word in lines[BAR1].split())
    except (IndexError, ValueError):
        return None, None
    return (start, end - start + 1) if flags and end > start else (None, None)


def _aspm(folder: Path, express_at: int | None) -> str | None:
    space = _space(folder)
    if express_at is None or express_at + LINK_CONTROL >= len(space):
        return None
    return ASPM[space[express_at + LINK_CONTROL] & 0x3]


def _iommu(folder: Path, sys: Path) -> str | None:
    units = sys / "class/iommu"
    if not units.is_dir() or not any(units.iterdir()):
        return "off"
    return _text(folder / "iommu_group/type")


def _redirects(ports: Sequence[Path]) -> bool | None:
    """Whether any port above redirects; None where no port's extended space can be read."""
    known = [found for port in ports if (found := _acs(_space(port))) is not None]
    return any(known) if known else None


def _acs(space: bytes) -> bool | None:
    """Whether ACS redirects here; False where the port has no ACS, None where that cannot be read."""
    if len(space) <= EXTENDED_AT + 4:
        return None
    at = EXTENDED_AT
    for _ in range(MOST_CAPABILITIES):
        if at + 8 > len(space):
            return None
        head = int.from_bytes(space[at : at + 4], "little")
        if head & 0xFFFF == EXTENDED_ACS:
            return bool(space[at + ACS_CONTROL] & REDIRECTS)
        at = head >> 20
        if at < EXTENDED_AT:
            return False
    return None
