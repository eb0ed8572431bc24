"""Which rig is accepted when: as many as fit into the window and on their circuits. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


@dataclass(frozen=True)
class Wish:
    """One rig that wants its acceptance."""

    rig: str
    profile: str
    seconds: float
    """How long it is expected to take."""
    watts: float
    """What it draws at most meanwhile."""
    circuit: str | None = None
    """None: it shares its circuit with no other rig."""


@dataclass(frozen=True)
class Slot:
    """When a rig is accepted."""

    wish: Wish
    begin_s: float
    """After the window's begin, seconds."""

    @property
    def end_s(self) -> float:
        """When it is expected to end."""
        return self.begin_s + self.wish.seconds


@dataclass(frozen=True)
class LeftOut:
    """A rig that does not fit, and why."""

    wish: Wish
    reason: str


@dataclass(frozen=True)
class Night:
    """The plan."""

    window_s: float
    slots: tuple[Slot, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    @property
    def end_s(self) -> float:
        """When the last one ends, seconds after the begin."""
        return max((slot.end_s for slot in self.slots), default=0.0)


def plan(wishes: Iterable[Wish], window_s: float, budgets: Mapping[str, float]) -> Night:
    """Place every wish as early as its circuit allows, the longest first.

    Args:
        wishes: One for each rig.
        window_s: How long rigs may be at work, seconds.
        budgets: What each circuit bears, W; a circuit without a budget bears one rig at a time.
    """
    slots: list[Slot] = []
    left_out: list[LeftOut] = []
    for wish in sorted(wishes, key=lambda one: (-one.seconds, one.rig)):
        reason = _never(wish, window_s, budgets)
        begin = None if reason else _earliest(wish, slots, budgets, window_s)
        if begin is None:
            left_out.append(LeftOut(wish, reason or "no time is left in the window beside the others on its circuit"))
        else:
            slots.append(Slot(wish, begin))
    return Night(window_s, tuple(sorted(slots, key=lambda slot: (slot.begin_s, slot.wish.rig))), tuple(left_out))


def may_begin(wish: Wish, running: Sequence[Wish], left_s: float, budgets: Mapping[str, float]) -> bool:
    """Whether a rig may begin now, beside those that are at work, with so much of the window left."""
    return wish.seconds <= left_s and _bears(wish, [one for one in running if one.circuit == wish.circuit], budgets)


def _never(wish: Wish, window_s: float, budgets: Mapping[str, float]) -> str:
    if wish.seconds > window_s:
        return f"profile {wish.profile} takes {_hours(wish.seconds)}, the window has {_hours(window_s)}"
    budget = budgets.get(wish.circuit) if wish.circuit is not None else None
    if budget is not None and wish.watts > budget:
        return f"it draws {wish.watts:.0f} W by itself, circuit {wish.circuit} bears {budget:.0f} W"
    return ""


def _earliest(wish: Wish, slots: Sequence[Slot], budgets: Mapping[str, float], window_s: float) -> float | None:
    """When the wish fits beside what is placed already: at the begin, or where another one ends."""
    if wish.circuit is None:
        return 0.0
    beside = [slot for slot in slots if slot.wish.circuit == wish.circuit]
    for begin in sorted({0.0, *(slot.end_s for slot in beside)}):
        end = begin + wish.seconds
        if end > window_s:
            return None
        # Within its time the load changes only where another one begins: each such moment must bear it.
        moments = [begin, *(slot.begin_s for slot in beside if begin < slot.begin_s < end)]
        if all(_bears(wish, [s.wish for s in beside if s.begin_s <= at < s.end_s], budgets) for at in moments):
            return begin
    return None


def _bears(wish: Wish, others: Sequence[Wish], budgets: Mapping[str, float]) -> bool:
    if wish.circuit is None or not others:
        return True
    budget = budgets.get(wish.circuit)
    return budget is not None and sum(one.watts for one in others) + wish.watts <= budget


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.0f} min"  # noqa: PLR2004 - an hour


@dataclass(frozen=True)
class Rotation:
    """Who gets the deep profile tonight."""

    every_days: int
    last_day: Mapping[str, float] = field(default_factory=dict)
    """When each rig had it last, days since 1970; absent: never."""

    def tonight(self, rigs: Sequence[str], today: float) -> set[str]:
        """Return so many that each gets it once in the time: those that wait longest, and all that are overdue."""
        share = -(-len(rigs) // self.every_days)
        waiting = sorted(rigs, key=lambda rig: (self.last_day.get(rig, 0.0), rig))
        overdue = {rig for rig in rigs if today - self.last_day.get(rig, today) >= self.every_days}
        return set(waiting[:share]) | overdue
