"""`nvidia-smi topo -m` and `-p2p`: how each pair of cards is joined.

Cells are separated by tabs (doubled before some columns) or by runs of blanks; the header may be underlined with
escape codes; affinity cells may be empty or `N/A`; network cards add rows and columns of their own. None of the cells
that say how two devices are joined holds a blank, so they are the first words of a row, one per device.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import combinations

from rigctl.parse import ParseError, plain

_WHAT, _WHAT_P2P = "`nvidia-smi topo -m`", "`nvidia-smi topo -p2p`"
_GPU = re.compile(r"GPU(\d{1,4})", re.ASCII)
_DEVICE = re.compile(r"[A-Za-z][\w.:-]*", re.ASCII)
_CELL = re.compile(r"X|NV\d{1,3}|PIX|PXB|PHB|NODE|SOC|SYS", re.ASCII)
_CELL_P2P = re.compile(r"X|OK|CNS|GNS|TNS|NS|DR|U", re.ASCII)
_AFFINITY = re.compile(r"\s+(CPU Affinity|NUMA Affinity|GPU NUMA ID)\b", re.ASCII)
_AFFINITY_CELL = re.compile(r"\d{1,5}(?:[-,]\d{1,5})*|N/A", re.ASCII)
_LEGEND = re.compile(r"(?:NIC )?Legend:|\s+\S+\s+=\s+.*|\s+NIC\d+:\s+\S+.*")


@dataclass(frozen=True)
class Topology:
    """How the cards are joined, by nvidia-smi's index, which is NVML's."""

    gpus: tuple[int, ...]
    relations: dict[tuple[int, int], str]
    """For each pair, lower index first: `NV4`, `PIX`, `PXB`, `PHB`, `NODE`, `SYS`; of `-p2p` `OK` or why not."""
    cpus: dict[int, str] = field(default_factory=dict)
    """Processors near each card, as `0-11,24-35`; cards for which the table says none are left out."""
    numa: dict[int, int] = field(default_factory=dict)
    """Memory node near each card; cards for which the table says none are left out."""

    def relation(self, one: int, other: int) -> str:
        """Return how two cards are joined. Raises KeyError for a card that is not there."""
        return self.relations[min(one, other), max(one, other)]

    def nvlinks(self, one: int, other: int) -> int:
        """Return the number of NVLinks between two cards; 0 when they are joined by PCIe only."""
        word = self.relation(one, other)
        return int(word[2:]) if word.startswith("NV") else 0


def parse(text: str) -> Topology:
    """Read the matrix. Raises ParseError for any form that is not known."""
    header, rows = _table(_WHAT, text, _CELL)
    topology = _matrix(_WHAT, header, rows)
    cpus: dict[int, str] = {}
    numa: dict[int, int] = {}
    columns = _AFFINITY.findall(header)
    for name, row in rows.items():
        match = _GPU.fullmatch(name)
        if wrong := next((cell for cell in row.rest if not (match and _AFFINITY_CELL.fullmatch(cell))), None):
            raise ParseError(_WHAT, f"{wrong} in the row of {name}")
        if len(row.rest) > len(columns):
            raise ParseError(_WHAT, f"the row of {name} is longer than the header")
        # Cells may be empty, and tabs are doubled here and there: only a full row tells which cell is which.
        if match and len(row.rest) == len(columns):
            near = dict(zip(columns, row.rest, strict=True))
            if near.get("CPU Affinity", "N/A") != "N/A":
                cpus[int(match[1])] = near["CPU Affinity"]
            if near.get("NUMA Affinity", "N/A").isdecimal():
                numa[int(match[1])] = int(near["NUMA Affinity"])
    return Topology(topology.gpus, topology.relations, cpus, numa)


def parse_p2p(text: str) -> Topology:
    """Read `topo -p2p r` and its like: `OK`, or why two cards cannot reach each other's memory.

    `GNS` is the card's (GeForce with NVIDIA's own driver), `CNS` the chipset's, `TNS` the topology's, `DR` switched off
    in the driver, `NS` not supported, `U` unknown. Raises ParseError for any form that is not known.
    """
    header, rows = _table(_WHAT_P2P, text, _CELL_P2P)
    if wrong := next((name for name, row in rows.items() if row.rest), None):
        raise ParseError(_WHAT_P2P, f"the row of {wrong} is longer than the header")
    return _matrix(_WHAT_P2P, header, rows)


@dataclass(frozen=True)
class _Row:
    cells: list[str]
    rest: list[str]


def _devices(header: str) -> list[str]:
    found = _AFFINITY.search(header)
    return (header[: found.start()] if found else header).split()


def _table(what: str, text: str, cell: re.Pattern[str]) -> tuple[str, dict[str, _Row]]:
    """Return the header and the rows by their device."""
    lines = [line.rstrip() for line in plain(text).splitlines() if line.strip()]
    if not lines:
        raise ParseError(what, "")
    devices = _devices(lines[0])
    known = all(map(_DEVICE.fullmatch, devices)) and any(_GPU.fullmatch(d) for d in devices)
    if not known or len(set(devices)) != len(devices) or _AFFINITY.sub("", lines[0]).split() != devices:
        raise ParseError(what, lines[0])
    rows: dict[str, _Row] = {}
    for line in lines[1:]:
        if rows and _LEGEND.fullmatch(line):
            continue
        name, *cells = line.split()
        row = _Row(cells[: len(devices)], cells[len(devices) :])
        if name not in devices or name in rows or len(cells) < len(devices) or not all(map(cell.fullmatch, row.cells)):
            raise ParseError(what, line)
        rows[name] = row
    return lines[0], rows


def _matrix(what: str, header: str, rows: dict[str, _Row]) -> Topology:
    """Check that the matrix is whole and says the same in both directions."""
    devices = _devices(header)
    gpus = {int(match[1]): name for name in devices if (match := _GPU.fullmatch(name))}
    column = {name: i for i, name in enumerate(devices)}
    for name in gpus.values():
        if name not in rows or rows[name].cells[column[name]] != "X":
            raise ParseError(what, f"{name} in {header}")
    relations = {}
    for one, other in combinations(sorted(gpus), 2):
        here = rows[gpus[one]].cells[column[gpus[other]]]
        there = rows[gpus[other]].cells[column[gpus[one]]]
        if here != there or here == "X":
            raise ParseError(what, f"{gpus[one]}-{gpus[other]} is {here} one way and {there} the other")
        relations[one, other] = here
    return Topology(tuple(sorted(gpus)), relations)
