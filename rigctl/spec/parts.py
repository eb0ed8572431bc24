"""What is built in, exactly as one run saw it."""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING, Any

from rigctl.parse.xid import same_card

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rigctl.model.reading import Facts, GpuFacts

_SPEED_STEP = 10
"""Link speeds are rounded down to tenths of a GB/s."""


class MixedCards(ValueError):
    """The rig's cards are not alike, and a class has one model."""


def parts_of(facts: Facts) -> dict[str, Any]:
    """Return the part of a spec that lists what is built in, without what only a load shows.

    Raises:
        MixedCards: no card, or cards of several models.
    """
    gpus = sorted(facts.gpus, key=lambda gpu: gpu.slot)
    models = sorted({gpu.name for gpu in gpus})
    if len(models) != 1:
        raise MixedCards(", ".join(models) or "no card")
    parts: dict[str, Any] = {"gpu_count": len(gpus), "gpu_model": models[0]}
    memory = [gpu.memory_mib for gpu in gpus if gpu.memory_mib is not None]
    if len(memory) == len(gpus):
        parts["min_gpu_memory_mib"] = min(memory)
    parts |= _links(gpus)
    speeds = [link.speed_gb_per_s for gpu in gpus for link in gpu.links if link.active and link.speed_gb_per_s]
    if speeds:
        parts["min_nvlink_gb_per_s"] = math.floor(min(speeds) * _SPEED_STEP) / _SPEED_STEP
    return parts


def joined_pairs(gpus: Sequence[GpuFacts]) -> frozenset[str]:
    """Return the pairs that NVLinks join, by bridge or through switches, as verdicts name them: `slot1-slot2`."""
    return frozenset(
        f"slot{one.slot}-slot{other.slot}" for one, other in combinations(gpus, 2) if _joined(gpus, one, other)
    )


def _joined(gpus: Sequence[GpuFacts], one: GpuFacts, other: GpuFacts) -> bool:
    return bool(_between(one, other)) or ("nvswitch_links" in _links(gpus) and any(link.active for link in one.links))


def _links(gpus: Sequence[GpuFacts]) -> dict[str, Any]:
    """Return the bridged pairs, or the links to switches; nothing where no link is active."""
    pairs = [
        {"slots": [one.slot, other.slot], "kind": "nvlink", "links": count}
        for one, other in combinations(gpus, 2)
        if (count := _between(one, other))
    ]
    if pairs:
        return {"links": pairs}
    switched = [sum(link.active for link in gpu.links) for gpu in gpus]
    return {"nvswitch_links": max(switched)} if any(switched) else {}


def _between(one: GpuFacts, other: GpuFacts) -> int:
    return sum(
        link.active and link.remote_pci_bus_id is not None and same_card(link.remote_pci_bus_id, other.pci_bus_id)
        for link in one.links
    )
