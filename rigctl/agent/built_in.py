"""What else is built into the rig or loaded on it: disks, network cards, kernel modules from elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .cpu import PROC, SYS
from .disk import controller_of, smart_log
from .network import carriers, link

if TYPE_CHECKING:
    from pathlib import Path

SECTOR_BYTES = 512
"""Of /sys/block/*/size, whatever the disk's own sectors are."""
NOUVEAU = "nouveau"


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip("\0\n ") or None
    except OSError:
        return None


def modules(sys: Path = SYS) -> list[dict[str, Any]] | None:
    """Loaded modules that taint the kernel, and nouveau, which takes the cards from NVIDIA's driver."""
    folder = sys / "module"
    if not folder.is_dir():
        return None
    found = []
    for one in sorted(folder.iterdir()):
        taint = _text(one / "taint") or ""
        if taint or one.name == NOUVEAU:
            found.append({"name": one.name, "taint": taint, "version": _text(one / "version")})
    return found


def disks(sys: Path = SYS) -> list[dict[str, Any]] | None:
    """Disks that are built in: no loop, no RAM disk, nothing on USB, no partitions."""
    folder = sys / "block"
    if not folder.is_dir():
        return None
    return [
        {**_disk(one), "state": controller_of(one.name, sys), **smart_log(one.name)}
        for one in sorted(folder.iterdir())
        if _built_in(one)
    ]


def _built_in(disk: Path) -> bool:
    hardware = (disk / "device").exists() and "/usb" not in str(disk.resolve())
    return hardware and _text(disk / "removable") != "1"


def _disk(disk: Path) -> dict[str, Any]:
    sectors = _text(disk / "size") or ""
    return {
        "name": disk.name,
        "model": _text(disk / "device/model") or "",
        "serial": _text(disk / "device/serial") or _text(disk / "device/wwid") or _text(disk / "wwid"),
        "size_gb": round(int(sectors) * SECTOR_BYTES / 1e9, 1) if sectors.isdecimal() else 0,
    }


def network(sys: Path = SYS, proc: Path = PROC) -> list[dict[str, Any]] | None:
    """Network cards; what has no device behind it (bridges, tunnels) is none. In a bond all say one address."""
    folder = sys / "class/net"
    if not folder.is_dir():
        return None
    on_the_way = carriers(sys, proc)
    return [
        {
            "carries_default_route": card.name in on_the_way,
            **link(card),
            "name": card.name,
            "address": _text(card / "bonding_slave/perm_hwaddr") or _text(card / "address") or "",
            "driver": (card / "device/driver").resolve().name if (card / "device/driver").exists() else None,
        }
        for card in sorted(folder.iterdir())
        if (card / "device").exists() and "/usb" not in str(card.resolve())
    ]
