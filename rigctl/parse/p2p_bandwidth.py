"""p2pBandwidthLatencyTest of NVIDIA's CUDA samples: bandwidth and latency between cards, with peer access and without.

Where a pair has no peer access, the sample still prints a matrix for `P2P=Enabled`, measured through the host; so
`can_access` says for which pairs those figures mean what their title says.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from rigctl.parse import ParseError
from rigctl.parse.figures import NUMBER, number

_WHAT = "p2pBandwidthLatencyTest"
_TITLE = re.compile(r"\[P2P \(Peer-to-Peer\) GPU Bandwidth Latency Test\]")
_DEVICE = re.compile(r"Device: (\d{1,4}), (.+?), pciBusID: ([0-9a-fA-F]+), pciDeviceID: .*", re.ASCII)
_ACCESS = re.compile(r"Device=(\d{1,4}) (CAN|CANNOT) Access Peer Device=(\d{1,4})", re.ASCII)
_CONNECTIVITY = re.compile(r"P2P Connectivity Matrix")
_BANDWIDTH = re.compile(
    r"(Unidirectional|Bidirectional) P2P=(Disabled|Enabled) Bandwidth (?:\(P2P (?:Writes|Reads)\) )?Matrix \(GB/s\)"
)
_LATENCY = re.compile(r"P2P=(Disabled|Enabled) Latency (?:\(P2P (?:Writes|Reads)\) )?Matrix \(us\)")
_COLUMNS = re.compile(r"(D\\D|GPU|CPU)((?:\s+\d{1,4})+)", re.ASCII)
_ROW = re.compile(rf"(\d{{1,4}})((?:\s+{NUMBER})+)", re.ASCII)
_QUIET = re.compile(
    r"\*\*\*NOTE: In case a device doesn't have P2P access.*|So you can see lesser Bandwidth.*|NOTE: The CUDA Samples.*"
    r"|.*are not meant for performance measurements.*|.*[Rr]esults may vary when GPU Boost is enabled.*"
)

Matrix = tuple[tuple[float, ...], ...]


@dataclass
class P2pRun:
    """One run; cards are counted as CUDA counts them."""

    cards: dict[int, str] = field(default_factory=dict)
    bus: dict[int, str] = field(default_factory=dict)
    """The bus number of each card, as hexadecimal digits."""
    can_access: dict[tuple[int, int], bool] = field(default_factory=dict)
    bandwidth: dict[tuple[str, bool], Matrix] = field(default_factory=dict)
    """GB/s, by `one way` or `both ways`, and by whether peer access was on."""
    latency_us: dict[bool, Matrix] = field(default_factory=dict)
    """As the cards measured it, by whether peer access was on."""


def parse(text: str) -> P2pRun:
    """Read a run. Raises ParseError with the first line of an unknown form, and where a matrix is not whole."""
    reader = _Reader()
    for line in filter(None, map(str.strip, text.splitlines())):
        reader.line(line)
    reader.close()
    run = reader.run
    if not run.cards or not run.bandwidth:
        raise ParseError(_WHAT, text.strip().partition("\n")[0])
    return run


class _Reader:
    def __init__(self) -> None:
        self.run = P2pRun()
        self._title = ""
        self._kind = ""
        self._rows: list[tuple[float, ...]] = []

    def line(self, line: str) -> None:
        if any(pattern.fullmatch(line) for pattern in (_CONNECTIVITY, _BANDWIDTH, _LATENCY)):
            self.close()
            self._title = line
        elif self._title and (match := _COLUMNS.fullmatch(line)):
            self._end_matrix()
            if [int(word) for word in match[2].split()] != list(range(len(self.run.cards))):
                raise ParseError(_WHAT, line)
            self._kind = match[1]
        elif self._kind and (match := _ROW.fullmatch(line)):
            cells = tuple(map(number, match[2].split()))
            if int(match[1]) != len(self._rows) or len(cells) != len(self.run.cards) or min(cells) < 0:
                raise ParseError(_WHAT, line)
            self._rows.append(cells)
        elif not self._title and (match := _DEVICE.fullmatch(line)):
            if int(match[1]) != len(self.run.cards):
                raise ParseError(_WHAT, line)
            self.run.cards[int(match[1])], self.run.bus[int(match[1])] = match[2], match[3]
        elif match := _ACCESS.fullmatch(line):
            self.run.can_access[int(match[1]), int(match[3])] = match[2] == "CAN"
        elif not (_TITLE.fullmatch(line) or _QUIET.fullmatch(line)):
            raise ParseError(_WHAT, line)

    def close(self) -> None:
        """End the part under the present title."""
        self._end_matrix()
        if self._title and not self._filed(self._title):
            raise ParseError(_WHAT, self._title)
        self._title = ""

    def _filed(self, title: str) -> bool:
        if match := _BANDWIDTH.fullmatch(title):
            return (_way(match), match[2] == "Enabled") in self.run.bandwidth
        if match := _LATENCY.fullmatch(title):
            return (match[1] == "Enabled") in self.run.latency_us
        return True

    def _end_matrix(self) -> None:
        rows, kind, self._rows, self._kind = tuple(self._rows), self._kind, [], ""
        if not kind:
            return
        if len(rows) != len(self.run.cards):
            raise ParseError(_WHAT, self._title)
        if match := _BANDWIDTH.fullmatch(self._title):
            self.run.bandwidth[_way(match), match[2] == "Enabled"] = rows
        elif (match := _LATENCY.fullmatch(self._title)) and kind == "GPU":
            self.run.latency_us[match[1] == "Enabled"] = rows


def _way(match: re.Match[str]) -> str:
    return "one way" if match[1] == "Unidirectional" else "both ways"
