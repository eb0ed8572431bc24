"""nvidia-smi's table, the one that people paste: of drivers 470 to 610, on Linux and Windows.

Columns are separated by `|`; a card has two lines and, from driver 450, a third for MIG. Names are cut (`RTX 2080 …`),
so the table names no model for certain. A cell that could not be read says `ERR!`, or `N/A` where a healthy card of
this kind has a figure: whoever judges compares cells of the same kind. ECC `Off` is switched off, `N/A` is not there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from rigctl.parse import ParseError, plain, smi_value
from rigctl.parse.smi_report import SmiProcess

_WHAT = "nvidia-smi's table"
_RULE = re.compile(r"[+|][-=+|]+[+|]")
_DATE = re.compile(r"\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}", re.ASCII)
_BANNER = re.compile(
    r"\| NVIDIA-SMI (\S+)\s+(?:KMD|Driver) Version: (\S+)\s+CUDA (?:UMD )?Version: (\S+)\s*\|", re.ASCII
)
_HEADS = re.compile(
    r"\| GPU  Name .*|\| Fan  Temp .*|\|\s+\|\s+\|\s+MIG M\. \|"
    r"|\| Processes:\s+(?:GPU Memory )?\||\|  GPU (?:  GI|   PID|\s+PID).*|\|\s+ID\s+ID\s+Usage\s+\|"
)
_MIG = re.compile(r"\| MIG devices:\s+\|")
_MIG_LINE = re.compile(r"\|[^|]*\|[^|]*\|[^|]*\|[^|]*\||\|  No MIG devices found\s+\|")
_NOBODY = re.compile(r"\|  No running processes found\s+\|")
_FRAME = (_RULE, _DATE, _HEADS, _NOBODY)
_NAME = re.compile(r"\s+(\d{1,4})  (.+?)\s+(On|Off|WDDM|TCC|MCDM|N/A|ERR!)\s*", re.ASCII)
_BUS = re.compile(r"\s*([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\s+(On|Off|N/A|ERR!)\s*", re.ASCII)
_COOL = re.compile(
    r"\s*(?P<fan>\d{1,3}%|N/A|ERR!)\s+(?P<temp>-?\d{1,3}C|N/A|ERR!)\s+(?P<state>P\d{1,2}|N/A|ERR!|P\?)"
    r"\s+(?P<draw>\d{1,5}W|N/A|ERR!)\s*/\s*(?P<limit>\d{1,5}W|N/A|ERR!)\s*",
    re.ASCII,
)
_MEMORY = re.compile(r"\s*(\d{1,8}MiB|N/A|ERR!)\s*/\s*(\d{1,8}MiB|N/A|ERR!)\s*", re.ASCII)
_UTIL = re.compile(r"\s*(\d{1,3}%|N/A|ERR!)\s+(\S.*?)\s*", re.ASCII)
_WORD = re.compile(r"\s*(\S+)\s*")
_PROCESS = re.compile(
    r"\|\s+(\d{1,4})(?:\s+(\d+|N/A)\s+(\d+|N/A))?\s+(\d{1,10})\s+([CGM]\+?[CG]?)\s+(\S.*?)\s+(\d{1,8}MiB|N/A)\s*\|",
    re.ASCII,
)
_UNITS = {"fan_pct": "%", "temp_c": "C", "draw_w": "W", "limit_w": "W", "used_mib": "MiB", "total_mib": "MiB",
          "util_pct": "%"}  # fmt: skip


@dataclass(frozen=True)
class TableCard:
    """One card of the table; figures that stand there, and the words of cells that hold none."""

    index: int
    name: str
    """Cut by nvidia-smi where it is long."""
    pci_bus_id: str
    figures: dict[str, float]
    """Of `fan_pct`, `temp_c`, `draw_w`, `limit_w`, `used_mib`, `total_mib`, `util_pct`."""
    absent: dict[str, str]
    """Cells without a figure: their words, `N/A` or `ERR!`."""
    ecc: str
    """Uncorrected errors since the driver was loaded, or `Off`, `N/A`, `ERR!`."""
    mig: str = "N/A"

    @property
    def errors(self) -> tuple[str, ...]:
        """Which cells say `ERR!`: the card is not in order."""
        cells = {**self.absent, "ecc": self.ecc, "mig": self.mig}
        return tuple(name for name, word in cells.items() if smi_value.read(word).absent == "trouble")


@dataclass(frozen=True)
class Table:
    """The whole table; the versions are None where its head was cut away."""

    driver: str | None
    cuda: str | None
    cards: tuple[TableCard, ...]
    processes: tuple[tuple[int, SmiProcess], ...]
    """Each with its card's index."""


def parse(text: str) -> Table:
    """Read the table. Raises ParseError with the first line of an unknown form."""
    reader = _Reader()
    for line in filter(str.strip, plain(text).splitlines()):
        reader.line(line.rstrip() if line.startswith("|") else line.strip())
    if not reader.cards or reader.half is not None:
        raise ParseError(_WHAT, reader.half or text.strip().partition("\n")[0])
    if len({card.index for card in reader.cards}) != len(reader.cards):
        raise ParseError(_WHAT, "the same card twice")
    return Table(*reader.versions, tuple(reader.cards), tuple(reader.processes))


class _Reader:
    def __init__(self) -> None:
        self.versions: tuple[str | None, str | None] = (None, None)
        self.cards: list[TableCard] = []
        self.processes: list[tuple[int, SmiProcess]] = []
        self.half: str | None = None
        """The first line of a card whose second has not come yet."""
        self._slices = False

    def line(self, line: str) -> None:
        if self.half is not None:
            self._second(line)
        elif match := _BANNER.fullmatch(line):
            self.versions = (match[2], match[3])
        elif match := _PROCESS.fullmatch(line):
            used = smi_value.read(match[7]).figure("MiB")
            self.processes.append((int(match[1]), SmiProcess(int(match[4]), match[5], match[6], used)))
        elif _MIG.fullmatch(line) or (self._slices and _MIG_LINE.fullmatch(line)):
            # What a slice uses is not read: whoever judges MIG asks NVML.
            self._slices = True
        elif not (self._first(line) or self._third(line) or any(p.fullmatch(line) for p in _FRAME)):
            raise ParseError(_WHAT, line)

    def _first(self, line: str) -> bool:
        cells = line.split("|")[1:-1]
        if len(cells) != 3 or not (name := _NAME.fullmatch(cells[0])):  # noqa: PLR2004 - the table's columns
            return False
        bus, ecc = _BUS.fullmatch(cells[1]), _WORD.fullmatch(cells[2])
        if bus is None or ecc is None:
            raise ParseError(_WHAT, line)
        self.cards.append(TableCard(int(name[1]), name[2], bus[1], {}, {}, ecc[1]))
        self.half = line
        return True

    def _second(self, line: str) -> None:
        cells = line.split("|")[1:-1]
        if len(cells) != 3:  # noqa: PLR2004 - the table's columns
            raise ParseError(_WHAT, line)
        cool, memory, util = _COOL.fullmatch(cells[0]), _MEMORY.fullmatch(cells[1]), _UTIL.fullmatch(cells[2])
        if cool is None or memory is None or util is None:
            raise ParseError(_WHAT, line)
        found = (cool["fan"], cool["temp"], cool["draw"], cool["limit"], memory[1], memory[2], util[1])
        words = dict(zip(_UNITS, found, strict=True))
        read = {name: smi_value.read(word).figure(_UNITS[name]) for name, word in words.items()}
        figures = {name: figure for name, figure in read.items() if figure is not None}
        absent = {name: word for name, word in words.items() if name not in figures}
        self.cards.append(replace(self.cards.pop(), figures=figures, absent=absent))
        self.half = None

    def _third(self, line: str) -> bool:
        cells = line.split("|")[1:-1]
        if len(cells) != 3 or cells[0].strip() or cells[1].strip() or not self.cards:  # noqa: PLR2004 - as above
            return False
        if (word := _WORD.fullmatch(cells[2])) is None:
            return False
        self.cards.append(replace(self.cards.pop(), mig=word[1].rstrip("*")))
        return True
