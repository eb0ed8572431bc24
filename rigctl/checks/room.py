"""The room that a rig stands in, and what a limit of temperature means there.

A limit on a settled temperature is made in some room. Where the spec says in which, the limit moves with the room: a
warm summer fails no rig that winter passed, and a cold winter passes none that summer failed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rigctl.checks import load
from rigctl.checks.cards import cards
from rigctl.checks.curve import BELIEVED_C, REST, at_rest

if TYPE_CHECKING:
    from rigctl.model.reading import Readings
    from rigctl.model.spec import RigSpec

COOLING_DOWN_C = 1.5
"""A card that loses more than this while it is at rest was still warm from earlier work, and shows no room, °C."""


MOST_C = 10.0
"""A limit moves by so much at most, °C: what building and season do. More is a matter of its own, `thermals.rest_temp`,
or a card that rests warm for want of cooling."""


def room_c(readings: Readings) -> float | None:
    """Return how warm the room is before any load, °C: its sensor, or else the coolest card at rest.

    None where neither shows it: no time at rest, a rig still warm from earlier work, or figures that no room has.
    """
    resting = [sample for sample in readings.samples if sample.step in REST]
    sensed = [load.mean(list(sample.room_temps_c.values())) for sample in resting if sample.room_temps_c]
    if len(sensed) >= max(load.FEWEST, len(resting) / 2):
        found: float | None = load.mean(sensed)
    else:
        known = [_rest_c(readings, gpu.uuid) for gpu in cards(readings)]
        found = min((c for c in known if c is not None), default=None)
    return found if found is not None and BELIEVED_C[0] < found < BELIEVED_C[1] else None


def _rest_c(readings: Readings, uuid: str) -> float | None:
    temps = [one.gpu.temp_c for one in at_rest(readings, uuid) if one.gpu.temp_c is not None]
    if len(temps) < load.FEWEST:
        return None
    half = len(temps) // 2
    cools_down = load.mean(temps[:half]) - load.mean(temps[-half:]) > COOLING_DOWN_C
    return None if cools_down else load.mean(temps)


def settled_limit_c(spec: RigSpec, readings: Readings) -> tuple[float | None, str]:
    """Return the limit of the settled core temperature in this room, °C, and in words what the room did to it.

    The words are empty where the limit holds whatever the room: the spec names no room for it, or none was seen.
    """
    limit, made_at = spec.limits.max_settled_gpu_temp_c, spec.limits.settled_at_room_temp_c
    now = room_c(readings) if limit is not None and made_at is not None else None
    if limit is None or made_at is None or now is None:
        return limit, ""
    moved = round(limit + max(-MOST_C, min(MOST_C, now - made_at)), 1)
    return moved, f"{limit:g} °C in a room of {made_at:g} °C are {moved:g} °C in this one of {now:.1f} °C"
