"""One verdict per card: the cards that are there, and a word for those that should be."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from rigctl.checks.say import Say
    from rigctl.model.reading import GpuFacts, Readings
    from rigctl.model.spec import RigSpec
    from rigctl.model.verdict import CheckVerdict

ABSENT = "absent card"
"""Subject of what could not be measured because a card is not there: nobody knows which slot it left."""

FACTS_FIX = "rigctl doctor {rig}, then `rigctl accept {rig}` again"


def cards(readings: Readings) -> list[GpuFacts]:
    """Return the cards that NVML shows, in slot order; none where the facts were not read."""
    return sorted(readings.facts.gpus, key=lambda gpu: gpu.slot) if readings.facts else []


def subject_of(readings: Readings, slot: object) -> str:
    """Return the subject of the card in `slot`, or `rig` where no such card is known."""
    return next((gpu.subject for gpu in cards(readings) if gpu.slot == slot), "rig")


def why_no_card(readings: Readings) -> tuple[str, str]:
    """Say why no card can be judged at all, and what to do."""
    facts = readings.facts
    if facts is None:
        return "the rig's facts were not read", FACTS_FIX.format(rig=readings.rig)
    if facts.driver.nvml_error:
        return f"NVML cannot be asked: {facts.driver.nvml_error}", "see software.driver_version"
    return "NVML shows no card", "`lspci -d 10de:` on the rig tells whether the bus sees one; check power and slot"


def each_card(
    say: Say, spec: RigSpec, readings: Readings, judge: Callable[[GpuFacts, Say], CheckVerdict]
) -> list[CheckVerdict]:
    """Judge every card, and say an error for what an absent card leaves unmeasured."""
    present = cards(readings)
    if not present:
        reason, fix = why_no_card(readings)
        return [say.error(reason, fix)]
    verdicts = [judge(gpu, say.of(gpu.subject)) for gpu in present]
    missing = spec.parts.gpu_count - len(present)
    if missing > 0:
        reason = f"{missing} of {spec.parts.gpu_count} cards cannot be seen, so nothing of it was measured"
        verdicts.append(say.of(ABSENT).error(reason, "see topology.gpu_count"))
    return verdicts
