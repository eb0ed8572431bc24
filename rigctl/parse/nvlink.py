"""`nvidia-smi nvlink -s` and `-c`: the state, speed and abilities of every NVLink.

A card without any link is said in a sentence, whose spelling differs from driver to driver (`inActive`, `inactive`,
`Nvlink`, `NVLink`); a card that cannot have links is said in another one, or by nothing at all (driver 580).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from rigctl.parse import ParseError, plain

_STATUS, _ABILITIES = "`nvidia-smi nvlink -s`", "`nvidia-smi nvlink -c`"
_CARD = re.compile(r"GPU (\d+): (.+?) \(UUID: ([\w-]+)\)", re.ASCII)
_LINK = re.compile(r"(C2C )?Link (\d+): (?:(\d+(?:\.\d+)?) GB/s|<inactive>)", re.ASCII | re.IGNORECASE)
_INACTIVE = re.compile(r"(?:NVML: )?Unable to retrieve NVLink information as all links are inactive\.?", re.IGNORECASE)
_UNSUPPORTED = re.compile(r"(?:NVML: )?Device does not have or support NVLink\.?", re.IGNORECASE)
_ABILITY = re.compile(r"Link (\d+), (.+?): (true|false)", re.ASCII)


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
    """`inactive` or `unsupported` where the card has a sentence instead of links."""

    @property
    def active(self) -> tuple[LinkStatus, ...]:
        """The NVLinks that are up."""
        return tuple(link for link in self.links if link.active and not link.chip_to_chip)


def parse_status(text: str) -> tuple[CardLinks, ...]:
    """Read `nvlink -s`; an empty text is no card. Raises ParseError for any form that is not known."""
    cards: list[CardLinks] = []
    for line in filter(None, map(str.strip, plain(text).splitlines())):
        if match := _CARD.fullmatch(line):
            cards.append(CardLinks(int(match[1]), match[2], match[3]))
        elif not cards:
            raise ParseError(_STATUS, line)
        elif match := _LINK.fullmatch(line):
            cards[-1].links.append(LinkStatus(int(match[2]), float(match[3]) if match[3] else None, bool(match[1])))
        elif _INACTIVE.fullmatch(line):
            cards[-1].said = "inactive"
        elif _UNSUPPORTED.fullmatch(line):
            cards[-1].said = "unsupported"
        else:
            raise ParseError(_STATUS, line)
    return tuple(cards)


def parse_abilities(text: str) -> dict[int, dict[str, bool]]:
    """Read `nvlink -c -i N`: for each link its abilities. Raises ParseError for any form that is not known."""
    abilities: dict[int, dict[str, bool]] = {}
    for line in filter(None, map(str.strip, plain(text).splitlines())):
        if match := _ABILITY.fullmatch(line):
            abilities.setdefault(int(match[1]), {})[match[2]] = match[3] == "true"
        elif not _CARD.fullmatch(line):
            raise ParseError(_ABILITIES, line)
    if not abilities:
        raise ParseError(_ABILITIES, "")
    return abilities
