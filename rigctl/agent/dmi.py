"""What the firmware says of the board: the SMBIOS table, as the kernel shows it to root.

Source of structures and offsets: DMTF DSP0134 (SMBIOS Reference Specification), types 9 (slots) and 17 (memory).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .cpu import SYS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TABLE = "firmware/dmi/tables/DMI"
SLOT, MEMORY, END = 9, 17, 127
_HEADER = 4
_UNKNOWN, _EXTENDED = 0xFFFF, 0x7FFF
_IN_KIB = 0x8000
NOTHING_THERE = (0xFF, 0xFF)
"""Bus, device and function of a slot on which nothing hangs."""


@dataclass(frozen=True)
class Structure:
    """One structure of the table: its kind, its formatted part, and the strings behind it."""

    kind: int
    body: bytes
    strings: tuple[str, ...]

    def number(self, at: int, size: int = 2) -> int | None:
        """A number of the formatted part; None where an older table has no such field."""
        return int.from_bytes(self.body[at : at + size], "little") if at + size <= len(self.body) else None

    def text(self, at: int) -> str | None:
        """A string by the number that the formatted part has for it; None where it names none."""
        number = self.number(at, 1) or 0
        return self.strings[number - 1].strip() or None if 0 < number <= len(self.strings) else None


def structures(table: bytes) -> Iterator[Structure]:
    """Every structure of a table, up to its end or to what makes no sense any more."""
    at = 0
    while at + _HEADER <= len(table):
        kind, length = table[at], table[at + 1]
        end = table.find(b"\0\0", at + length)
        if length < _HEADER or end < 0:
            return
        strings = table[at + length : end].decode(errors="replace").split("\0")
        yield Structure(kind, table[at : at + length], tuple(strings))
        if kind == END:
            return
        at = end + 2


def read(sys: Path = SYS) -> list[Structure] | None:
    """The board's table; None where there is none, as in a container, or where we are not root."""
    try:
        return list(structures((sys / TABLE).read_bytes()))
    except OSError:
        return None


def memory_modules(table: list[Structure] | None) -> list[dict[str, Any]] | None:
    """The modules in their places; None where the firmware lists none at all."""
    if table is None:
        return None
    found = [_module(one) for one in table if one.kind == MEMORY]
    return [module for module in found if module is not None] if found else None


def _module(one: Structure) -> dict[str, Any] | None:
    size_mib = _size_mib(one)
    if not size_mib:
        return None
    return {
        "place": one.text(0x10) or "",
        "size_mib": size_mib,
        "rated_mt_per_s": _speed(one, 0x15, 0x54),
        "set_mt_per_s": _speed(one, 0x20, 0x58),
        "part": one.text(0x1A),
    }


def _size_mib(one: Structure) -> int | None:
    """Size of a module, MiB; None where the place is empty or its size unknown."""
    size = one.number(0x0C)
    if size is None or size in (0, _UNKNOWN):
        return None
    if size == _EXTENDED:
        long = one.number(0x1C, 4)
        return None if long is None else long & 0x7FFFFFFF
    return (size & _EXTENDED) // 1024 if size & _IN_KIB else size


def _speed(one: Structure, at: int, extended_at: int) -> int | None:
    """A speed, MT/s; the field of sixteen bits says where the longer one counts."""
    speed = one.number(at)
    if speed == _UNKNOWN:
        speed = one.number(extended_at, 4)
    return speed or None


def slot_labels(table: list[Structure] | None) -> dict[str, str]:
    """PCI address → what the board calls the slot."""
    labels: dict[str, str] = {}
    for one in table or ():
        label, segment, bus, function = one.text(0x04), one.number(0x0D), one.number(0x0F, 1), one.number(0x10, 1)
        if one.kind != SLOT or label is None or segment is None or bus is None or function is None:
            continue
        if (bus, function) != NOTHING_THERE:
            labels[f"{segment:04x}:{bus:02x}:{function >> 3:02x}.{function & 7}"] = label
    return labels
