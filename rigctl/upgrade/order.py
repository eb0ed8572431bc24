"""Which rig may be begun next: canary first, so many at once, never two of one group. Pure."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from rigctl.errors import UsageError
from rigctl.model.upgrade import End, RigEnd

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from rigctl.model.upgrade import Group, Pace

FAILED = (End.REFUSED, End.ROLLED_BACK, End.LEFT_DRAINED)
OUT = (End.LEFT_DRAINED,)
"""Ends that leave a rig out of use."""


def max_unavailable(words: str, rigs: int) -> int:
    """Read `2` or `25%` (rounded down, one at least) of `rigs`.

    Raises:
        UsageError: no such number, none at all, or more rigs than there are.
    """
    found = re.fullmatch(r"(\d+)(%?)", words.strip())
    hint = f"a number from 1 to {rigs}, or a percentage from 1% to 100%"
    if found is None:
        raise UsageError(f"--max-unavailable {words!r} is neither a number nor a percentage", hint)
    number = int(found.group(1))
    if found.group(2):
        if not 0 < number <= 100:  # noqa: PLR2004 - per cent
            raise UsageError(f"--max-unavailable {words}: no rig, or more than all, would be out", hint)
        return max(1, math.floor(rigs * number / 100))
    if number < 1:
        raise UsageError(f"--max-unavailable {words}: no rig could be upgraded", hint)
    if number > rigs:
        raise UsageError(f"--max-unavailable {words}: there are {rigs} rigs", hint)
    return number


def choose_canary(pace: Pace, rigs: Sequence[str], busy: Mapping[str, int]) -> str:
    """Return the rig that goes first: the one that was named, or the least busy, in the inventory's order.

    Raises:
        UsageError: the named one is not among the rigs.
    """
    if pace.canary is None:
        return min(rigs, key=lambda rig: busy.get(rig, 0))
    if pace.canary not in rigs:
        raise UsageError(f"--canary {pace.canary} is not among the rigs", f"choose one of {', '.join(rigs)}")
    return pace.canary


def has_stopped(pace: Pace, canary: str, ends: Iterable[RigEnd]) -> bool:
    """Whether nothing new may be begun: the canary failed, or more rigs than allowed did."""
    failed = [one.rig for one in ends if one.end in FAILED]
    return canary in failed or len(failed) > pace.max_failures


def may_begin(rig: str, out: Collection[str], pace: Pace, groups: Iterable[Group]) -> bool:
    """Whether a rig may be taken out now, while those of `out` are; those left drained count as out."""
    if len(out) >= pace.max_unavailable:
        return False
    return not any(rig in group.rigs and set(group.rigs) & set(out) for group in groups)
