"""`nvidia-smi -q -x` and `nvidia-smi -q`: what each card says of itself, in the forms of drivers 418 to 610.

The same things have different names in XML and text and from driver to driver, so each is looked up by its names in
order (`smi_fields`). What is not printed, not exposed and in trouble stays apart. Labels that are not known are passed
over, since every driver adds some; a line that is neither a label nor a section is an error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from rigctl.parse import ParseError, plain, smi_fields, smi_value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rigctl.parse.smi_fields import Path, Throttle
    from rigctl.parse.smi_value import Value

_XML, _TEXT = "`nvidia-smi -q -x`", "`nvidia-smi -q`"
_LARGEST = 20_000_000
"""Characters; eight cards with all their clocks and processes are under one million."""
_CARD = re.compile(r"GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])", re.ASCII)
_BUS = re.compile(r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]", re.ASCII)
_LOG = re.compile(r"=+NVSMI LOG=+")
_LABEL = re.compile(r"(\s*)(\S.*?)\s*:(?: (.*))?")


@dataclass(frozen=True)
class SmiProcess:
    """A process on a card."""

    pid: int
    kind: str
    """`C` computes, `G` draws, `C+G` both, `M+C` under MPS."""
    name: str
    used_mib: float | None


@dataclass(frozen=True)
class SmiCard:
    """What one card says of itself. Names of figures and words: `smi_fields.FIGURES`, `smi_fields.WORDS`."""

    pci_bus_id: str
    figures: dict[str, float]
    words: dict[str, str]
    not_exposed: frozenset[str]
    """What the card says it does not have."""
    trouble: dict[str, str]
    """What should be there and could not be read, with nvidia-smi's word for it."""
    throttle: tuple[str, ...] | None
    """The active reasons; None where not one is printed or exposed."""
    processes: tuple[SmiProcess, ...] | None
    """None where the driver does not tell."""

    def why_not(self, name: str) -> str:
        """Say why `name` has no value."""
        if name in self.trouble:
            return f"nvidia-smi says {self.trouble[name]!r}"
        return "not exposed by this card or driver" if name in self.not_exposed else "not printed by this driver"


@dataclass(frozen=True)
class SmiReport:
    """One report."""

    driver: str | None
    cuda: str | None
    attached: int | None
    """How many cards nvidia-smi counts; with `-i` it prints fewer. None where it is not printed."""
    cards: tuple[SmiCard, ...]


@dataclass
class _Node:
    """A section: labels with values, and sections within."""

    name: str
    indent: int = -1
    values: list[tuple[str, str]] = field(default_factory=list)
    nodes: list[_Node] = field(default_factory=list)
    line: str = ""

    def value(self, path: Path) -> Value | None:
        """Return the value at `path`; None where it is not printed.

        A section can be written as one value (`Remapped Rows : N/A`), which then goes for everything within.
        """
        for depth in range(len(path), 0, -1):
            for node in self._at(path[: depth - 1]):
                for label, text in node.values:
                    value = smi_value.read(text) if label == path[depth - 1] else None
                    if value is not None and (depth == len(path) or (value.absent and value.text)):
                        return value
        return None

    def _at(self, path: Path) -> Iterator[_Node]:
        if not path:
            yield self
        for node in self.nodes:
            if path and node.name == path[0]:
                yield from node._at(path[1:])  # noqa: SLF001 - the same class


def parse_xml(text: str) -> SmiReport:
    """Read `nvidia-smi -q -x`. Raises ParseError where it is cut, no XML, or of another form."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    if len(text) > _LARGEST or "<!ENTITY" in text:
        raise ParseError(_XML, first)
    try:
        root = ET.fromstring(text.strip())  # noqa: S314 - no entity is let in, and expat bounds the rest
    except (ET.ParseError, ValueError, RecursionError) as error:
        raise ParseError(_XML, _line_of(text, error) or first) from error
    if root.tag != "nvidia_smi_log":
        raise ParseError(_XML, first)
    top = _of_xml(root, 0)
    cards = [node for node in top.nodes if node.name == "gpu"]
    return _report(_XML, top, [(node.line, node) for node in cards], xml=True)


def parse_text(text: str) -> SmiReport:
    """Read `nvidia-smi -q`, whole or with `-d`. Raises ParseError with the first line of an unknown form."""
    lines = [line.rstrip() for line in plain(text).splitlines() if line.strip()]
    if not lines or not _LOG.fullmatch(lines[0].strip()):
        raise ParseError(_TEXT, lines[0] if lines else "")
    top = _Node("", line=lines[0])
    open_nodes = [top]
    for line in lines[1:]:
        _take(line, open_nodes)
    _no_empty(top)
    cards = [(match[1], node) for node in top.nodes if (match := _CARD.fullmatch(node.name))]
    return _report(_TEXT, top, cards, xml=False)


def _take(line: str, open_nodes: list[_Node]) -> None:
    """Put one line into the section that it stands in; a label whose value has lines within is a section too."""
    indent = len(line) - len(line.lstrip())
    while open_nodes[-1].indent >= indent:
        open_nodes.pop()
    parent = open_nodes[-1]
    card = _CARD.fullmatch(line.strip())
    match = None if card else _LABEL.fullmatch(line)
    if match:
        parent.values.append((match[2], match[3] or ""))
    # What stands at the margin is a card or a value; anything else would swallow the lines below it.
    if line.startswith("\t") or (not match and bool(card) is not (indent == 0)):
        raise ParseError(_TEXT, line)
    node = _Node(match[2] if match else line.strip(), indent, line=line)
    parent.nodes.append(node)
    open_nodes.append(node)


def _no_empty(top: _Node) -> None:
    """Refuse a line without a value that has nothing under it; deep first would be long, so by a stack."""
    waiting = [top]
    while waiting:
        node = waiting.pop()
        for child in node.nodes:
            if not (child.nodes or child.values or _LABEL.fullmatch(child.line)):
                raise ParseError(_TEXT, child.line)
        waiting += node.nodes


def _of_xml(element: ET.Element, depth: int) -> _Node:
    if depth > 20:  # noqa: PLR2004 - the deepest that nvidia-smi writes is seven
        raise ParseError(_XML, f"<{element.tag}>")
    node = _Node(element.tag, line=element.get("id", ""))
    for child in element:
        if len(child):
            node.nodes.append(_of_xml(child, depth + 1))
        else:
            node.values.append((child.tag, child.text or ""))
    return node


def _line_of(text: str, error: Exception) -> str:
    position = getattr(error, "position", None)
    lines = text.strip().splitlines()
    return lines[position[0] - 1].strip() if position and 0 < position[0] <= len(lines) else ""


def _report(what: str, top: _Node, cards: list[tuple[str, _Node]], *, xml: bool) -> SmiReport:
    attached = top.value(("attached_gpus",) if xml else ("Attached GPUs",))
    count = attached.figure("") if attached else None
    if (attached and (count is None or count < len(cards) or count != int(count))) or not (attached or cards):
        raise ParseError(what, f"attached GPUs: {attached.text if attached else 'not printed'}, {len(cards)} printed")
    if len({bus for bus, _ in cards}) != len(cards):
        raise ParseError(what, "the same card twice")
    versions = smi_fields.VERSIONS_XML if xml else smi_fields.VERSIONS_TEXT
    driver, cuda = (_first(top, paths) for paths in versions)
    return SmiReport(
        driver,
        cuda,
        None if count is None else int(count),
        tuple(_card(what, bus, node, xml=xml) for bus, node in cards),
    )


def _first(top: _Node, paths: tuple[Path, ...]) -> str | None:
    values = (top.value(path) for path in paths)
    return next((value.text for value in values if value is not None and value.absent is None), None)


def _card(what: str, bus: str, node: _Node, *, xml: bool) -> SmiCard:
    if not _BUS.fullmatch(bus):
        raise ParseError(what, f"GPU {bus}")
    figures: dict[str, float] = {}
    words: dict[str, str] = {}
    absent: set[str] = set()
    trouble: dict[str, str] = {}
    for name, entry in smi_fields.FIELDS.items():
        value = _best(node, entry.xml if xml else entry.text)
        if value is None:
            continue
        if value.absent == "trouble":
            trouble[name] = value.text
        elif value.absent:
            absent.add(name)
        elif entry.units is None:
            words[name] = value.text
        else:
            figure = value.figure(*entry.units)
            if figure is not None:
                figures[name] = figure
    throttle = _throttle(what, node, smi_fields.THROTTLE_XML if xml else smi_fields.THROTTLE_TEXT)
    processes = _processes_xml(node) if xml else _processes_text(node)
    return SmiCard(bus, figures, words, frozenset(absent), trouble, throttle, processes)


def _best(node: _Node, paths: tuple[Path, ...]) -> Value | None:
    """Return the first value that is one; else the worst reason why there is none."""
    values = [value for path in paths if (value := node.value(path)) is not None]
    return next(
        (value for wanted in (None, "trouble", "not exposed") for value in values if value.absent == wanted), None
    )


def _throttle(what: str, node: _Node, reasons: dict[str, Throttle]) -> tuple[str, ...] | None:
    known = {name: value for name, paths in reasons.items() if (value := _best(node, paths)) and value.absent is None}
    if wrong := next((value.text for value in known.values() if value.text not in {"Active", "Not Active"}), None):
        raise ParseError(what, wrong)
    return tuple(name for name, value in known.items() if value.text == "Active") if known else None


def _processes_xml(node: _Node) -> tuple[SmiProcess, ...] | None:
    holder = next((one for one in node.nodes if one.name == "processes"), None)
    if holder is None:
        # An empty list is written as an empty element; where the driver cannot tell, it says N/A there.
        empty = node.value(("processes",))
        return () if empty is not None and not empty.text else None
    names = (("pid",), ("type",), ("process_name",), ("used_memory",))
    return tuple(_process(_XML, one, names) for one in holder.nodes if one.name == "process_info")


def _processes_text(node: _Node) -> tuple[SmiProcess, ...] | None:
    said = node.value(("Processes",))
    if said is not None and said.text:
        return () if said.text == "None" else None
    holder = next((one for one in node.nodes if one.name == "Processes"), None)
    if holder is None:
        return None
    names = (("Process ID",), ("Type",), ("Name",), ("Used GPU Memory",))
    found = []
    pids = [text for label, text in holder.values if label == "Process ID"]
    inner = [one for one in holder.nodes if one.name == "Process ID"]
    for pid, one in zip(pids, inner, strict=True):
        one.values.append(("Process ID", pid))
        found.append(_process(_TEXT, one, names))
    return tuple(found)


def _process(what: str, node: _Node, names: tuple[Path, Path, Path, Path]) -> SmiProcess:
    pid, kind, name, used = (node.value(path) for path in names)
    number = pid.figure("") if pid else None
    if number is None or number < 0 or kind is None or name is None:
        raise ParseError(what, f"process {pid.text if pid else node.line}")
    return SmiProcess(int(number), kind.text, name.text, used.figure("MiB") if used else None)
