"""Figures in the texts of other programs: only plain ones count, and none is so long that it stops being one.

`float` and `int` take `nan`, `1_000`, other scripts' digits and numbers of any length; here all of these are no figure.
"""

from __future__ import annotations

import re

WHOLE = r"-?\d{1,18}"
"""A whole number, as part of a pattern (with re.ASCII)."""
NUMBER = rf"{WHOLE}(?:\.\d{{1,18}})?"
"""A number without exponent, as part of a pattern (with re.ASCII)."""
_WHOLE = re.compile(WHOLE, re.ASCII)
_THOUSANDS = re.compile(r"-?\d{1,3}(?:,\d{3}){1,8}", re.ASCII)
_NUMBER = re.compile(rf"{NUMBER}(?:[eE][+-]?\d{{1,2}})?", re.ASCII)


def whole(text: str) -> int:
    """Return a whole number; `1,234,567` is one too. Raises ValueError for anything else."""
    if _WHOLE.fullmatch(text):
        return int(text)
    if _THOUSANDS.fullmatch(text):
        return int(text.replace(",", ""))
    raise ValueError(f"{text[:40]!r} is no whole number")


def number(text: str) -> float:
    """Return a number. Raises ValueError for anything else, `nan` and `inf` included."""
    if _NUMBER.fullmatch(text):
        return float(text)
    raise ValueError(f"{text[:40]!r} is no number")
