"""`numactl --hardware`: memory nodes with their processors, sizes and distances."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from rigctl.parse import ParseError

_WHAT = "`numactl --hardware`"
_HEAD = re.compile(r"available: (\d{1,4}) nodes? \(([\d,-]+)\)", re.ASCII)
_CPUS = re.compile(r"node (\d{1,4}) cpus:((?: \d{1,5})*)", re.ASCII)
_SIZE = re.compile(r"node (\d{1,4}) (size|free): (\d{1,12}) MB", re.ASCII)
_DISTANCES = re.compile(r"node distances:")
_COLUMNS = re.compile(r"node((?:\s+\d{1,4})+)", re.ASCII)
_ROW = re.compile(r"\s*(\d{1,4}):((?:\s+\d{1,4})+)", re.ASCII)


@dataclass
class MemoryNode:
    """One memory node."""

    cpus: tuple[int, ...] | None = None
    size_mb: int | None = None
    free_mb: int | None = None
    distances: dict[int, int] = field(default_factory=dict)
    """To each node; 10 is its own."""


def parse(text: str) -> dict[int, MemoryNode]:
    """Read it. Raises ParseError with the first line of an unknown form, and where a node is not told whole."""
    nodes: dict[int, MemoryNode] = {}
    asked, columns, distances = None, [], False
    for line in filter(str.strip, text.splitlines()):
        line = line.rstrip()  # noqa: PLW2901 - the same line
        if (match := _HEAD.fullmatch(line)) and asked is None:
            asked = int(match[1])
        elif match := _CPUS.fullmatch(line):
            nodes.setdefault(int(match[1]), MemoryNode()).cpus = tuple(map(int, match[2].split()))
        elif match := _SIZE.fullmatch(line):
            setattr(nodes.setdefault(int(match[1]), MemoryNode()), f"{match[2]}_mb", int(match[3]))
        elif _DISTANCES.fullmatch(line):
            distances = True
        elif distances and (match := _COLUMNS.fullmatch(line)):
            columns = [int(word) for word in match[1].split()]
        elif columns and (match := _ROW.fullmatch(line)) and int(match[1]) in nodes:
            cells = [int(word) for word in match[2].split()]
            if len(cells) != len(columns):
                raise ParseError(_WHAT, line)
            nodes[int(match[1])].distances = dict(zip(columns, cells, strict=True))
        else:
            raise ParseError(_WHAT, line)
    whole = all(n.cpus is not None and n.size_mb is not None and set(n.distances) == set(nodes) for n in nodes.values())
    if not nodes or asked != len(nodes) or not whole:
        raise ParseError(_WHAT, text.strip().partition("\n")[0])
    return nodes
