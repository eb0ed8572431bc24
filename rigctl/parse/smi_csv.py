"""`nvidia-smi --query-… --format=csv`, with header or without, with units in the cells or not.

Cells are separated by a comma and a blank and never quoted, so a process whose name holds commas makes its row longer;
as all other cells are known, the name is what is left. One field that the driver does not know fails the whole query,
in a sentence instead of a table.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rigctl.parse import ParseError, plain, smi_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rigctl.parse.smi_value import Value

_WHAT = "`nvidia-smi --query`"
_COLUMN = re.compile(r"([A-Za-z][\w.]*)(?: \[([^\]]+)\])?", re.ASCII)
_FREE = ("process_name", "name")
"""Columns whose cells can hold commas; that of processes first, where a table has both."""
_WHOSE = frozenset({
    "index", "name", "uuid", "serial", "pci.bus_id", "gpu_name", "gpu_uuid", "gpu_serial", "gpu_bus_id", "pid",
})  # fmt: skip
"""Columns that tell whose row it is. Without one, any word could be taken for the header of an empty table."""
_NOTHING = re.compile(r"No (?:devices were found|running processes found|running compute processes found)\.?")


@dataclass(frozen=True)
class Row:
    """One card, process or page."""

    cells: dict[str, Value]
    units: dict[str, str]

    def value(self, *names: str) -> Value:
        """Return the cell under the first of `names` that the table has: fields were renamed from driver to driver.

        Raises ParseError where it has none of them.
        """
        for name in names:
            if name in self.cells:
                return self.cells[name]
        raise ParseError(_WHAT, f"no column {' or '.join(names)}")

    def figure(self, *names: str) -> float | None:
        """Return the figure under the first of `names`, with the unit of its column or none; None where there is none.

        Raises ParseError for another unit and for text that is no figure.
        """
        value = self.value(*names)
        name = next(name for name in names if name in self.cells)
        return value.figure("", self.units.get(name, ""))


def parse(text: str, columns: Sequence[str] = ()) -> tuple[Row, ...]:
    """Read the table.

    Args:
        text: what nvidia-smi wrote.
        columns: where `noheader` was asked for, the header's names, as they were asked for; an entry may hold its
            unit as a header does (`power.draw [W]`). One must tell whose row it is: `index`, `uuid`, `pid`, …

    Raises:
        ParseError: with the first line that is not of this table.
    """
    lines = [line for line in plain(text).splitlines() if line.strip()]
    if not columns and not lines:
        raise ParseError(_WHAT, "")
    header = list(columns) if columns else lines.pop(0).split(", ")
    names = [_COLUMN.fullmatch(one.strip()) for one in header]
    known = [match[1] for match in names if match]
    if len(known) != len(header) or len(set(known)) != len(known) or _WHOSE.isdisjoint(known):
        raise ParseError(_WHAT, ", ".join(header))
    units = {match[1]: match[2] for match in names if match and match[2]}
    return tuple(_row(line, known, units) for line in lines if not _NOTHING.fullmatch(line.strip()))


def _row(line: str, names: list[str], units: dict[str, str]) -> Row:
    cells = line.split(", ")
    free = next((name for name in _FREE if name in names), None)
    if len(cells) > len(names) and free:
        at = names.index(free)
        behind = len(names) - at - 1
        cells = [*cells[:at], ", ".join(cells[at : len(cells) - behind]), *cells[len(cells) - behind :]]
    if len(cells) != len(names):
        raise ParseError(_WHAT, line)
    return Row({name: smi_value.read(cell) for name, cell in zip(names, cells, strict=True)}, units)


def retired_pages(rows: Sequence[Row]) -> int:
    """Count the retired pages in `--query-retired-pages`.

    A card without any still has a row for each cause, with `[N/A]` for the address.
    """
    return sum(row.value("retired_pages.address").absent is None for row in rows)
