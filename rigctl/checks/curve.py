"""The curve of a burn: whether a card's temperature came to rest, from when on, and at what.

Sensors of cards speak in whole degrees, so nothing here looks at one reading: rises are slopes over many of them.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from rigctl.checks import load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rigctl.model.reading import Readings

STEADY_C = 1.5
"""A temperature that moves by no more than this over the burn's last third has come to rest, °C: the sensor's own step
and half of it."""
NEAR_C = 1.5
"""Steady begins where the smoothed curve stays this close to what it settles at, °C."""
_SMOOTH = 5
"""So many readings are averaged before the curve is held against where it settles."""
REST = ("before", "idle")
"""Steps in which nothing runs yet."""
BELIEVED_C = (0.0, 150.0)
"""No card that works is at 0 °C or below, and none lives at 150 °C."""
BELIEVED_MARGIN_C = (-150.0, 150.0)
"""So no card is further than that from slowing down, on either side."""


class Curve(NamedTuple):
    """One sensor of one card over the loaded time of a burn."""

    settled_c: float
    """Mean of the last third, °C."""
    hottest_c: float
    rise_c: float
    """How far it moved over the last third, °C; negative where it fell."""
    seconds: float
    """How long the card was loaded, seconds."""
    steady_after_s: float
    """Seconds from the load's begin until the curve stays near where it settles."""

    @property
    def steady(self) -> bool:
        """Whether it came to rest in the burn."""
        return abs(self.rise_c) <= STEADY_C


def curve_of(times: Sequence[float], temps: Sequence[float]) -> Curve:
    """Return the curve of at least `load.FEWEST` readings in order of time."""
    begin, end = times[0], times[-1]
    from_s = begin + (end - begin) * 2 / 3
    last = [(t, c) for t, c in zip(times, temps, strict=True) if t >= from_s]
    settled_c = load.mean([c for _, c in last])
    rise_c = slope(last) * (end - from_s)
    return Curve(settled_c, max(temps), rise_c, end - begin, _near_since(times, temps, settled_c) - begin)


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Return the least-squares slope, °C per second; 0 where all points are of one moment."""
    t_mean = load.mean([t for t, _ in points])
    c_mean = load.mean([c for _, c in points])
    spread = sum((t - t_mean) ** 2 for t, _ in points)
    return sum((t - t_mean) * (c - c_mean) for t, c in points) / spread if spread > 0 else 0.0


def _near_since(times: Sequence[float], temps: Sequence[float], settled_c: float) -> float:
    """The moment from which on the smoothed curve stays near `settled_c`."""
    since = times[-1]
    for index in range(len(temps) - 1, -1, -1):
        around = temps[max(0, index - _SMOOTH // 2) : index + _SMOOTH // 2 + 1]
        if abs(load.mean(around) - settled_c) > NEAR_C:
            break
        since = times[index]
    return since


class Spoilt(NamedTuple):
    """Why readings of a temperature cannot be judged, and what to do."""

    reason: str
    fix: str


def read_curve(readings: Readings, step: str, uuid: str, sensor: str = "temp_c") -> Curve | Spoilt | load.NoLoad:
    """Return the curve of one card's `sensor` (`temp_c`, `memory_temp_c`, `margin_c`) in `step`, or why there is none.

    Absurd readings, a sensor that stands still while the card goes from rest to load, and times out of order are no
    curve: what they would pass or fail is nothing.
    """
    busy = load.loaded(readings, step, uuid)
    points = [(one.t_s, float(c)) for one in busy if (c := getattr(one.gpu, sensor)) is not None]
    if len(points) < max(load.FEWEST, len(busy) / 2):
        if points and len(busy) >= load.FEWEST:
            return Spoilt(f"only {len(points)} of {len(busy)} loaded samples show it", _telemetry(readings))
        return load.why_no_load(readings, step)
    times, temps = zip(*points, strict=True)
    if any(later <= earlier for earlier, later in pairwise(times)):
        return Spoilt("samples of the burn are out of order in time", _telemetry(readings))
    least, most = BELIEVED_MARGIN_C if sensor == "margin_c" else BELIEVED_C
    if absurd := [c for c in temps if not least < c < most]:
        return Spoilt(f"{absurd[0]:g} °C in {len(absurd)} of {len(temps)} loaded samples is no temperature", _BROKEN)
    if sensor == "temp_c" and _stuck(readings, uuid, temps):
        return Spoilt(f"the sensor says {temps[0]:g} °C at rest and under load alike, in every sample", _BROKEN)
    return curve_of(times, temps)


_BROKEN = "a reboot first; a sensor that stays like this is the card's: replace it"
_STUCK_NEEDS_W = 100.0
"""Without so much more power under load than at rest a temperature may well stay where it is, W."""


def _telemetry(readings: Readings) -> str:
    return f"see telemetry of {readings.rig} in the run directory, then accept it again"


def _stuck(readings: Readings, uuid: str, temps: Sequence[float]) -> bool:
    """Whether all readings, those at rest included, are one figure, although the power says that heat came."""
    resting = at_rest(readings, uuid)
    powers = [one.gpu.power_w for one in load.loaded(readings, "gpu_burn", uuid) if one.gpu.power_w is not None]
    rest_w = [one.gpu.power_w for one in resting if one.gpu.power_w is not None]
    if len(resting) < load.FEWEST or not powers or not rest_w:
        return False
    figures = {*temps, *(one.gpu.temp_c for one in resting)}
    return len(figures) == 1 and load.mean(powers) - load.mean(rest_w) >= _STUCK_NEEDS_W


def at_rest(readings: Readings, uuid: str) -> list[load.Timed]:
    """Return one card's samples from before any load, in which it did nothing."""
    return [
        load.Timed(sample.t_mono_s, gpu)
        for sample in readings.samples
        for gpu in sample.gpus
        if sample.step in REST
        and gpu.uuid == uuid
        and gpu.error is None
        and gpu.temp_c is not None
        and (gpu.util_pct is None or gpu.util_pct < load.BUSY_PCT)
    ]
