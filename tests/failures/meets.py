"""Which failure modes a test meets; `docs/failure-modes.md` is generated from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    Test = Callable[..., object]


def meets(*faults: str) -> Callable[[Test], Test]:
    """Say which faults of the catalogue a test meets."""

    def note(test: Test) -> Test:
        test.meets = faults  # type: ignore[attr-defined]
        return test

    return note
