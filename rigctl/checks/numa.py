"""NUMA: each card hangs on the processor socket that the spec names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rigctl.checks.cards import each_card, why_no_card
from rigctl.checks.say import Say

if TYPE_CHECKING:
    from rigctl.model.reading import GpuFacts, Readings
    from rigctl.model.spec import RigSpec
    from rigctl.model.verdict import CheckVerdict

_BIOS = "look in the BIOS for NUMA, node interleaving and SRAT; a BIOS update may tell the slot's node"


def numa(spec: RigSpec, readings: Readings) -> list[CheckVerdict]:
    """Each card's NUMA node is known where there are several, and is the declared one."""
    declared = spec.parts.gpu_numa_nodes
    say = Say("topology.numa", source=spec.source("parts.gpu_numa_nodes"))
    if readings.facts is None or not readings.facts.gpus:
        return [say.error(*why_no_card(readings))]
    places = {place.uuid: place for place in readings.facts.places}
    nodes = readings.facts.numa_nodes

    def judge(gpu: GpuFacts, say: Say) -> CheckVerdict:
        place = places.get(gpu.uuid)
        if place is None or not place.listed or not nodes:
            return say.error("the kernel does not show the card's place", f"lspci -vv -d 10de: on {readings.rig}")
        asked = declared[gpu.slot - 1] if declared is not None and gpu.slot <= len(declared) else None
        say = say.of(say.subject, asked)
        # One node alone needs no telling, and firmware of such boards often does not tell.
        found = nodes[0] if place.numa_node is None and len(nodes) == 1 else place.numa_node
        if found is None:
            reason = f"the firmware does not tell to which of {len(nodes)} NUMA nodes the card belongs"
            return say.failed(reason, "unknown", _BIOS) if asked is not None else say.warned(reason, "unknown", _BIOS)
        if found not in nodes:
            return say.error(f"the card is said to be on NUMA node {found}, which is not there", _BIOS)
        return _compare(say, readings.rig, asked, found, len(nodes))

    return each_card(say, spec, readings, judge)


def _compare(say: Say, rig: str, asked: int | None, found: int, nodes: int) -> CheckVerdict:
    if asked is None and nodes > 1:
        fix = f"declare it: parts.gpu_numa_nodes in the spec of {rig}'s class"
        return say.warned(f"on NUMA node {found}; the spec names none", found, fix)
    if asked is not None and found != asked:
        reason = f"on NUMA node {found}, {asked} was declared"
        return say.failed(reason, found, f"the card sits in another slot, or: {_BIOS}")
    return say.passed(f"on NUMA node {found} of {nodes}", found)
