"""Samples made into curves: elapsed time, steps, and thinning that never hides an extreme."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rigctl.model.reading import Readings, Sample

CHART_BUCKETS = 600
"""A curve of more than two points per bucket is drawn as each bucket's minimum and maximum: about one per pixel."""
SPARK_BUCKETS = 60
_GAP_INTERVALS = 5
_GAP_S = 3.0

Points = list[tuple[float, float | None]]
"""Elapsed seconds and value; a None breaks the line."""


@dataclass(frozen=True)
class StepSpan:
    """One step as the samples show it, elapsed seconds."""

    name: str
    start_s: float
    end_s: float


@dataclass(frozen=True)
class Timeline:
    """A rig's samples on one time axis."""

    samples: tuple[Sample, ...]
    at_s: tuple[float, ...]
    """Elapsed seconds of each sample."""

    @property
    def length_s(self) -> float:
        """From the first to the last sample."""
        return self.at_s[-1] if self.at_s else 0.0

    @property
    def interval_s(self) -> float:
        """The usual distance of two samples."""
        return median(b - a for a, b in pairwise(self.at_s)) if len(self.at_s) > 1 else 0.0

    def elapsed(self, t_wall_s: float) -> float:
        """Return where a wall-clock time, such as a kernel message's, stands on this axis."""
        return t_wall_s - self.samples[0].t_wall_s if self.samples else 0.0

    def steps(self) -> list[StepSpan]:
        """Return the steps in the order in which they ran."""
        spans: list[StepSpan] = []
        for sample, at in zip(self.samples, self.at_s, strict=True):
            if spans and spans[-1].name == sample.step:
                spans[-1] = StepSpan(sample.step, spans[-1].start_s, at)
            else:
                if spans:
                    spans[-1] = StepSpan(spans[-1].name, spans[-1].start_s, at)
                spans.append(StepSpan(sample.step, at, at))
        return spans

    def thinned(self) -> bool:
        """Whether curves of these samples are drawn as extremes instead of every sample."""
        return len(self.samples) > 2 * CHART_BUCKETS

    def curve(self, value: Callable[[Sample], float | None], buckets: int = CHART_BUCKETS) -> Points:
        """Return the points of one curve, thinned to `buckets`, broken where values were missing for long."""
        known = [(at, y) for s, at in zip(self.samples, self.at_s, strict=True) if (y := value(s)) is not None]
        if len(known) > 2 * buckets:
            known = extremes(known, buckets)
        longest = max(_GAP_S, _GAP_INTERVALS * self.interval_s, 2 * self.length_s / buckets)
        return _broken_at_gaps(known, longest)


def timeline(readings: Readings) -> Timeline:
    """Put a rig's samples on one axis: its monotonic clock, and the wall clock after a reboot."""
    samples = readings.samples
    if not samples:
        return Timeline((), ())
    first = samples[0]
    at = tuple(
        s.t_mono_s - first.t_mono_s if s.boot_id == first.boot_id else s.t_wall_s - first.t_wall_s for s in samples
    )
    return Timeline(samples, at)


def extremes(points: Sequence[tuple[float, float]], buckets: int) -> list[tuple[float, float]]:
    """Return the lowest and the highest point of each of `buckets` equal spans of time, in order of time."""
    start = points[0][0]
    width = (points[-1][0] - start) / buckets or 1.0
    kept: list[tuple[float, float]] = []
    at, low, high = 0, points[0], points[0]
    for point in points:
        here = min(int((point[0] - start) / width), buckets - 1)
        if here != at:
            kept += sorted({low, high})
            at, low, high = here, point, point
        if point[1] < low[1]:
            low = point
        if point[1] > high[1]:
            high = point
    return kept + sorted({low, high})


def gpu_value(uuid: str, name: str) -> Callable[[Sample], float | None]:
    """Return a function that reads one figure of one card from a sample."""

    def read(sample: Sample) -> float | None:
        for gpu in sample.gpus:
            if gpu.uuid == uuid:
                value = getattr(gpu, name)
                return None if value is None else float(value)
        return None

    return read


def known(values: Iterable[float | None]) -> list[float]:
    """Return the values that were measured."""
    return [v for v in values if v is not None]


@dataclass(frozen=True)
class Sparkline:
    """A small curve as SVG: `paths` and the height of the limit in a box of `WIDTH` × `HEIGHT`."""

    WIDTH = 200
    HEIGHT = 40

    paths: tuple[str, ...]
    limit_y: float | None
    bands: tuple[tuple[float, float], ...]
    """Start and width of every second step."""
    words: str
    """What the curve shows, for those who do not see it."""


def sparkline(line: Timeline, uuid: str, limit_c: float | None) -> Sparkline | None:
    """Return a card's temperature over the run; None where none was read."""
    points = line.curve(gpu_value(uuid, "temp_c"), SPARK_BUCKETS)
    values = known(y for _, y in points)
    if not values:
        return None
    low, high = min(values), max([*values, limit_c or 0])
    margin = max(1.0, (high - low) * 0.08)
    low, high = low - margin, high + margin
    length = line.length_s or 1.0

    def x(at: float) -> float:
        return round(at / length * Sparkline.WIDTH, 1)

    def y(value: float) -> float:
        return round((high - value) / (high - low) * Sparkline.HEIGHT, 1)

    bands = [(x(s.start_s), round(x(s.end_s) - x(s.start_s), 1)) for s in line.steps()[1::2]]
    words = f"temperature over the run, from {min(values):g} to {max(values):g} °C" + (
        f", limit {limit_c:g} °C" if limit_c else ""
    )
    return Sparkline(_paths(points, x, y), y(limit_c) if limit_c else None, tuple(bands), words)


def _paths(points: Points, x: Callable[[float], float], y: Callable[[float], float]) -> tuple[str, ...]:
    paths: list[str] = []
    pen = "M"
    for at, value in points:
        if value is None:
            pen = "M"
            continue
        if pen == "M":
            paths.append("")
        paths[-1] += f"{pen}{x(at):g} {y(value):g}"
        pen = "L"
    return tuple(paths)


def _broken_at_gaps(points: Sequence[tuple[float, float]], longest_s: float) -> Points:
    broken: Points = []
    for at, value in points:
        if broken and at - broken[-1][0] > longest_s:
            broken.append((broken[-1][0], None))
        broken.append((at, value))
    return broken
