"""The short outputs of nvidia-smi: `-L`, which lists cards and their MIG slices, and `--version`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rigctl.parse import ParseError, plain
from rigctl.parse.smi_value import CARD_LINE

_LIST, _VERSION = "`nvidia-smi -L`", "`nvidia-smi --version`"
_SLICE = re.compile(r"\s+MIG (\S+(?: \S+)*?)\s+Device\s+(\d{1,4}): \(UUID: ([\w/.-]+)\)", re.ASCII)
_NONE = re.compile(r"No devices (?:were )?found\.?")
_RELEASE = re.compile(r"\d{1,4}(?:\.\d{1,4}){1,2}", re.ASCII)
_LINE = re.compile(r"(.+?) version\s*: (.+)", re.IGNORECASE)
_MOVED = re.compile(r"Deprecated\b.*")


@dataclass(frozen=True)
class Slice:
    """One MIG device of a card."""

    profile: str
    index: int
    uuid: str


@dataclass(frozen=True)
class ListedCard:
    """One card of `-L`."""

    index: int
    name: str
    uuid: str
    slices: tuple[Slice, ...] = ()


@dataclass(frozen=True)
class Versions:
    """What `--version` says; None where this driver does not print it, or says that the line has moved."""

    smi: str
    nvml: str | None
    driver: str | None
    cuda: str | None


def parse_list(text: str) -> tuple[ListedCard, ...]:
    """Read `-L`. Raises ParseError for a line of another form, and for a card that stands twice."""
    cards: list[ListedCard] = []
    for line in filter(str.strip, plain(text).splitlines()):
        if match := CARD_LINE.fullmatch(line.rstrip()):
            cards.append(ListedCard(int(match[1]), match[2], match[3]))
        elif (match := _SLICE.fullmatch(line.rstrip())) and cards:
            last = cards.pop()
            found = Slice(match[1], int(match[2]), match[3])
            cards.append(ListedCard(last.index, last.name, last.uuid, (*last.slices, found)))
        elif not (_NONE.fullmatch(line.strip()) and not cards):
            raise ParseError(_LIST, line)
    if len({card.index for card in cards}) != len(cards) or len({card.uuid for card in cards}) != len(cards):
        raise ParseError(_LIST, "the same card twice")
    return tuple(cards)


def parse_version(text: str) -> Versions:
    """Read `--version`, of the drivers that have it (from 530). Raises ParseError for a line of another form."""
    found: dict[str, str | None] = {}
    for line in filter(None, map(str.strip, plain(text).splitlines())):
        match = _LINE.fullmatch(line)
        if match is None or not (_RELEASE.fullmatch(match[2]) or _MOVED.fullmatch(match[2])):
            raise ParseError(_VERSION, line)
        found[match[1].upper()] = None if _MOVED.fullmatch(match[2]) else match[2]
    smi = found.get("NVIDIA-SMI")
    if smi is None:
        raise ParseError(_VERSION, text.strip().partition("\n")[0])
    return Versions(
        smi, found.get("NVML"), found.get("KMD") or found.get("DRIVER"), found.get("CUDA UMD") or found.get("CUDA")
    )
