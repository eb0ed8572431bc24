"""From what was seen to a registry of metrics. Pure."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily
from prometheus_client.registry import Collector

from rigctl import __version__
from rigctl.metrics.families import FAMILIES
from rigctl.metrics.units import base, over
from rigctl.model.night import OUTCOMES
from rigctl.model.verdict import Verdict
from rigctl.report.text import moment

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from prometheus_client import Metric

    from rigctl.metrics.seen import RigSeen, Seen
    from rigctl.model.night import LastNight
    from rigctl.model.past import Past, Point

Sample = tuple[str, tuple[str, ...], float]
"""Name, values of the labels in the family's order, value."""
_NAMED = {
    "thermals.settled_gpu_temp": ("rigctl_gpu_settled_temperature_celsius", "celsius"),
    "power.wall": ("rigctl_wall_power_watts", "watts"),
    "throughput.training": ("rigctl_training_tokens_per_second", "tokens_per_second"),
}
"""Figures with a name of their own: the metric, and the unit in which the check must have said it."""
_RESISTANCE = "thermals.resistance"
_INFO = "_info"


def registry_of(seen: Seen) -> CollectorRegistry:
    """Return a registry of its own with every metric."""
    registry = CollectorRegistry()
    registry.register(_Seen(seen))
    return registry


class _Seen(Collector):
    def __init__(self, seen: Seen) -> None:
        self._seen = seen

    def collect(self) -> Iterator[Metric]:
        """Every family that has samples, each label set once."""
        found: dict[str, dict[tuple[str, ...], float]] = {name: {} for name in FAMILIES}
        for name, labels, value in _samples(self._seen):
            found[name][labels] = value
        for name, samples in found.items():
            if samples:
                yield _family(name, samples)


def _family(name: str, samples: dict[tuple[str, ...], float]) -> Metric:
    known = FAMILIES[name]
    if name.endswith(_INFO):
        info = InfoMetricFamily(name.removesuffix(_INFO), known.says)
        for labels in samples:
            info.add_metric((), dict(zip(known.labels, labels, strict=True)))
        return info
    gauge = GaugeMetricFamily(name, known.says, labels=known.labels)
    for labels, value in samples.items():
        gauge.add_metric(labels, value)
    return gauge


def _samples(seen: Seen) -> Iterator[Sample]:
    yield "rigctl_build_info", (__version__,), 1
    yield "rigctl_index_unreadable_runs", (), seen.unreadable
    for rig in seen.rigs:
        yield from _rig(rig)
    if seen.night is not None:
        yield from _night(seen.night)


def _rig(rig: RigSeen) -> Iterator[Sample]:
    last, name = rig.last, rig.rig
    parts = last.parts if last is not None else None
    known = (parts.driver or "", parts.kernel or "", parts.bios or "") if parts is not None else ("", "", "")
    yield "rigctl_rig_info", (name, rig.rig_class, *known), 1
    yield "rigctl_rig_busy", (name,), rig.busy
    if last is None:
        return
    yield from _judged(name, last)
    for point in rig.points:
        yield from _figure(name, point)
    yield "rigctl_rig_slow_trends", (name,), len(rig.trends)
    for trend in rig.trends:
        if trend.crosses_on is not None:
            slot = next((card.slot for card in last.parts.cards if card.uuid == trend.key), "")
            subject = slot or trend.subject
            yield "rigctl_trend_limit_timestamp_seconds", (name, trend.check, subject, slot), _day(trend.crosses_on)


def _judged(name: str, last: Past) -> Iterator[Sample]:
    for word in Verdict:
        yield "rigctl_rig_verdict", (name, word.value), last.verdict is word
        yield "rigctl_rig_checks", (name, word.value), last.counts.get(word.value, 0)
    yield "rigctl_rig_accepted", (name,), last.accepted
    began, ended = moment(last.started_at).timestamp(), moment(last.ended_at).timestamp()
    yield "rigctl_rig_last_verdict_timestamp_seconds", (name,), ended
    yield "rigctl_run_duration_seconds", (name,), ended - began
    for step, seconds in last.seconds.items():
        yield "rigctl_run_step_duration_seconds", (name, step), seconds
    for cause in last.causes:
        yield "rigctl_rig_cause", (name, cause.check, _place(last, cause.subject), cause.verdict.value), 1
    for waiver in last.waivers:
        # It holds on its whole last day.
        end = _day(waiver.until + timedelta(days=1))
        yield "rigctl_waiver_end_timestamp_seconds", (name, waiver.check, _place(last, waiver.subject)), end
    for card in last.parts.cards:
        yield "rigctl_gpu_info", (name, card.slot, card.model, card.uuid, card.vbios or ""), 1
        if card.power_limit_w is not None:
            yield "rigctl_gpu_power_limit_watts", (name, card.slot), card.power_limit_w
    if last.parts.ambient_c is not None:
        yield "rigctl_room_temperature_celsius", (name,), last.parts.ambient_c


def _figure(name: str, point: Point) -> Iterator[Sample]:
    unit, factor = base(point.unit)
    slot = point.slot or ""
    # A card's series goes on when the card in the slot is another one: rigctl_gpu_info says which.
    subject = slot or point.subject
    found = point.found * factor
    labels = (name, point.check, subject, slot, unit)
    yield "rigctl_check_reading", labels, found
    if point.limit is not None:
        yield "rigctl_check_limit", labels, point.limit * factor
    named = _NAMED.get(point.check)
    if named is not None and unit == named[1]:
        yield named[0], (name, subject), found
    if point.check == _RESISTANCE and slot:
        yield "rigctl_gpu_thermal_resistance_celsius_per_watt", (name, slot, over(point.unit)), found


def _night(night: LastNight) -> Iterator[Sample]:
    began, ended = moment(night.began_at).timestamp(), moment(night.ended_at).timestamp()
    yield "rigctl_nightly_last_run_timestamp_seconds", (), ended
    yield "rigctl_nightly_last_run_duration_seconds", (), ended - began
    yield from _words("rigctl_nightly_last_run_outcome", OUTCOMES, night.outcome)
    yield "rigctl_nightly_last_run_rigs", ("judged",), night.judged
    yield "rigctl_nightly_last_run_rigs", ("left_out",), night.left_out


def _words(name: str, words: Iterable[str], said: str) -> Iterator[Sample]:
    for word in words:
        yield name, (word,), word == said


def _place(last: Past, subject: str) -> str:
    """A card by its slot alone."""
    return next((card.slot for card in last.parts.cards if card.subject == subject), subject)


def _day(day: date) -> float:
    """Its begin in UTC, seconds since 1970."""
    return datetime.combine(day, time(), UTC).timestamp()
