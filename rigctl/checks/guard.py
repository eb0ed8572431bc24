"""The guard on the rig: whether it stopped the load, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rigctl.checks import load
from rigctl.checks.cards import subject_of, why_no_card
from rigctl.checks.say import Say

if TYPE_CHECKING:
    from rigctl.model.reading import Readings, RigEvent
    from rigctl.model.spec import RigSpec
    from rigctl.model.verdict import CheckVerdict

_UNMEASURED = {
    "no_valid_sample": (
        "it had no valid sample of every card for too long",
        "a card stopped answering: look at kernel.xid and its power cables, then reboot {rig}",
    ),
    "controller_lost": (
        "it did not hear from the controller for too long",
        "check controller and network, then `rigctl accept {rig}` again; a longer controller_lost_s is a choice too",
    ),
    "spool_failed": (
        "it could not write its samples to the rig's disk",
        "is the disk of {rig} full? `df -h /var/lib/rigctl` there",
    ),
    "others_work": (
        "somebody else began to work on the cards",
        "talk to them; `rigctl accept {rig}` again when the rig is free, or with --evict-users",
    ),
    "asked": ("it was asked to", "`rigctl accept {rig}` again when it suits"),
}

_NAMED = ("others_work", "asked")
"""Stops whose event says who or why in its own words."""
_SPEC_KEYS = {
    "core": "guard_max_gpu_temp_c",
    "memory": "guard_max_gpu_memory_temp_c",
    "processor": "guard_max_cpu_temp_c",
}
_HEAT_FIX = {
    "core": "check the pump, then the cold plate's seating, fans and coolant",
    "memory": "check the memory's thermal pads, then the air at the card's back",
    "hot spot": "check the cold plate's seating and paste: the die is hot in one place",
    "processor": "check the CPU cooler's pump or fan, its seating and paste",
}
_BRAKE_FIX = "power supply or its cables to the card: one cable per connector; then the supply's own alarms"


def guard(spec: RigSpec, readings: Readings) -> list[CheckVerdict]:
    """The guard let every load come to its own end."""
    limit = spec.limits.guard_max_gpu_temp_c
    say = Say("thermals.guard", "rig", limit, "°C", spec.source("limits.guard_max_gpu_temp_c"))
    stops = load.events(readings, "guard_stopped")
    if stops:
        return _one_per_subject([_stopped(say, readings, stop, spec) for stop in stops])
    if not readings.events:
        if readings.facts is None or not readings.facts.gpus:
            return [say.error(*why_no_card(readings))]
        return [say.error("the guard reported nothing", f"journalctl -u 'rigctl-*' on {readings.rig}")]
    if not load.events(readings, "plan_finished"):
        last = readings.events[-1]
        reason = f"the guard's own events end in step {last.step or 'none'} ({last.event}), before the plan's end"
        return [say.error(reason, f"see guard.log of {readings.rig}, and journalctl -u 'rigctl-*' there")]
    temps = [gpu.temp_c for s in readings.samples for gpu in s.gpus if gpu.temp_c is not None]
    hottest = max(temps, default=None)
    reason = "no load was stopped" + (f"; {hottest:.0f} °C at most" if hottest is not None else "")
    return [say.passed(reason, hottest)]


def _stopped(say: Say, readings: Readings, stop: RigEvent, spec: RigSpec) -> CheckVerdict:
    why = str(stop.detail.get("reason", "unknown"))
    where = f"the guard stopped the load in step {stop.step}"
    if why == "temperature":
        return _too_hot(say, readings, stop, spec)
    subject = subject_of(readings, stop.detail.get("slot"))
    if why == "power_brake":
        braked = Say(say.check, subject, "no power brake", source="NVML's throttle reason HwPowerBrakeSlowdown")
        return braked.failed(f"{where}: supply or board signalled power brake to the card", "power brake", _BRAKE_FIX)
    if why == "fan_still":
        name, found = str(stop.detail.get("sensor", "a fan")), _figure(stop.detail.get("found"))
        limit = _figure(stop.detail.get("limit"))
        still = Say(say.check, subject, f"turning above {_words(limit)}", source="its own tachometer")
        reason = f"{where}: {name} stood still (0 rpm) at {_words(found)}"
        return still.failed(reason, "0 rpm", "replace the fan or pump, or plug it in; then its tachometer's wire")
    words, fix = _UNMEASURED.get(why, (f"of {why!r}", "see guard.log of {rig}"))
    if why in _NAMED:
        words = f"{words}: {stop.detail.get('found', 'no name given')}"
    return say.error(f"{where}: {words}", fix.format(rig=readings.rig))


def _too_hot(say: Say, readings: Readings, stop: RigEvent, spec: RigSpec) -> CheckVerdict:
    """A temperature at its limit, or on its way there faster than anything else could stop it."""
    detail = stop.detail
    found, limit, soon = (_figure(detail.get(key)) for key in ("found", "limit", "expected_c"))
    sensor = str(detail.get("sensor", "core"))
    limit = limit if limit is not None else _figure(say.expected)
    unit = str(detail.get("unit", say.unit))
    hot = Say(say.check, subject_of(readings, detail.get("slot")), limit, unit, _source(say, spec, detail, sensor))
    what = {"processor": "the processor", "core": "the card"}.get(sensor, f"the card's {sensor}")
    where = f"the guard stopped the load in step {stop.step}"
    if sensor == "hot spot" and found is not None:
        reason = f"{where}: {what} came within {-found:g} °C of slowing the card down"
    elif soon is not None:
        reason = f"{where}: {what} was at {_words(found)} and rose so fast that {_words(soon)} were 2 s away"
    else:
        reason = f"{where}: {what} reached {_words(found)}"
    return hot.failed(f"{reason}, the limit is {_words(limit)}", found, _HEAT_FIX.get(sensor, _HEAT_FIX["core"]))


def _source(say: Say, spec: RigSpec, detail: dict[str, object], sensor: str) -> str:
    """Where the limit comes from that stopped the load."""
    came_from = detail.get("limit_from")
    if came_from == "history":
        return "the highest core temperature at which this card settled in an accepted run, + 15 °C"
    if came_from == "sensor":
        return "what the processor's own sensor calls critical, − 5 °C"
    of_card = "the highest temperature of its memory" if sensor == "memory" else "slowdown temperature"
    if came_from == "card" or (came_from is None and _figure(detail.get("limit")) != _figure(say.expected)):
        return f"the card's own {of_card} − 5 °C"
    return spec.source(f"limits.{_SPEC_KEYS.get(sensor, _SPEC_KEYS['core'])}")


def _one_per_subject(verdicts: list[CheckVerdict]) -> list[CheckVerdict]:
    """The first stop of a card tells; a second one only follows."""
    return list({verdict.key: verdict for verdict in reversed(verdicts)}.values())[::-1]


def _figure(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _words(figure: float | None) -> str:
    return "an unknown temperature" if figure is None else f"{figure:g} °C"
