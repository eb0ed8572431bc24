"""`nvidia-smi topo -m`: how each pair of cards is joined.

Cells are separated by tabs (doubled before some columns) or by runs of blanks; the header may be underlined with
escape codes; affinity cells may be empty or `N/A`; network cards add rows and columns of their own. None of the cells
that say how two devices are joined holds a blank, so they are the first words of a row, one per device.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import combinations

from rigctl.parse import ParseError, plain

_WHAT = "`nvidia-smi topo -m`"
_GPU = re.compile(r"GPU(\d+)", re.ASCII)
_CELL = re.compile(r"X|NV\d+|PIX|PXB|PHB|NODE|SOC|SYS", re.ASCII)
_AFFINITY = re.compile(r"\s+(?:CPU Affinity|NUMA Affinity|GPU NUMA ID)\b.*")
_LEGEND = re.compile(r"(?:NIC )?Legend:|\s+\S+\s+=\s+.*|\s+NIC\d+:\s+\S+.*")


@dataclass(frozen=True)
class Topology:
    """How the cards are joined, by nvidia-smi's index, which is NVML's."""

    gpus: tuple[int, ...]
    relations: dict[tuple[int, int], str]
    """For each pair, lower index first: `NV4`, `PIX`, `PXB`, `PHB`, `NODE`, `SYS`."""

    def relation(self, one: int, other: int) -> str:
        """Return how two cards are joined. Raises KeyError for a card that is not there."""
        return self.relations[min(one, other), max(one, other)]

    def nvlinks(self, one: int, other: int) -> int:
        """Return the number of NVLinks between two cards; 0 when they are joined by PCIe only."""
        word = self.relation(one, other)
        return int(word[2:]) if word.startswith("NV") else 0


def parse(text: str) -> Topology:
    """Read the matrix. Raises ParseError for any form that is not known."""
    lines = [line.rstrip() for line in plain(text).splitlines() if line.strip()]
    if not lines:
        raise ParseError(_WHAT, "")
    devices = _AFFINITY.sub("", lines[0]).split()
    if not any(_GPU.fullmatch(d) for d in devices) or len(set(devices)) != len(devices):
        raise ParseError(_WHAT, lines[0])
    rows: dict[str, list[str]] = {}
    for line in lines[1:]:
        if rows and _LEGEND.fullmatch(line):
            continue
        name, *cells = line.split()
        cells = cells[: len(devices)]
        if name not in devices or name in rows or len(cells) < len(devices) or not all(map(_CELL.fullmatch, cells)):
            raise ParseError(_WHAT, line)
        rows[name] = cells
    return _matrix(devices, rows, lines[0])


def _matrix(devices: list[str], rows: dict[str, list[str]], header: str) -> Topology:
    """Check that the matrix is whole and says the same in both directions."""
    gpus = {int(match[1]): name for name in devices if (match := _GPU.fullmatch(name))}
    column = {name: i for i, name in enumerate(devices)}
    for name in gpus.values():
        if name not in rows or rows[name][column[name]] != "X":
            raise ParseError(_WHAT, f"{name} in {header}")
    relations = {}
    for one, other in combinations(sorted(gpus), 2):
        here, there = rows[gpus[one]][column[gpus[other]]], rows[gpus[other]][column[gpus[one]]]
        if here != there or here == "X":
            raise ParseError(_WHAT, f"{gpus[one]}-{gpus[other]} is {here} one way and {there} the other")
        relations[one, other] = here
    return Topology(tuple(sorted(gpus)), relations)
