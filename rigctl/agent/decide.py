"""When a burn must stop. Pure: from what the guard sees at one moment to a reason, or none."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

BELOW_SLOWDOWN_C = 5
"""A burn stops so far below the temperature at which the card slows itself down, °C."""


@dataclass(frozen=True)
class Limits:
    """What the plan allows."""

    max_gpu_temp_c: float
    stale_sample_s: float
    controller_lost_s: float
    expected_gpus: tuple[str, ...]


@dataclass(frozen=True)
class CardSeen:
    """The newest valid reading of one card."""

    slot: int
    temp_c: float
    t_mono_s: float
    slowdown_temp_c: float | None = None


@dataclass(frozen=True)
class Situation:
    """What the guard sees at one moment; all times on CLOCK_MONOTONIC, seconds."""

    now_s: float
    watched_since_s: float
    """The first valid sample is due from here on."""
    heard_s: float
    """The controller's last word."""
    cards: Mapping[str, CardSeen] = field(default_factory=dict)
    """Newest valid reading by UUID."""
    spooled_s: float | None = None
    """Since when a reading waits to be written to the disk; None when none waits."""
    spool_error: str | None = None
    asked: str | None = None
    """Why somebody asked the run to stop; None when nobody did."""


@dataclass(frozen=True)
class Stop:
    """Why a burn must stop: the event `guard_stopped`."""

    reason: str
    """temperature · spool_failed · no_valid_sample · controller_lost · asked"""
    found: float | str
    limit: float | str | None = None
    unit: str | None = None
    slot: int | None = None
    uuid: str | None = None


def card_limit_c(max_gpu_temp_c: float, slowdown_temp_c: float | None) -> float:
    """The temperature at which a card's burn stops: the plan's, never looser than the card's slowdown − 5 °C."""
    if slowdown_temp_c is None:
        return max_gpu_temp_c
    return min(max_gpu_temp_c, slowdown_temp_c - BELOW_SLOWDOWN_C)


def decide(limits: Limits, seen: Situation) -> Stop | None:
    """The first reason to stop, the most urgent first; None when the burn may go on."""
    return (
        _temperature(limits, seen)
        or _spool(limits, seen)
        or _stale(limits, seen)
        or _controller(limits, seen)
        or (Stop("asked", seen.asked) if seen.asked is not None else None)
    )


def all_seen(limits: Limits, seen: Situation) -> bool:
    """Whether every expected card has shown a valid reading."""
    return all(uuid in seen.cards for uuid in limits.expected_gpus)


def _temperature(limits: Limits, seen: Situation) -> Stop | None:
    # Every card that can be read counts, expected or not: heat does not ask.
    for uuid, card in sorted(seen.cards.items(), key=lambda item: item[1].slot):
        limit = card_limit_c(limits.max_gpu_temp_c, card.slowdown_temp_c)
        if card.temp_c >= limit:
            return Stop("temperature", card.temp_c, limit, "°C", card.slot, uuid)
    return None


def _spool(limits: Limits, seen: Situation) -> Stop | None:
    if seen.spool_error is not None:
        return Stop("spool_failed", seen.spool_error)
    waiting = 0.0 if seen.spooled_s is None else seen.now_s - seen.spooled_s
    if waiting > limits.stale_sample_s:
        return Stop("spool_failed", round(waiting, 2), limits.stale_sample_s, "s")
    return None


def _stale(limits: Limits, seen: Situation) -> Stop | None:
    for uuid in limits.expected_gpus:
        card = seen.cards.get(uuid)
        age = seen.now_s - (card.t_mono_s if card is not None else seen.watched_since_s)
        if age > limits.stale_sample_s:
            slot = card.slot if card is not None else limits.expected_gpus.index(uuid) + 1
            return Stop("no_valid_sample", round(age, 2), limits.stale_sample_s, "s", slot, uuid)
    return None


def _controller(limits: Limits, seen: Situation) -> Stop | None:
    silence = seen.now_s - seen.heard_s
    if silence > limits.controller_lost_s:
        return Stop("controller_lost", round(silence, 2), limits.controller_lost_s, "s")
    return None
