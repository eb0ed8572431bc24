"""One value as nvidia-smi writes it, in any of its outputs: a figure with its unit, a word, or why there is none.

Two kinds of none are told apart. What the card or its driver does not have (`N/A`, `[Not Supported]`, deprecated) is
not exposed. What should be there and could not be read (`ERR!`, `[Unknown Error]`, `GPU is lost`) is trouble of the
card, and never the same as not having it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from rigctl.parse import ParseError
from rigctl.parse.figures import NUMBER

Absent = Literal["not exposed", "trouble"]

CARD_LINE = re.compile(r"GPU (\d{1,4}): ([A-Za-z][\w .+/()-]*?) \(UUID: ([\w-]+)\)", re.ASCII)
"""How `nvidia-smi -L`, `nvlink` and gpu-burn name a card: number, name, UUID. No name holds a colon or an angle."""
_NOT_EXPOSED = frozenset(
    {"", "n/a", "not supported", "not found", "function not found", "not available", "not applicable"}
)
_TROUBLE = frozenset(
    {"err!", "error", "unknown error", "insufficient permissions", "no permission", "reset required", "timeout"}
)
_NEVER = re.compile(r"requested functionality has been deprecated\.?|not available in \w+ driver model", re.IGNORECASE)
_CARD_TROUBLE = re.compile(r"gpu (?:is lost|requires reset|access blocked.*)", re.IGNORECASE)
_FIGURE = re.compile(rf"({NUMBER}) ?(\S*)", re.ASCII)
_DEPRECATED_FIELD = re.compile(r"\s+\[Deprecated;[^\]]*\]")
"""What driver 610 writes behind a value whose label will go."""


@dataclass(frozen=True)
class Value:
    """One value."""

    text: str
    """As it came, without brackets and notes around it."""
    absent: Absent | None = None

    def figure(self, *units: str) -> float | None:
        """Return the figure in one of `units` ("" where it is written without); None where there is none.

        Raises ParseError for text that is neither a figure in these units nor a known way to say that there is none.
        """
        if self.absent is not None:
            return None
        match = _FIGURE.fullmatch(self.text)
        if match is None or match[2] not in units:
            raise ParseError(f"a value of nvidia-smi in {' or '.join(unit or 'no unit' for unit in units)}", self.text)
        return float(match[1])


def read(text: str) -> Value:
    """Take one cell. Every text is a value; what it says is asked afterwards."""
    bare = _DEPRECATED_FIELD.sub("", text.strip())
    if bare.startswith("[") and bare.endswith("]"):
        bare = bare[1:-1].strip()
    word = bare.lower()
    if word in _NOT_EXPOSED or _NEVER.fullmatch(bare):
        return Value(bare, "not exposed")
    if word in _TROUBLE or _CARD_TROUBLE.fullmatch(bare):
        return Value(bare, "trouble")
    return Value(bare)
