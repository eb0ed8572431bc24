"""NVSwitch: each card has exactly the declared number of active links, and every pair is joined through the switches.

NVML gives each such link the switch's bus id, never the other card's, so no link can be counted towards a card; a
link that ends at another card of the rig is therefore no link to a switch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rigctl.checks.cards import cards, each_card
from rigctl.checks.load import GPU_STEPS, loaded
from rigctl.checks.matrix import NOT_ASKED, Matrix, read_matrix
from rigctl.checks.say import Say
from rigctl.parse.xid import same_card

if TYPE_CHECKING:
    from rigctl.model.reading import CommandReply, GpuFacts, Readings
    from rigctl.model.spec import RigSpec
    from rigctl.model.verdict import CheckVerdict

_FABRIC = (
    "is the fabric manager of the loaded driver's own version running? `systemctl status nvidia-fabricmanager`; "
    "then the kernel log (Xid 74, SXid), then the card's seat on its baseboard"
)


def switched(spec: RigSpec, readings: Readings, topology: CommandReply | None) -> list[CheckVerdict]:
    """Judge each card's links to the switches, by NVML, under load, and by `nvidia-smi topo -m` where it was asked."""
    asked = spec.parts.nvswitch_links or 0
    say = Say("topology.nvlink", expected=f"NV{asked}", source=spec.source("parts.nvswitch_links"))
    matrix = read_matrix(readings, topology)

    def judge(gpu: GpuFacts, say: Say) -> CheckVerdict:
        if "links" in gpu.missing:
            why = gpu.missing["links"]
            return say.error(f"NVML does not tell its links: {why}", f"nvidia-smi nvlink -s on {readings.rig}")
        active = [link for link in gpu.links if link.active]
        if direct := [link.link for link in active if _ends_at_a_card(readings, link.remote_pci_bus_id)]:
            reason = f"{len(direct)} of its links end at another card, not at a switch"
            return say.failed(reason, f"NV{len(active)}", "correct the spec: these cards are bridged, not switched")
        lowest = min([len(active), *_under_load(readings, gpu.uuid)])
        if lowest != asked:
            when = "" if lowest == len(active) else " under load"
            reason = f"{lowest} active NVLinks to the switches{when}, {asked} were declared"
            fix = _FABRIC if lowest < asked else "correct the spec: this board has more links"
            return say.failed(reason, f"NV{lowest}", fix)
        return _confirm(say, readings, gpu, asked, matrix)

    return each_card(say, spec, readings, judge)


def _confirm(say: Say, readings: Readings, gpu: GpuFacts, asked: int, matrix: Matrix) -> CheckVerdict:
    """Compare with nvidia-smi's own words on every pair of this card."""
    if matrix.topology is None:
        if matrix.trouble == NOT_ASKED:
            return say.passed(f"{asked} active NVLinks to the switches by NVML", f"NV{asked}")
        reason = f"NVML says NV{asked}, and `nvidia-smi topo -m` cannot confirm it: {matrix.trouble}"
        return say.error(reason, matrix.fix)
    others = [other for other in cards(readings) if other.uuid != gpu.uuid]
    words = {f"slot{other.slot}": matrix.between(gpu, other) for other in others}
    if unseen := [slot for slot, word in words.items() if word is None]:
        reason = f"`nvidia-smi topo -m` does not show it together with {', '.join(unseen)}"
        return say.error(reason, f"compare `nvidia-smi -L` and `nvidia-smi topo -m` on {readings.rig}")
    if other := [f"{word} to {slot}" for slot, word in words.items() if word != f"NV{asked}"]:
        reason = f"NVML counts {asked} active NVLinks, `nvidia-smi topo -m` says {', '.join(other)}"
        return say.failed(reason, other[0].partition(" ")[0], _FABRIC)
    return say.passed(f"{asked} active NVLinks to the switches; nvidia-smi says NV{asked} to every card", f"NV{asked}")


def _ends_at_a_card(readings: Readings, bus_id: str | None) -> bool:
    return bus_id is not None and any(same_card(bus_id, gpu.pci_bus_id) for gpu in cards(readings))


def _under_load(readings: Readings, uuid: str) -> list[int]:
    """Return how many of the card's links were up in each loaded sample that tells."""
    busy = [one.gpu.links_active for step in GPU_STEPS for one in loaded(readings, step, uuid)]
    return [sum(active) for active in busy if active]
