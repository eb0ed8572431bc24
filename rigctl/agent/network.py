"""Network cards: what their link runs at, and what both ends of it could do.

Speed and duplex stand in /sys/class/net; what a card supports and what its partner offers only the kernel's ethtool
interface tells. Sources: the kernel's Documentation/ABI/testing/sysfs-class-net and include/uapi/linux/ethtool.h
(ETHTOOL_GLINKSETTINGS, `enum ethtool_link_mode_bit_indices`).
"""

from __future__ import annotations

import fcntl
import re
import socket
import struct
from typing import TYPE_CHECKING, Any

from .cpu import PROC, SYS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SIOCETHTOOL = 0x8946
GET_LINK_SETTINGS = 0x4C
_HEAD = struct.Struct("=II7Bb4B7I")
"""`struct ethtool_link_settings` before its masks."""
_WORDS = 9
"""The field that says how many words each mask has; the kernel's first answer is that number, negative."""
MOST_WORDS = 127
NAME_BYTES = 15
"""Of an interface's name, at most."""

MODES: dict[int, tuple[int, ...]] = {
    10: (0, 1, 92),
    100: (2, 3, 67, 90, 91),
    1000: (4, 5, 17, 41, 68),
    2500: (15, 47),
    5000: (48,),
    10_000: (12, 18, 19, 20, *range(42, 47)),
    20_000: (21, 22),
    25_000: (31, 32, 33),
    40_000: tuple(range(23, 27)),
    50_000: (34, 35, 40, *range(52, 57)),
    56_000: tuple(range(27, 31)),
    100_000: (*range(36, 40), *range(57, 62), *range(75, 80)),
    200_000: (*range(62, 67), *range(80, 85)),
    400_000: (*range(69, 74), *range(85, 90)),
}
"""Bits of a mask by the speed that they stand for, Mbit/s; other bits say something else, such as the medium."""
MOST_LAYERS = 4
"""A bridge over a VLAN over a bond over a card."""


def link(card: Path, ask: Callable[[str], dict[str, int | None]] | None = None) -> dict[str, Any]:
    """What `NetworkFacts` says of a card's link; `card` is its folder in /sys/class/net.

    A card that is off or has no cable has no speed, and the kernel answers with an error or -1.
    """
    duplex = _text(card / "duplex")
    told = (ask or settings)(card.name)
    return {
        "link": {"1": True, "0": False}.get(_text(card / "carrier") or ""),
        "speed_mbit_per_s": _positive(_text(card / "speed")),
        "duplex": duplex if duplex in ("full", "half") else None,
        "wireless": (card / "wireless").exists() or (card / "phy80211").exists(),
        **told,
    }


def settings(name: str) -> dict[str, int | None]:
    """The fastest that a card supports and that its partner offers, Mbit/s; None where driver or kernel tells none."""
    nothing: dict[str, int | None] = {"supported_mbit_per_s": None, "partner_mbit_per_s": None}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        try:
            masks = _masks(lambda request: _ioctl(any_socket.fileno(), name, request))
        except (OSError, ValueError):  # a driver without that interface; an interface that is gone
            return nothing
    if masks is None:
        return nothing
    return {"supported_mbit_per_s": fastest(masks[0]), "partner_mbit_per_s": fastest(masks[2])}


def _ioctl(file: int, name: str, request: bytes) -> bytes:
    """Ask the kernel: the request is changed in its place, and `struct ifreq` points to it."""
    import ctypes  # noqa: PLC0415 - only where a rig has network cards

    encoded = name.encode()
    if len(encoded) > NAME_BYTES:
        raise ValueError(f"{name!r} is no name of an interface")
    buffer = ctypes.create_string_buffer(request, len(request))
    pointer = struct.pack("=16sQ16x", encoded, ctypes.addressof(buffer))
    fcntl.ioctl(file, SIOCETHTOOL, pointer)
    return buffer.raw


def _masks(ask: Callable[[bytes], bytes]) -> tuple[int, int, int] | None:
    """The masks of supported, advertised and the partner's modes."""
    words = -_HEAD.unpack_from(ask(_request(0)))[_WORDS]
    if not 0 < words <= MOST_WORDS:
        return None
    answer = ask(_request(words))
    size = 4 * words
    parts = [answer[_HEAD.size + size * number :][:size] for number in range(3)]
    if any(len(part) != size for part in parts):
        return None
    supported, advertised, partner = (int.from_bytes(part, "little") for part in parts)
    return supported, advertised, partner


def _request(words: int) -> bytes:
    fields = [0] * 21
    fields[0], fields[_WORDS] = GET_LINK_SETTINGS, words
    return _HEAD.pack(*fields) + bytes(3 * 4 * words)


def fastest(mask: int) -> int | None:
    """The fastest speed of a mask, Mbit/s; None where it names none."""
    return max((speed for speed, bits in MODES.items() if any(mask >> bit & 1 for bit in bits)), default=None)


def carriers(sys: Path = SYS, proc: Path = PROC) -> set[str]:
    """The cards over which the default route goes, through bridges, VLANs and bonds; none where there is no route."""
    lines = (_text(proc / "net/route") or "").splitlines()[1:]
    fields = [line.split() for line in lines]
    default = {words[0] for words in fields if len(words) > 7 and words[1] == "00000000" == words[7]}  # noqa: PLR2004 - the mask
    found, layer = set[str](), default
    for _ in range(MOST_LAYERS):
        below = {name: _below(sys / "class/net" / name) for name in layer}
        found |= {name for name, others in below.items() if not others}
        layer = {other for others in below.values() for other in others}
    return found


def _below(interface: Path) -> list[str]:
    return [entry.name[len("lower_") :] for entry in interface.glob("lower_*")]


def _positive(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"\d{1,9}", text) and int(text) > 0 else None


def _text(path: Path) -> str | None:
    """A small kernel file's text; None where it is not there, or answers with an error as `speed` of a card does."""
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return None
