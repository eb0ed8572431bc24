"""`nvidia-smi nvlink -s`, `-c` and `-e`: state, speed, abilities and error counters of every NVLink.

A card without any link is said in a sentence, whose spelling differs from driver to driver (`inActive`, `inactive`,
`Nvlink`, `NVLink`); a card that cannot have links is said in another one, or by nothing at all (driver 580).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rigctl.parse import ParseError, plain
from rigctl.parse.smi_value import CARD_LINE

if TYPE_CHECKING:
    from collections.abc import Sequence

_STATUS, _ABILITIES, _ERRORS = "`nvidia-smi nvlink -s`", "`nvidia-smi nvlink -c`", "`nvidia-smi nvlink -e`"
_LINK = re.compile(r"(C2C )?Link (\d{1,4}): (?:(\d{1,6}(?:\.\d{1,6})?) GB/s|<inactive>)", re.ASCII | re.IGNORECASE)
_COUNTER = re.compile(r"Link (\d{1,4}): ([A-Za-z][^:]*?): (\d{1,18}|N/A|Not Supported)", re.ASCII)
_RATE = re.compile(r"Link \d{1,4}: [A-Za-z ]*BER: \S+|Link \d{1,4}: <inactive>", re.ASCII)
_INACTIVE = re.compile(r"(?:NVML: )?Unable to retrieve NVLink information as all links are inactive\.?", re.IGNORECASE)
_UNSUPPORTED = re.compile(r"(?:NVML: )?Device does not have or support NVLink\.?", re.IGNORECASE)
_SLICED = re.compile(r"(?:NVML: )?NVLink queries are not supported for devices in MIG mode\.?", re.IGNORECASE)
_ABILITY = re.compile(r"Link (\d{1,4}), (.+?): (true|false)", re.ASCII)


@dataclass(frozen=True)
class LinkStatus:
    """One link; no speed = inactive."""

    link: int
    gb_per_s: float | None
    chip_to_chip: bool = False
    """A C2C link joins the two chips of one module; it is no NVLink between cards."""

    @property
    def active(self) -> bool:
        """Whether the link is up."""
        return self.gb_per_s is not None


@dataclass
class CardLinks:
    """The links of one card."""

    index: int
    name: str
    uuid: str
    links: list[LinkStatus] = field(default_factory=list)
    said: str | None = None
    """`inactive`, `unsupported` or `in MIG mode` where the card has a sentence instead of links."""

    @property
    def active(self) -> tuple[LinkStatus, ...]:
        """The NVLinks that are up."""
        return tuple(link for link in self.links if link.active and not link.chip_to_chip)


@dataclass
class CardErrors:
    """The error counters of one card's links."""

    index: int
    name: str
    uuid: str
    counters: dict[int, dict[str, int | None]] = field(default_factory=dict)
    """By link and by nvidia-smi's name for the counter (`CRC Errors`); None where the card does not count these."""
    said: str | None = None
    """`inactive`, `unsupported` or `in MIG mode` where the card has a sentence instead of links."""


def parse_status(text: str) -> tuple[CardLinks, ...]:
    """Read `nvlink -s`; an empty text is no card. Raises ParseError for any form that is not known."""
    cards: list[CardLinks] = []
    for line in _lines(text):
        if match := CARD_LINE.fullmatch(line):
            cards.append(CardLinks(int(match[1]), match[2], match[3]))
        elif not cards:
            raise ParseError(_STATUS, line)
        elif match := _LINK.fullmatch(line):
            link = LinkStatus(int(match[2]), float(match[3]) if match[3] else None, bool(match[1]))
            if any((link.link, link.chip_to_chip) == (one.link, one.chip_to_chip) for one in cards[-1].links):
                raise ParseError(_STATUS, line)
            cards[-1].links.append(link)
        else:
            cards[-1].said = _sentence(_STATUS, line)
    _each_once(_STATUS, cards)
    return tuple(cards)


def parse_errors(text: str) -> tuple[CardErrors, ...]:
    """Read `nvlink -e`; an empty text is no card. Raises ParseError for any form that is not known.

    Which counters there are differs: replay, recovery and CRC up to Hopper, others on Blackwell.
    """
    cards: list[CardErrors] = []
    for line in _lines(text):
        if match := CARD_LINE.fullmatch(line):
            cards.append(CardErrors(int(match[1]), match[2], match[3]))
        elif not cards:
            raise ParseError(_ERRORS, line)
        elif match := _COUNTER.fullmatch(line):
            link = cards[-1].counters.setdefault(int(match[1]), {})
            if match[2] in link:
                raise ParseError(_ERRORS, line)
            link[match[2]] = int(match[3]) if match[3].isdecimal() else None
        elif not _RATE.fullmatch(line):
            cards[-1].said = _sentence(_ERRORS, line)
    _each_once(_ERRORS, cards)
    return tuple(cards)


def parse_abilities(text: str) -> dict[int, dict[str, bool]]:
    """Read `nvlink -c -i N`: for each link its abilities. Raises ParseError for any form that is not known."""
    abilities: dict[int, dict[str, bool]] = {}
    cards = 0
    for line in _lines(text):
        if match := _ABILITY.fullmatch(line):
            link = abilities.setdefault(int(match[1]), {})
            if match[2] in link:
                raise ParseError(_ABILITIES, line)
            link[match[2]] = match[3] == "true"
        elif not CARD_LINE.fullmatch(line) or cards or abilities:
            raise ParseError(_ABILITIES, line)
        else:
            cards += 1
    if not abilities:
        raise ParseError(_ABILITIES, "")
    return abilities


def _lines(text: str) -> list[str]:
    return [line for line in map(str.strip, plain(text).splitlines()) if line]


def _sentence(what: str, line: str) -> str:
    if _INACTIVE.fullmatch(line):
        return "inactive"
    if _UNSUPPORTED.fullmatch(line):
        return "unsupported"
    if _SLICED.fullmatch(line):
        return "in MIG mode"
    raise ParseError(what, line)


def _each_once(what: str, cards: Sequence[CardLinks | CardErrors]) -> None:
    if len({card.index for card in cards}) != len(cards):
        raise ParseError(what, "the same card twice")
