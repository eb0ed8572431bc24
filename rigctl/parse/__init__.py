"""Texts of other programs, read whole: every known form is taken, an unknown one is said with its first line.

Pure: text in, typed values out. A parser never guesses and never returns nothing for garbage; it raises `ParseError`,
or, where half of a text is still evidence, carries the unknown line beside what it understood.
"""

from __future__ import annotations

import re

_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_LONGEST = 160


class ParseError(ValueError):
    """A text has a form that is not known; `line` is the first line that did not parse."""

    def __init__(self, what: str, line: str) -> None:
        shown = line if len(line) <= _LONGEST else line[:_LONGEST] + "…"
        super().__init__(f"{what} has an unknown form, first at the line {shown!r}")
        self.line = line


def plain(text: str) -> str:
    """Return `text` without terminal escape codes, which nvidia-smi writes even into a pipe."""
    return _ANSI.sub("", text)
