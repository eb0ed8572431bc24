"""How often links damage packets: the margin of a receiver's eye, and what contacts, rooms and wear take from it.

A receiver that sees Gaussian noise takes a bit for the other one with probability ½·erfc(Q/√2), where Q is the distance
of the eye's middle from its edge in standard deviations of the noise. So contacts that wear evenly show nothing for a
long time and then ever more: the count grows e-fold while Q falls by 1/Q.
"""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

WEAKEST, STRONGEST = 7.6, 9.0
"""Q of links that are well: ours. PCI Express asks for at most one wrong bit in 10¹², which is a Q of 7.03; the weakest
of ours damages about one packet in a night's burn."""
ROOM_C, PER_C = 22.0, 0.001
"""A link loses this share of its Q for each °C that the room is warmer: ours."""
BITS_PER_BYTE = 8
LANE_GBIT_PER_S = {1: 2.5, 2: 5.0, 3: 8.0, 4: 16.0, 5: 32.0, 6: 64.0}
"""PCI Express, by generation."""
IN_PACKETS = 0.1
"""The share of what a card's bus carries under a burn that belongs to packets, and is counted when it is damaged: ours.
An NVLink guards its idle flits too."""


def wrong_bit_share(margin: float) -> float:
    """Return how many bits of all are taken for the other one at a Q of `margin`."""
    return 0.5 * math.erfc(margin / math.sqrt(2))


def margins(
    identity: Mapping[str, Any], seed: str, room_c: float
) -> tuple[dict[tuple[int, int], float], dict[int, float]]:
    """Return Q of each NVLink by slot and link, and of each card's bus by slot, in a room of `room_c` °C.

    `seed` stands for the rig: its links are what they are, on every day.
    """
    own = random.Random(f"{seed}:links")  # noqa: S311 - no two links are alike, to be repeatable
    left = 1 - PER_C * (room_c - ROOM_C)
    slots = [int(card["slot"]) for card in identity["cards"]]
    bus = {slot: left * own.uniform(WEAKEST, STRONGEST) for slot in slots}
    links = {
        (slot, link): left * own.uniform(WEAKEST, STRONGEST) for slot in slots for link in range(_links(identity, slot))
    }
    return links, bus


def link_errors_per_s(identity: Mapping[str, Any], margin: float) -> float:
    """Return the damaged flits a second on one NVLink."""
    return float(identity["links"]["mb_per_s"]) * 1e6 * BITS_PER_BYTE * wrong_bit_share(margin)


def replays_per_s(identity: Mapping[str, Any], margin: float) -> float:
    """Return the packets a second that a card sends over PCIe again, under a burn."""
    card = identity["card"]
    bits = LANE_GBIT_PER_S[int(card["pcie_gen_max"])] * 1e9 * int(card["pcie_width"])
    return bits * IN_PACKETS * wrong_bit_share(margin)


def _links(identity: Mapping[str, Any], slot: int) -> int:
    links = identity["links"]
    if links.get("switches"):
        return int(links["per_card"])
    return int(links["per_pair"]) if any(slot in pair for pair in links["pairs"]) else 0
