"""What a rig's earlier runs say of an Xid: one that comes again within a week is the hardware's."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rigctl.parse import xid

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rigctl.model.history import PastXid
    from rigctl.model.reading import GpuFacts, Readings

WEEK_S = 7 * 86_400.0
INCIDENT_S = 3600.0
"""The driver repeats itself: messages that come less than this after each other tell of one incident, seconds."""
INSPECT = (
    "twice in a week: inspect the hardware: power cables, riser, slot and cooling, then exchange cards to see which"
)
_TWICE = 2


def same_card(past: PastXid, gpu: GpuFacts | None, pci_bus_id: str) -> bool:
    """Whether an earlier message is of this card: by UUID, and by its address where one of both is not known."""
    if gpu is not None and past.uuid:
        return past.uuid == gpu.uuid
    return xid.same_card(past.pci_bus_id, pci_bus_id)


def earlier(past: Iterable[PastXid], number: int, at_s: float, gpu: GpuFacts | None, pci_bus_id: str) -> list[PastXid]:
    """Return the first message of each earlier incident with `number` on this card in the week before `at_s`.

    What came less than an hour before is the incident itself, read by an earlier run.
    """
    return _incidents(
        [
            one
            for one in past
            if one.number == number and INCIDENT_S <= at_s - one.t_wall_s <= WEEK_S and same_card(one, gpu, pci_bus_id)
        ]
    )


def repeated(past: Iterable[PastXid], readings: Readings, gpu: GpuFacts) -> list[PastXid]:
    """Return the incidents of the hardware's Xid that this card had at least twice in the week before the run's end."""
    now_s = _ended_s(readings)
    of_card = [
        one
        for one in past
        if now_s is not None and 0 <= now_s - one.t_wall_s <= WEEK_S and same_card(one, gpu, gpu.pci_bus_id)
    ]
    for number in sorted({one.number for one in of_card if xid.meaning(one.number).effect == "fail"}):
        incidents = _incidents([one for one in of_card if one.number == number])
        if len(incidents) >= _TWICE:
            return incidents
    return []


def days_of(incidents: Sequence[PastXid]) -> str:
    """Return when they were, for people (UTC)."""
    return ", ".join(datetime.fromtimestamp(one.t_wall_s, UTC).strftime("%Y-%m-%d %H:%M") for one in incidents)


def _incidents(messages: list[PastXid]) -> list[PastXid]:
    """Return the first message of each incident."""
    firsts: list[PastXid] = []
    last_s = float("-inf")
    for one in sorted(messages, key=lambda one: one.t_wall_s):
        if one.t_wall_s - last_s >= INCIDENT_S:
            firsts.append(one)
        last_s = one.t_wall_s
    return firsts


def _ended_s(readings: Readings) -> float | None:
    """Return when the last thing was measured, by the rig's clock."""
    times = [sample.t_wall_s for sample in readings.samples] + [event.t_wall_s for event in readings.events]
    return max(times, default=None)
