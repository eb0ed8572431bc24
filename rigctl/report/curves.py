"""Samples made into curves: elapsed time, steps, and thinning that never hides an extreme."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from rigctl.store.thinning import SPANS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rigctl.model.reading import GpuSample, Sample

CHART_BUCKETS = 600
"""A curve of more than two points per bucket is drawn as each bucket's minimum and maximum: about one per pixel."""
SPARK_BUCKETS = 60
_GAP_INTERVALS = 5
_GAP_S = 3.0
_WITHIN_SPANS = 1.5
"""The two samples of a thinned span are a span apart at most; where a whole span is missing it is more than that."""

Column = list[float | None]
"""One figure of each sample; None where it was not read."""

Points = list[tuple[float, float | None]]
"""Elapsed seconds and value; a None breaks the line."""


@dataclass(frozen=True)
class StepSpan:
    """One step as the samples show it, elapsed seconds."""

    name: str
    start_s: float
    end_s: float
    part: slice
    """Which samples are of this step."""


class Timeline:
    """A rig's samples on one time axis: its monotonic clock, and the wall clock after a reboot."""

    def __init__(self, samples: tuple[Sample, ...], *, pruned: bool = False) -> None:
        """Take a rig's samples in the order in which they were taken; `pruned`: what is left of them by their age."""
        self.samples = samples
        self.pruned = pruned
        self.at_s = _axis(samples)
        """Elapsed seconds of each sample."""
        self.steps = self._steps()
        """The steps in the order in which they ran."""
        self._columns: dict[tuple[str, str], Column] = {}

    @property
    def length_s(self) -> float:
        """From the first to the last sample."""
        return self.at_s[-1] if self.at_s else 0.0

    @cached_property
    def interval_s(self) -> float:
        """The usual distance of two samples."""
        return median(b - a for a, b in pairwise(self.at_s)) if len(self.at_s) > 1 else 0.0

    @property
    def thinned(self) -> bool:
        """Whether curves of these samples are drawn as extremes instead of every sample."""
        return len(self.samples) > 2 * CHART_BUCKETS

    def elapsed(self, t_wall_s: float) -> float:
        """Return where a wall-clock time, such as a kernel message's, stands on this axis."""
        return t_wall_s - self.samples[0].t_wall_s if self.samples else 0.0

    def gpu(self, uuid: str, name: str) -> Column:
        """Return one figure of one card in each sample, such as `temp_c`."""
        key = (uuid, name)
        if key not in self._columns:
            self._columns[key] = [_of_card(s.gpus, uuid, name) for s in self.samples]
        return self._columns[key]

    def rig(self, name: str) -> Column:
        """Return one figure of the whole rig in each sample, such as `wall_power_w`."""
        key = ("", name)
        if key not in self._columns:
            self._columns[key] = [getattr(s, name) for s in self.samples]
        return self._columns[key]

    def curve(self, column: Column, buckets: int = CHART_BUCKETS) -> Points:
        """Return the points of one curve, thinned to `buckets`, broken where values were missing for long."""
        points = [(at, y) for at, y in zip(self.at_s, column, strict=True) if y is not None]
        if len(points) > 2 * buckets:
            points = extremes(points, buckets)
        longest = max(_GAP_S, _GAP_INTERVALS * self.interval_s, 2 * self.length_s / buckets)
        return _broken_at_gaps(points, lambda at: max(longest, self._kept_apart_s(at)))

    def _kept_apart_s(self, at_s: float) -> float:
        """How far apart samples of the step at this time may be because it was thinned, seconds."""
        if not self.pruned:
            return 0.0
        step = self.steps[max(0, bisect_right(self.steps, at_s, key=lambda one: one.start_s) - 1)]
        return _WITHIN_SPANS * (step.end_s - step.start_s) / SPANS

    def _steps(self) -> list[StepSpan]:
        starts = [n for n, s in enumerate(self.samples) if n == 0 or s.step != self.samples[n - 1].step]
        ends = [*starts[1:], len(self.samples)][: len(starts)]
        return [
            StepSpan(self.samples[n].step, self.at_s[n], self.at_s[min(end, len(self.at_s) - 1)], slice(n, end))
            for n, end in zip(starts, ends, strict=True)
        ]


def _axis(samples: tuple[Sample, ...]) -> tuple[float, ...]:
    if not samples:
        return ()
    first = samples[0]
    return tuple(
        s.t_mono_s - first.t_mono_s if s.boot_id == first.boot_id else s.t_wall_s - first.t_wall_s for s in samples
    )


def _of_card(gpus: tuple[GpuSample, ...], uuid: str, name: str) -> float | None:
    for gpu in gpus:
        if gpu.uuid == uuid:
            value: float | None = getattr(gpu, name)
            return value
    return None


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
    points = line.curve(line.gpu(uuid, "temp_c"), SPARK_BUCKETS)
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

    bands = [(x(s.start_s), round(x(s.end_s) - x(s.start_s), 1)) for s in line.steps[1::2]]
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


def _broken_at_gaps(points: Sequence[tuple[float, float]], longest_s: Callable[[float], float]) -> Points:
    broken: Points = []
    for at, value in points:
        if broken and at - broken[-1][0] > longest_s(broken[-1][0]):
            broken.append((broken[-1][0], None))
        broken.append((at, value))
    return broken
