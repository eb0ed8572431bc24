"""`topo -m` and `nvlink`: how the cards are joined, in text."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .card import Card

NUMA_ID_FROM = 535
"""From this branch on the table has a column more."""
BLANK_BEFORE_FROM = 520
NVLINK_WORD_FROM = 595
"""From this branch on the sentence spells it `Nvlink` (public captures of 595.71.05)."""
WORDS = {0: "X", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
CPU_WORDS = 4
LEGEND = """
Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)
  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges within a NUMA node
  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)
  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host Bridge)
  PIX  = Connection traversing at most a single PCIe bridge
  NV#  = Connection traversing a bonded set of # NVLinks
"""


def matrix(cards: Sequence[Card], branch: int) -> str:
    """`topo -m`: tabs, header underlined even into a pipe, a double tab before NUMA."""
    more = "\tGPU NUMA ID" if branch >= NUMA_ID_FROM else ""
    names = [f"GPU{card.index}" for card in cards]
    header = "\t".join([*names, "CPU Affinity", f"NUMA Affinity{more}"])
    lines = [f"\t\x1b[4m{header}\x1b[0m"]
    for card, name in zip(cards, names, strict=True):
        cells = [_cell(card, other) for other in cards]
        row = "\t".join([name, *cells, _affinity(card), "", "N/A"])
        lines.append(row + ("\t\tN/A" if more else ""))
    return "\n".join(lines) + "\n" + LEGEND


def _cell(card: Card, other: Card) -> str:
    if card.index == other.index:
        return " X "
    # Through switches, every active link leads to every card.
    switched = card.switched and other.switched
    linked = sum(1 for active, _, remote in card.links() if active and (switched or remote == other.bus_id))
    if linked:
        return f"NV{linked}"
    level = card.nvml.number("nvmlDeviceGetTopologyCommonAncestor", card.handle, other.handle)
    return WORDS[level]


def _affinity(card: Card) -> str:
    words = (ctypes.c_ulong * CPU_WORDS)()
    card.nvml.call("nvmlDeviceGetCpuAffinity", card.handle, ctypes.c_uint(CPU_WORDS), words)
    bits = sum(word << 64 * i for i, word in enumerate(words))
    threads = [thread for thread in range(64 * CPU_WORDS) if bits >> thread & 1]
    return f"{threads[0]}-{threads[-1]}" if len(threads) > 1 else str(threads[0])


def status(cards: Sequence[Card], branch: int) -> str:
    """`nvlink -s`: the speed of each link and direction; where all are down, the sentence of the driver's branch."""
    lines: list[str] = []
    for card in cards:
        lines.append(f"GPU {card.index}: {card.name} (UUID: {card.uuid})")
        links = card.links()
        if not any(active for active, _, _ in links):
            word = "Nvlink" if branch >= NVLINK_WORD_FROM else "NVLink"
            lines.append(f"NVML: Unable to retrieve {word} information as all links are inActive")
            continue
        for link, (active, gb_per_s, _) in enumerate(links):
            lines.append(f"\t Link {link}: {gb_per_s:.5g} GB/s" if active else f"\t Link {link}: <inactive>")
    return "\n".join(lines) + "\n"
