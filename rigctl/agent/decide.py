"""When a burn must stop. Pure: from what the guard sees at one moment to a reason, or none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .situation import CardSeen, Limits, Situation

BELOW_SLOWDOWN_C = 5
"""A burn stops so far below the temperature at which the card slows itself down, °C; so for memory and processor."""
FAN_NEEDED_C = 60
"""Above this temperature a fan or pump whose tachometer says zero stops the burn, °C."""
FAN_STILL_S = 1.0
"""A tachometer must have said zero for so long, seconds: a single missed pulse is no standstill."""
OTHERS_S = 0.8
"""Somebody else's work must have been seen twice, so far apart, seconds: a process may have ended meanwhile."""
SPEC, HISTORY, CARD, SENSOR = "spec", "history", "card", "sensor"
"""Where the limit of a stop comes from: the plan's limits, or what card or sensor say of themselves."""
CORE, MEMORY, HOT_SPOT, PROCESSOR = "core", "memory", "hot spot", "processor"


@dataclass(frozen=True)
class Stop:
    """Why a burn must stop: the event `guard_stopped`."""

    reason: str
    """temperature · power_brake · fan_still · others_work · spool_failed · no_valid_sample · controller_lost · asked"""
    found: float | str
    limit: float | str | None = None
    unit: str | None = None
    slot: int | None = None
    uuid: str | None = None
    sensor: str | None = None
    """Which temperature: core, memory, hot spot, processor; or which tachometer."""
    limit_from: str | None = None
    """Where the limit comes from: spec, history, card, sensor."""
    expected_c: float | None = None
    """What was expected within two seconds, °C, where that stopped the burn before the limit itself was reached."""


def card_limit_c(
    max_gpu_temp_c: float, slowdown_temp_c: float | None, history_c: float | None = None
) -> tuple[float, str]:
    """The temperature at which a card's burn stops, °C, and where it comes from: the tightest of all that is known."""
    known = _tightest((max_gpu_temp_c, SPEC), (history_c, HISTORY), (_below(slowdown_temp_c), CARD))
    return known or (max_gpu_temp_c, SPEC)


def decide(limits: Limits, seen: Situation) -> Stop | None:
    """The first reason to stop, the most urgent first; None when the burn may go on."""
    return (
        _temperature(limits, seen)
        or _power_brake(seen)
        or _processor(limits, seen)
        or _fans(seen)
        or _spool(limits, seen)
        or _stale(limits, seen)
        or _others(seen)
        or _controller(limits, seen)
        or (Stop("asked", seen.asked) if seen.asked is not None else None)
    )


def all_seen(limits: Limits, seen: Situation) -> bool:
    """Whether every expected card has shown a valid reading."""
    return all(uuid in seen.cards for uuid in limits.expected_gpus)


def limits_in_words(limits: Limits, seen: Situation) -> dict[str, str]:
    """At what each card and the processor are stopped, and why at that: what the run's events tell."""
    found: dict[str, str] = {}
    for uuid, card in _by_slot(seen):
        history_c = limits.history_max_gpu_temp_c.get(uuid)
        limit, limit_from = card_limit_c(limits.max_gpu_temp_c, card.slowdown_temp_c, history_c)
        found[f"slot{card.slot}"] = f"{limit:g} °C ({limit_from})"
        memory = _tightest((limits.max_gpu_memory_temp_c, SPEC), (_below(card.memory_max_temp_c), CARD))
        if card.memory_temp_c is not None and memory is not None:
            found[f"slot{card.slot} {MEMORY}"] = f"{memory[0]:g} °C ({memory[1]})"
    if seen.processor is not None:
        known = _tightest((limits.max_cpu_temp_c, SPEC), (_below(seen.processor.critical_temp_c), SENSOR))
        found[PROCESSOR] = "no limit is known" if known is None else f"{known[0]:g} °C ({known[1]})"
    return found


def _by_slot(seen: Situation) -> list[tuple[str, CardSeen]]:
    # Every card that can be read counts, expected or not: heat does not ask.
    return sorted(seen.cards.items(), key=lambda item: item[1].slot)


def _temperature(limits: Limits, seen: Situation) -> Stop | None:
    for uuid, card in _by_slot(seen):
        stop = _core(limits, uuid, card) or _memory(limits, uuid, card) or _hot_spot(uuid, card)
        if stop is not None:
            return stop
    return None


def _core(limits: Limits, uuid: str, card: CardSeen) -> Stop | None:
    limit, limit_from = card_limit_c(
        limits.max_gpu_temp_c, card.slowdown_temp_c, limits.history_max_gpu_temp_c.get(uuid)
    )
    hot = Stop("temperature", card.temp_c, limit, "°C", card.slot, uuid, CORE, limit_from)
    return _reached(hot, card.temp_c, card.soon_c, limit)


def _memory(limits: Limits, uuid: str, card: CardSeen) -> Stop | None:
    known = _tightest((limits.max_gpu_memory_temp_c, SPEC), (_below(card.memory_max_temp_c), CARD))
    if card.memory_temp_c is None or known is None:
        return None
    limit, limit_from = known
    hot = Stop("temperature", card.memory_temp_c, limit, "°C", card.slot, uuid, MEMORY, limit_from)
    return _reached(hot, card.memory_temp_c, card.memory_soon_c, limit)


def _hot_spot(uuid: str, card: CardSeen) -> Stop | None:
    """The hottest spot of the die, of which newer cards tell only how far it is from slowing the card down."""
    if card.margin_c is None or card.margin_c > BELOW_SLOWDOWN_C:
        return None
    return Stop("temperature", -card.margin_c, -BELOW_SLOWDOWN_C, "°C from slowdown", card.slot, uuid, HOT_SPOT, CARD)


def _reached(hot: Stop, temp_c: float, soon_c: float | None, limit_c: float) -> Stop | None:
    """The stop, where the limit is reached or will be within two seconds."""
    if temp_c >= limit_c:
        return hot
    if soon_c is not None and soon_c >= limit_c:
        return replace(hot, expected_c=round(soon_c, 1))
    return None


def _below(own_limit_c: float | None) -> float | None:
    return None if own_limit_c is None else own_limit_c - BELOW_SLOWDOWN_C


def _tightest(*limits: tuple[float | None, str]) -> tuple[float, str] | None:
    """The lowest limit that is known, and where it comes from."""
    known = [(limit, limit_from) for limit, limit_from in limits if limit is not None]
    return min(known, key=lambda one: one[0], default=None)


def _power_brake(seen: Situation) -> Stop | None:
    for uuid, card in _by_slot(seen):
        if card.power_brake:
            return Stop("power_brake", "the power-brake signal", slot=card.slot, uuid=uuid)
    return None


def _processor(limits: Limits, seen: Situation) -> Stop | None:
    package = seen.processor
    if package is None:
        return None
    known = _tightest((limits.max_cpu_temp_c, SPEC), (_below(package.critical_temp_c), SENSOR))
    if known is None:
        return None
    limit_c, limit_from = known
    if package.temp_c >= limit_c:
        return Stop("temperature", package.temp_c, limit_c, "°C", sensor=PROCESSOR, limit_from=limit_from)
    age = seen.now_s - package.t_mono_s
    if age > limits.stale_sample_s:
        return Stop("no_valid_sample", round(age, 2), limits.stale_sample_s, "s", sensor=PROCESSOR)
    return None


def _fans(seen: Situation) -> Stop | None:
    """A fan or pump that stands still where something is hot: the card that it cools, or anything in the rig."""
    of_cards = {card.slot: card.temp_c for card in seen.cards.values()}
    processor_c = [seen.processor.temp_c] if seen.processor is not None else []
    for fan in seen.fans_still:
        temps = [*of_cards.values(), *processor_c] if fan.slot is None else [of_cards.get(fan.slot, 0.0)]
        hottest = max(temps, default=0.0)
        if hottest > FAN_NEEDED_C and seen.now_s - fan.since_s >= FAN_STILL_S:
            return Stop("fan_still", hottest, FAN_NEEDED_C, "°C", fan.slot, sensor=fan.name)
    return None


def _others(seen: Situation) -> Stop | None:
    if seen.others is not None and seen.others.last_s - seen.others.first_s >= OTHERS_S:
        return Stop("others_work", seen.others.words)
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
    if limits.controller_lost_s is not None and silence > limits.controller_lost_s:
        return Stop("controller_lost", round(silence, 2), limits.controller_lost_s, "s")
    return None
