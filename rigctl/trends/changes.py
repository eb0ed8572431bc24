"""What else changed on a rig between two of its runs: parts, software, settings, the spec and rigctl itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rigctl.model.past import CardPart, Past

AMBIENT_C = 3.0
"""A room that differs by less explains nothing, °C."""


@dataclass(frozen=True)
class Change:
    """One thing that is not what it was."""

    what: str
    """`driver`, `kernel`, `BIOS`, `card`, `VBIOS`, `power limit`, `room`, `spec`, `rigctl`."""
    where: str
    """The rig, or a card."""
    before: str
    after: str

    @property
    def sentence(self) -> str:
        """In words."""
        at = f"{self.where}: " if self.where != "rig" else ""
        return f"{at}{self.what} {self.before} → {self.after}"


def changes(before: Past, after: Past) -> tuple[Change, ...]:
    """Everything that differs; what one of the runs did not tell is not compared."""
    return tuple(_all(before, after))


def _all(before: Past, after: Past) -> Iterator[Change]:
    old, new = before.parts, after.parts
    for what, one, other in (
        ("driver", old.driver, new.driver),
        ("kernel", old.kernel, new.kernel),
        ("BIOS", old.bios, new.bios),
        ("rigctl", before.rigctl_version, after.rigctl_version),
    ):
        if one and other and one != other:
            yield Change(what, "rig", one, other)
    if old.spec and new.spec and old.spec != new.spec:
        yield Change("spec", "rig", "another", "now")
    if old.ambient_c is not None and new.ambient_c is not None and abs(old.ambient_c - new.ambient_c) >= AMBIENT_C:
        yield Change("room", "rig", f"{old.ambient_c:.0f} °C", f"{new.ambient_c:.0f} °C")
    if old.cards and new.cards:
        yield from _cards(old.cards, new.cards)


def _cards(old: tuple[CardPart, ...], new: tuple[CardPart, ...]) -> Iterator[Change]:
    was, now = {card.uuid: card for card in old}, {card.uuid: card for card in new}
    for card in old:
        if card.uuid not in now:
            yield Change("card", card.slot, card.subject, "gone")
    for card in new:
        known = was.get(card.uuid)
        if known is None:
            yield Change("card", card.slot, "none or another", card.subject)
            continue
        if known.slot != card.slot:
            yield Change("card", card.subject, known.slot, card.slot)
        if known.vbios and card.vbios and known.vbios != card.vbios:
            yield Change("VBIOS", card.subject, known.vbios, card.vbios)
        if known.power_limit_w and card.power_limit_w and known.power_limit_w != card.power_limit_w:
            yield Change("power limit", card.subject, f"{known.power_limit_w:g} W", f"{card.power_limit_w:g} W")
