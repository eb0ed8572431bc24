"""The patterns of a memory test, as arithmetic: what each 32-bit word of the memory must hold."""

from __future__ import annotations

from dataclasses import dataclass

WORD_BITS = 32
WORD_MASK = 0xFFFFFFFF
WORD_BYTES = WORD_BITS // 8
ODD = 0x9E3779B1
"""Words are mixed by this odd number, so that each differs from its neighbours in about half of its bits."""


@dataclass(frozen=True)
class Pattern:
    """One content of the whole memory."""

    name: str
    kind: str
    """`walking`: one bit set, the next one in each next word; `address`: each word its own place; `mixed`: mixed."""
    turn: int = 0
    """For walking bits: by how many places the bits are turned; over all turns each bit of each word is the one."""
    inverted: bool = False

    def word(self, place: int) -> int:
        """The word at `place` of a device's tested memory, counted in words from 0."""
        if self.kind == "walking":
            value = 1 << ((place + self.turn) % WORD_BITS)
        elif self.kind == "address":
            value = place & WORD_MASK
        else:
            value = (place * ODD) & WORD_MASK
        return value ^ (WORD_MASK if self.inverted else 0)


def patterns(turns: int) -> list[Pattern]:
    """All patterns: walking ones and zeros with so many turns (32 are all), addresses, and mixed words."""
    every = max(1, WORD_BITS // turns)
    walking = [
        Pattern(f"walking {'zeros' if inverted else 'ones'}, turn {turn}", "walking", turn, inverted)
        for turn in range(0, WORD_BITS, every)
        for inverted in (False, True)
    ]
    others = [
        Pattern(name + (", inverted" if inverted else ""), kind, 0, inverted)
        for name, kind in (("address in address", "address"), ("mixed words", "mixed"))
        for inverted in (False, True)
    ]
    return others + walking


def wrong_bytes(expected: int, found: int) -> int:
    """How many bytes of two words differ."""
    return sum((expected ^ found) >> shift & 0xFF != 0 for shift in range(0, WORD_BITS, 8))
