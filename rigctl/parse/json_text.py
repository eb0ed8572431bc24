"""JSON that other programs write, read so that nothing in it is taken for more than it is.

A wrong document names its line; a wrong entry names its key. `NaN`, `Infinity`, figures without end, a key that stands
twice (the second would hide the first) and nesting without end are refused.
"""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from rigctl.parse import ParseError

_LARGEST = 20_000_000
"""Characters; the largest report that is read, fio's with all its histograms, has a few hundred thousand."""
_WIDEST = 40
"""Digits of the longest whole number: the NVMe log counts in 128 bits, which are 39 digits."""


def document(what: str, text: str) -> dict[str, Any]:
    """Read one JSON object. Raises ParseError with the line that is wrong, or with the first where it is no object."""
    if len(text) > _LARGEST:
        raise ParseError(what, f"{len(text)} characters")

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        entries = dict(pairs)
        if len(entries) != len(pairs):
            raise ParseError(what, f"a key that stands twice: {sorted(key for key, _ in pairs)}")
        return entries

    def constant(word: str) -> NoReturn:
        raise ParseError(what, word)

    def integer(digits: str) -> int:
        if len(digits) > _WIDEST:
            raise ParseError(what, digits)
        return int(digits)

    try:
        found = json.loads(text, object_pairs_hook=once, parse_constant=constant, parse_int=integer)
    except json.JSONDecodeError as error:
        raise ParseError(
            what, (text.splitlines() or [""])[min(error.lineno, len(text.splitlines()) or 1) - 1]
        ) from error
    except RecursionError as error:
        raise ParseError(what, "objects within objects without end") from error
    if not isinstance(found, dict):
        raise ParseError(what, next((line for line in text.splitlines() if line.strip()), ""))
    return found


class Entry:
    """One JSON object of a report; every wrong value is a ParseError that shows its key."""

    def __init__(self, what: str, entries: Any, path: str = "") -> None:
        self.what = what
        self.path = path
        if not isinstance(entries, dict):
            self.wrong("", entries)
        self.entries: dict[str, Any] = entries

    def wrong(self, key: str, found: Any) -> NoReturn:
        """Raise ParseError for the value of `key`."""
        raise ParseError(self.what, f"{self.path}{key}: {found!r}"[:400])

    def has(self, key: str) -> bool:
        """Whether `key` is there and not null."""
        return self.entries.get(key) is not None

    def text(self, key: str) -> str:
        """Return a string."""
        found = self.entries.get(key)
        if not isinstance(found, str):
            self.wrong(key, found)
        return found

    def number(self, key: str) -> float:
        """Return a finite number."""
        found = self.entries.get(key)
        if isinstance(found, bool) or not isinstance(found, (int, float)) or not math.isfinite(found):
            self.wrong(key, found)
        return float(found)

    def count(self, key: str) -> int:
        """Return a whole number that is not negative."""
        found = self.entries.get(key)
        if isinstance(found, bool) or not isinstance(found, int) or found < 0:
            self.wrong(key, found)
        return found

    def items(self, key: str) -> list[Any]:
        """Return a list."""
        found = self.entries.get(key)
        if not isinstance(found, list):
            self.wrong(key, found)
        return found

    def entry(self, key: str) -> Entry:
        """Return an object within this one."""
        return Entry(self.what, self.entries.get(key), f"{self.path}{key}.")

    def each(self, key: str) -> list[Entry]:
        """Return the objects of a list."""
        return [Entry(self.what, one, f"{self.path}{key}[{i}].") for i, one in enumerate(self.items(key))]
