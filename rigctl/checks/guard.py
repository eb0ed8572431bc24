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
    "asked": ("it was asked to", "`rigctl accept {rig}` again when it suits"),
}


def guard(spec: RigSpec, readings: Readings) -> list[CheckVerdict]:
    """The guard let every load come to its own end."""
    limit = spec.limits.guard_max_gpu_temp_c
    say = Say("thermals.guard", "rig", limit, "°C", spec.source("limits.guard_max_gpu_temp_c"))
    stops = load.events(readings, "guard_stopped")
    if stops:
        return _one_per_subject([_stopped(say, readings, stop) for stop in stops])
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


def _stopped(say: Say, readings: Readings, stop: RigEvent) -> CheckVerdict:
    why = str(stop.detail.get("reason", "unknown"))
    where = f"the guard stopped the load in step {stop.step}"
    if why == "temperature":
        found, limit = _figure(stop.detail.get("found")), _figure(stop.detail.get("limit"))
        subject = subject_of(readings, stop.detail.get("slot"))
        spec_limit = _figure(say.expected)
        source = say.source if limit in (None, spec_limit) else "the card's own slowdown temperature − 5 °C"
        hot = Say(say.check, subject, limit if limit is not None else spec_limit, say.unit, source)
        reason = f"{where}: the card reached {_words(found)}, the limit is {_words(_figure(hot.expected))}"
        return hot.failed(reason, found, "check the pump, then the cold plate's seating, fans and coolant")
    words, fix = _UNMEASURED.get(why, (f"of {why!r}", "see guard.log of {rig}"))
    return say.error(f"{where}: {words}", fix.format(rig=readings.rig))


def _one_per_subject(verdicts: list[CheckVerdict]) -> list[CheckVerdict]:
    """The first stop of a card tells; a second one only follows."""
    return list({verdict.key: verdict for verdict in reversed(verdicts)}.values())[::-1]


def _figure(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _words(figure: float | None) -> str:
    return "an unknown temperature" if figure is None else f"{figure:g} °C"
