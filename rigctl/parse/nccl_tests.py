"""nccl-tests (github.com/NVIDIA/nccl-tests): its table of versions 2.0 to 2.17, and `-J`.

Columns differ: a test without a reduction leaves that column blank, older versions have no `root` and say `error`
instead of `#wrong`. `N/A` there means that results were not checked. The average is dragged down by small sizes, so
whoever judges takes the large ones. NCCL's own messages stand between the rows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rigctl.parse import ParseError, plain
from rigctl.parse.figures import NUMBER, number
from rigctl.parse.json_text import Entry, document

if TYPE_CHECKING:
    from collections.abc import Sequence

_WHAT, _JSON = "the output of nccl-tests", "`-J` of nccl-tests"
_RANK = re.compile(r"#\s+Rank\s+(\d{1,6}) .*")
_HEADER = re.compile(r"#\s+size\s+count\s+type.*\s(?:#wrong|error)\s*")
_BOUNDS = re.compile(r"# Out of bounds values\s*: (\d{1,18}) (OK|FAILED)\s*", re.ASCII)
_FLOAT = rf"{NUMBER}(?:e[+-]\d{{2}})?"
"""`%g` and `%e`: long times and many wrong elements are written with an exponent."""
_AVERAGE = re.compile(rf"# Avg bus bandwidth\s*: ({_FLOAT})\s*(?:OK|FAILED)?\s*", re.ASCII)
_FIGURES = rf"\s+({_FLOAT})\s+({_FLOAT})\s+({_FLOAT})\s+({_FLOAT}|N/A)"
_ROW = re.compile(
    rf"\s*(\d{{1,18}})\s+(\d{{1,18}})\s+([a-z]\w*)(?:\s+([a-z]\w*))?(?:\s+(-?\d{{1,6}}))?{_FIGURES}{_FIGURES}\s*",
    re.ASCII,
)
_CHATTER = re.compile(r"NCCL version \S+|\S+:\d+:\d+ \[\d+\] NCCL (?:INFO|WARN) .*|.* NCCL (?:INFO|WARN|TRACE) .*")
_TROUBLE = re.compile(
    r".*Test (?:NCCL|CUDA) failure .*|.*: Test timeout \(.*|.*: Test failure .*|\s*\.\. \S+ pid \d+: .*|.*NCCL WARN .*"
)


@dataclass(frozen=True)
class Placement:
    """One measurement of one size."""

    time_us: float
    algorithm_gb_per_s: float
    bus_gb_per_s: float
    wrong: int | None
    """Wrong elements; None where results were not checked."""


@dataclass(frozen=True)
class Size:
    """One row."""

    size_bytes: int
    out_of_place: Placement
    in_place: Placement

    @property
    def bus_gb_per_s(self) -> float:
        """The lower of the two bus bandwidths, GB/s."""
        return min(self.out_of_place.bus_gb_per_s, self.in_place.bus_gb_per_s)


@dataclass(frozen=True)
class NcclRun:
    """One run."""

    ranks: int | None
    sizes: tuple[Size, ...]
    out_of_bounds: int | None
    """Wrong elements in all; None where the run ended before its summary, or checked nothing."""
    average_gb_per_s: float | None
    trouble: tuple[str, ...] = ()
    """Failures and warnings of NCCL, the first twenty."""

    @property
    def checked(self) -> bool:
        """Whether results of every size were compared with what they should be; in place, some tests cannot."""
        pairs = [(size.out_of_place.wrong, size.in_place.wrong) for size in self.sizes]
        return bool(pairs) and all(pair != (None, None) for pair in pairs)

    @property
    def wrong(self) -> int:
        """Wrong elements that were found, in rows and summary."""
        placements = [one for size in self.sizes for one in (size.out_of_place, size.in_place)]
        return max(self.out_of_bounds or 0, sum(one.wrong or 0 for one in placements))


_MAX_TROUBLE = 20


def parse(text: str) -> NcclRun:
    """Read the table. Raises ParseError with the first line of an unknown form, and where there is no row at all."""
    ranks, header, sizes = 0, False, []
    bounds: int | None = None
    average: float | None = None
    trouble: list[str] = []
    for line in filter(str.strip, plain(text).splitlines()):
        if line.startswith("#"):
            ranks += bool(_RANK.fullmatch(line))
            header = header or bool(_HEADER.fullmatch(line))
            bounds, average = _summary(line, bounds, average)
        elif header and (match := _ROW.fullmatch(line)):
            sizes.append(_size(match))
        elif _TROUBLE.fullmatch(line):
            trouble.append(line.strip())
        elif not _CHATTER.fullmatch(line.strip()):
            raise ParseError(_WHAT, line)
    if not sizes and not trouble:
        raise ParseError(_WHAT, text.strip().partition("\n")[0])
    return NcclRun(ranks or None, tuple(sizes), bounds, average, tuple(trouble[:_MAX_TROUBLE]))


def _summary(line: str, bounds: int | None, average: float | None) -> tuple[int | None, float | None]:
    for start, pattern in (("# Out of bounds", _BOUNDS), ("# Avg bus", _AVERAGE)):
        if not line.startswith(start):
            continue
        match = pattern.fullmatch(line)
        if match is None or (pattern is _BOUNDS and (match[1] == "0") != (match[2] == "OK")):
            raise ParseError(_WHAT, line)
        if pattern is _BOUNDS:
            return int(match[1]), average
        return bounds, float(match[1])
    return bounds, average


def _size(match: re.Match[str]) -> Size:
    return Size(int(match[1]), _placement(match.groups()[5:9]), _placement(match.groups()[9:13]))


def _placement(cells: Sequence[str]) -> Placement:
    time, algorithm, bus = map(number, cells[:3])
    if min(time, algorithm, bus) < 0 or cells[3].startswith("-"):
        raise ParseError(_WHAT, " ".join(cells))
    return Placement(time, algorithm, bus, None if cells[3] == "N/A" else int(number(cells[3])))


def parse_json(text: str) -> NcclRun:
    """Read the file of `-J`. Raises ParseError where it is cut, of another form, or holds no row."""
    root = Entry(_JSON, document(_JSON, text))
    sizes = tuple(
        Size(entry.count("size"), _of_json(entry.entry("out_of_place")), _of_json(entry.entry("in_place")))
        for entry in root.each("results")
    )
    if not sizes:
        raise ParseError(_JSON, "results: []")
    bounds = root.entry("out_of_bounds").count("count") if root.has("out_of_bounds") else None
    average = root.entry("average_bus_bandwidth").number("bandwidth") if root.has("average_bus_bandwidth") else None
    return NcclRun(None, sizes, bounds, average)


def _of_json(entry: Entry) -> Placement:
    figures = (entry.number("time"), entry.number("alg_bw"), entry.number("bus_bw"))
    if min(figures) < 0:
        entry.wrong("bus_bw", figures)
    return Placement(*figures, entry.count("nwrong") if entry.has("nwrong") else None)
