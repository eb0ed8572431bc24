"""nvbandwidth (github.com/NVIDIA/nvbandwidth): `-j`, and the text of versions 0.4 to 0.8.

A test that was waived needs something that the rig does not have (a second card, peer access), and is no failure. In
matrices between cards the diagonal is not measured; text writes it as 0.00 or N/A.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from rigctl.parse import ParseError
from rigctl.parse.figures import NUMBER, number
from rigctl.parse.json_text import Entry, document

Status = Literal["passed", "waived", "failed"]

_WHAT, _TEXT = "`nvbandwidth -j`", "nvbandwidth's text"
_STATUS: dict[str, Status] = {
    "Passed": "passed", "Waived": "waived", "Error": "failed", "ERROR": "failed", "Not Found": "failed",
    "Running": "failed",
}  # fmt: skip
"""nvbandwidth's words (its json_output.cpp); a test that is still running when the program ends has failed."""
_UNIT = re.compile(r"\((GB/s|ns)\)\s*$")
_BETWEEN_CARDS = re.compile(r"GPU\(row\) *(?:<-|->|<->) *GPU\(column\)")
_RUNNING = re.compile(r"Running (\w+)\.")
_HEADING = re.compile(
    r"memcpy .*\(row\).*\(column\).*|memory latency .*\(row\).*\(column\).*|.*\(row\).*\((?:GB/s|ns)\)"
)
_COLUMNS = re.compile(r"\d{1,4}(?:\s+\d{1,4})*", re.ASCII)
_ROW = re.compile(rf"(\d{{1,4}})((?:\s+(?:{NUMBER}|N/A))+)", re.ASCII)
_SUM = re.compile(rf"SUM (\w+) ({NUMBER})", re.ASCII)
_QUIET = re.compile(
    r"nvbandwidth Version: \S+|Built from Git version:.*|CUDA (?:Runtime|Driver) Version: \d+|Driver Version: \S+"
    r"|Device \d+: .+|Process \d+ .*: device \d+: .+|MPI version: .*|\[?\S*\]? ?Process \d.*"
    r"|NOTE: .*|Warning: .*|Performance can vary .*|Additional system-specific tuning .*"
    r"|(?:COLUMN|ROW|MIN|MAX|AVG)\S* .*"
)
_TROUBLE = re.compile(
    r"(?:ERROR|Error): .*|ASSERT in expression .*|\[(?:CUDA_ERROR_|cudaError)\w+\] .*|NVML_ERROR: .*"
    r"|Invalid value when checking the pattern at .*|Current offset : \d+"
)
_HOST = re.compile(r"[A-Za-z0-9][\w.-]*")
"""The rig's own name stands alone on a line before the devices, from version 0.7."""
_WAIVED = re.compile(r"Waived:?\s*(\w*).*")


@dataclass(frozen=True)
class Bandwidth:
    """One test."""

    name: str
    """Empty for a waived test of the text, which is not named there."""
    status: Status
    unit: str | None = None
    """`GB/s` or `ns`; None where nothing was measured."""
    matrix: tuple[tuple[float | None, ...], ...] = ()
    """Rows of columns; None where a pair was not measured."""
    error: str | None = None

    @property
    def figures(self) -> tuple[float, ...]:
        """Every measured figure."""
        return tuple(figure for row in self.matrix for figure in row if figure is not None)


def parse(text: str) -> tuple[Bandwidth, ...]:
    """Read `nvbandwidth -j`. Raises ParseError where it is cut, of another form, or holds no test.

    A card that found wrong bytes says so before the document, and of no test in particular: that is a test of its own
    that failed.
    """
    before, brace, rest = text.partition("{")
    said = [line.strip() for line in before.splitlines() if line.strip()]
    if wrong := next((line for line in said if not _TROUBLE.fullmatch(line)), None):
        raise ParseError(_WHAT, wrong)
    root = Entry(_WHAT, document(_WHAT, brace + rest)).entry("nvbandwidth")
    if root.has("error"):
        raise ParseError(_WHAT, str(root.entries["error"]))
    tests = tuple(_test(entry) for entry in root.each("testcases"))
    tests += tuple(Bandwidth("", "failed", error=line) for line in said[:1])
    if not tests:
        raise ParseError(_WHAT, "testcases: []")
    return tests


def _test(entry: Entry) -> Bandwidth:
    name, word = entry.text("name"), entry.text("status")
    status = _STATUS.get(word)
    if status is None:
        entry.wrong("status", word)
    error = entry.text("error") if entry.has("error") else None
    if status != "passed":
        return Bandwidth(name, status, error=error)
    description = entry.text("bandwidth_description")
    unit = _UNIT.search(description)
    if unit is None:
        entry.wrong("bandwidth_description", description)
    matrix = tuple(tuple(_cell(entry, cell) for cell in _row(entry, row)) for row in entry.items("bandwidth_matrix"))
    return _checked(_WHAT, Bandwidth(name, status, unit[1], _diagonal(description, matrix), error), description)


def _row(entry: Entry, row: object) -> list[object]:
    if not isinstance(row, list):
        entry.wrong("bandwidth_matrix", row)
    return row


def _cell(entry: Entry, cell: object) -> float | None:
    if cell == "N/A":
        return None
    try:
        return number(cell) if isinstance(cell, str) else entry.wrong("bandwidth_matrix", cell)
    except ValueError:
        return entry.wrong("bandwidth_matrix", cell)


def _diagonal(description: str, matrix: tuple[tuple[float | None, ...], ...]) -> tuple[tuple[float | None, ...], ...]:
    """Take zeros on the diagonal between cards for what they are: not measured."""
    if not _BETWEEN_CARDS.search(description):
        return matrix
    return tuple(
        tuple(None if i == j and not cell else cell for j, cell in enumerate(row)) for i, row in enumerate(matrix)
    )


def _checked(what: str, test: Bandwidth, description: str) -> Bandwidth:
    widths = {len(row) for row in test.matrix}
    square = not _BETWEEN_CARDS.search(description) or widths == {len(test.matrix)}
    if len(widths) != 1 or not square or not test.figures or min(test.figures) < 0:
        raise ParseError(what, f"{test.name}: {test.matrix!r}")
    return test


def parse_text(text: str) -> tuple[Bandwidth, ...]:
    """Read nvbandwidth's text. Raises ParseError with the first line of an unknown form."""
    reader = _Reader()
    for line in filter(None, map(str.strip, text.splitlines())):
        reader.line(line)
    reader.close()
    if not reader.tests:
        raise ParseError(_TEXT, text.strip().partition("\n")[0])
    return tuple(reader.tests)


class _Reader:
    def __init__(self) -> None:
        self.tests: list[Bandwidth] = []
        self._name: str | None = None
        self._heading = ""
        self._width: int | None = None
        self._rows: list[tuple[float | None, ...]] = []
        self._error: str | None = None

    def line(self, line: str) -> None:
        if match := _RUNNING.fullmatch(line):
            self.close()
            self._name = match[1]
        elif match := _WAIVED.fullmatch(line):
            self.close()
            self.tests.append(Bandwidth(match[1], "waived"))
        elif match := _SUM.fullmatch(line):
            if match[1] != self._name:
                raise ParseError(_TEXT, line)
            self.close()
        elif _TROUBLE.fullmatch(line):
            self._trouble(line)
        elif _HEADING.fullmatch(line) and self._name and not self._heading and _UNIT.search(line):
            self._heading = line
        elif not self._of_matrix(line):
            host = _HOST.fullmatch(line) and not self.tests and self._name is None
            if self._heading or not (host or _QUIET.fullmatch(line)):
                raise ParseError(_TEXT, line)

    def _of_matrix(self, line: str) -> bool:
        """Take the line with the columns, or a row."""
        if self._heading and self._width is None and _COLUMNS.fullmatch(line):
            self._width = len(line.split())
            return True
        if self._width is not None and (match := _ROW.fullmatch(line)):
            self._take_row(line, match[2].split())
            return True
        return False

    def _trouble(self, line: str) -> None:
        """Keep the first line of trouble; what stands outside of a test is a test of its own that failed."""
        if self._name is None:
            self.tests.append(Bandwidth("", "failed", error=line))
        self._error = self._error or line

    def _take_row(self, line: str, cells: list[str]) -> None:
        if len(cells) != self._width:
            raise ParseError(_TEXT, line)
        self._rows.append(tuple(None if cell == "N/A" else number(cell) for cell in cells))

    def close(self) -> None:
        """End the test that is open."""
        if self._name is not None and self._error:
            self.tests.append(Bandwidth(self._name, "failed", error=self._error))
        elif self._name is not None:
            unit = _UNIT.search(self._heading)
            if unit is None or not self._rows:
                raise ParseError(_TEXT, f"Running {self._name}.")
            matrix = _diagonal(self._heading, tuple(self._rows))
            self.tests.append(_checked(_TEXT, Bandwidth(self._name, "passed", unit[1], matrix), self._heading))
        self._name, self._heading, self._width, self._rows, self._error = None, "", None, [], None
