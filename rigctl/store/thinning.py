"""Telemetry made small: of each span of time the lowest and the highest figure of every sensor, and nothing invented.

A step is divided into `SPANS` equal spans. Each becomes two samples, at the times of its first and its last one. Every
sensor has its lowest figure in one of the two and its highest in the other, in the order in which they were seen; so
extremes and the course of a curve stay true, to within one span. What happened at one and the same moment, and means,
do not.
"""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

from rigctl.model.reading import GpuSample, Sample

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pydantic import BaseModel

SPANS = 60
"""Spans of each step. A burn of half an hour is kept to within 30 s."""
_OF_SPAN = 2
"""Samples that stand for a span."""
STEP_SAMPLES = SPANS * _OF_SPAN
"""At most so many samples of a step are kept."""
_STRETCH = attrgetter("part", "boot_id", "step")
_MOMENT = frozenset({"seq", "part", "t_mono_s", "t_wall_s", "boot_id", "step", "controller_wall_s"})
"""What says when a sample was taken; not measured by a sensor."""
_BY_LABEL = ("fans_rpm", "coolant_temps_c", "room_temps_c")
_SENSORS = tuple(name for name in Sample.model_fields if name not in {*_MOMENT, *_BY_LABEL, "gpus", "wall_error"})
_STATES = frozenset({"throttle", "pcie_gen", "pcie_width", "links_active", "error"})
"""What a card tells that is a state and no figure."""
_CARD_SENSORS = tuple(name for name in GpuSample.model_fields if name not in {*_STATES, "uuid", "slot"})

T = TypeVar("T")
V = TypeVar("V", float, int)
Pair = tuple[T, T]


def thinned(samples: Sequence[Sample]) -> tuple[Sample, ...]:
    """Return what is kept of a rig's samples, in their order; steps of few samples are kept as they are."""
    kept: list[Sample] = []
    for _, found in groupby(samples, _STRETCH):
        stretch = tuple(found)
        if len(stretch) <= STEP_SAMPLES:
            kept += stretch
            continue
        for span in _spans(stretch):
            kept += span if len(span) <= _OF_SPAN else _two_of(span)
    return tuple(kept)


def _spans(stretch: Sequence[Sample]) -> Iterator[tuple[Sample, ...]]:
    """The samples of one step in equal spans of time, without empty ones."""
    start = stretch[0].t_mono_s
    width = (stretch[-1].t_mono_s - start) / SPANS or 1.0

    def span_of(sample: Sample) -> int:
        return min(max(int((sample.t_mono_s - start) / width), 0), SPANS - 1)

    for _, span in groupby(stretch, span_of):
        yield tuple(span)


def _two_of(span: Sequence[Sample]) -> Pair[Sample]:
    """The two samples that stand for a span."""
    figures = {name: _extremes([getattr(one, name) for one in span]) for name in _SENSORS}
    figures |= {name: _by_label([getattr(one, name) for one in span]) for name in _BY_LABEL}
    figures["wall_error"] = (_first(one.wall_error for one in span), None)
    figures["gpus"] = _cards(span)
    return _made(span[0], figures, 0), _made(span[-1], figures, 1)


def _made(base: BaseModel, figures: dict[str, Pair[Any]], which: int) -> Any:
    return base.model_copy(update={name: pair[which] for name, pair in figures.items()})


def _extremes(values: Sequence[V | None]) -> Pair[V | None]:
    """The lowest and the highest of the values that were measured, in the order in which they were seen."""
    measured = [(value, number) for number, value in enumerate(values) if value is not None]
    if not measured:
        return None, None
    low = min(measured)
    high = max(measured, key=lambda one: one[0])
    return (low[0], high[0]) if low[1] <= high[1] else (high[0], low[0])


def _by_label(values: Sequence[dict[str, V]]) -> Pair[dict[str, V]]:
    first: dict[str, V] = {}
    last: dict[str, V] = {}
    for label in dict.fromkeys(label for one in values for label in one):
        before, after = _extremes([one.get(label) for one in values])
        if before is not None and after is not None:
            first[label], last[label] = before, after
    return first, last


def _cards(span: Sequence[Sample]) -> Pair[tuple[GpuSample, ...]]:
    seen: dict[str, list[GpuSample]] = {}
    for sample in span:
        for card in sample.gpus:
            seen.setdefault(card.uuid, []).append(card)
    pairs = [_card(found) for found in seen.values()]
    return tuple(first for first, _ in pairs), tuple(last for _, last in pairs)


def _card(found: Sequence[GpuSample]) -> Pair[GpuSample]:
    figures: dict[str, Pair[Any]] = {
        name: _extremes([getattr(one, name) for one in found]) for name in _CARD_SENSORS
    } | _states(found)
    return _made(found[0], figures, 0), _made(found[-1], figures, 1)


def _states(found: Sequence[GpuSample]) -> dict[str, Pair[Any]]:
    """A card's states: as they usually were, and at their worst."""
    masks = [one.throttle for one in found if one.throttle is not None]
    ever = always = masks[0] if masks else None
    for mask in masks:
        ever, always = (ever or 0) | mask, (always or 0) & mask
    buses = [(one.pcie_gen, one.pcie_width) for one in found if one.pcie_gen is not None and one.pcie_width is not None]
    usual, worst = (max(buses, key=buses.count), min(buses)) if buses else ((None, None), (None, None))
    links = [one.links_active for one in found if one.links_active] or [()]
    return {
        "throttle": (ever, always),
        "pcie_gen": (usual[0], worst[0]),
        "pcie_width": (usual[1], worst[1]),
        "links_active": (max(links, key=sum), min(links, key=sum)),
        "error": (_first(one.error for one in found), None),
    }


def _first(texts: Iterable[str | None]) -> str | None:
    return next((text for text in texts if text is not None), None)
