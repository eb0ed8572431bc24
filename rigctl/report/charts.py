"""The charts of one rig as plain data for the page: curves, step bands, limit lines, marks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rigctl.report.curves import CHART_BUCKETS
from rigctl.report.text import duration, plain

if TYPE_CHECKING:
    from rigctl.model.reading import GpuFacts, Readings
    from rigctl.model.spec import LimitsSpec
    from rigctl.report.curves import Column, Timeline

XID = re.compile(r"NVRM: Xid \([^)]*\): (\d+)")
_DIGITS = 3


def cards(readings: Readings) -> list[tuple[str, int, str]]:
    """Return uuid, slot and name of each card, from the facts, or from the samples where there are none."""
    if readings.facts is not None and readings.facts.gpus:
        return [(g.uuid, g.slot, g.subject) for g in readings.facts.gpus]
    seen = {g.uuid: g.slot for s in readings.samples for g in s.gpus}
    return [(u, slot, f"slot{slot} (…{u[-4:]})") for u, slot in sorted(seen.items(), key=lambda i: i[1])]


def charts(readings: Readings, line: Timeline, limits: LimitsSpec | None) -> dict[str, Any]:
    """Return everything that the page's script needs to draw one rig; empty charts are left out."""
    drawn = [_temperature(readings, line, limits), _power(readings, line, limits), _wall(line, limits)]
    return {
        "charts": [c for c in drawn if c["series"]],
        "steps": [{"name": plain(s.name), "from": round(s.start_s, 2), "to": round(s.end_s, 2)} for s in line.steps],
        "marks": _marks(readings, line),
        "length": round(line.length_s, 2),
    }


def drawn_as(line: Timeline) -> str:
    """Say how the curves were drawn."""
    count = f"{len(line.samples):,} samples"
    if not line.thinned:
        return f"{count}, every one drawn"
    return f"{count}, drawn as the lowest and the highest of each {duration(max(1, line.length_s / CHART_BUCKETS))}"


def xid_of(message: str) -> int | None:
    """Return the Xid that a kernel message reports."""
    found = XID.search(message)
    return int(found.group(1)) if found else None


def _chart(name: str, unit: str, series: list[dict[str, Any]], limits: list[dict[str, Any]]) -> dict[str, Any]:
    return {"name": name, "unit": unit, "series": [s for s in series if s["y"]], "limits": limits}


def _series(line: Timeline, name: str, slot: int, column: Column) -> dict[str, Any]:
    points = line.curve(column)
    return {
        "name": plain(name),
        "slot": slot,
        "x": [round(at, 2) for at, _ in points],
        "y": [None if y is None else round(y, _DIGITS) for _, y in points],
    }


def _limit(name: str, value: float | None) -> list[dict[str, Any]]:
    return [] if value is None else [{"name": name, "y": value}]


def _temperature(readings: Readings, line: Timeline, limits: LimitsSpec | None) -> dict[str, Any]:
    series = [_series(line, name, slot, line.gpu(uuid, "temp_c")) for uuid, slot, name in cards(readings)]
    series.append(_series(line, "CPU", 0, line.rig("cpu_temp_c")))
    lines = []
    if limits is not None:
        lines += _limit("settled limit", limits.max_settled_gpu_temp_c)
        lines += _limit("guard stops", guard_temp(readings, limits))
    return _chart("Temperature", "°C", series, lines)


def guard_temp(readings: Readings, limits: LimitsSpec) -> float:
    """Return where the guard stops the first card, °C: the spec's limit, never looser than slowdown − 5."""
    gpus: tuple[GpuFacts, ...] = readings.facts.gpus if readings.facts else ()
    own = [g.slowdown_temp_c - 5 for g in gpus if g.slowdown_temp_c is not None]
    return min([limits.guard_max_gpu_temp_c, *own])


def _power(readings: Readings, line: Timeline, limits: LimitsSpec | None) -> dict[str, Any]:
    series = [_series(line, name, slot, line.gpu(uuid, "power_w")) for uuid, slot, name in cards(readings)]
    caps = {g.limit_w for s in line.samples[-1:] for g in s.gpus if g.limit_w is not None}
    lines = [entry for cap in sorted(caps) for entry in _limit("power limit", cap)]
    if limits is not None:
        floor_share = limits.min_power_share_of_limit
        shares = sorted(cap * floor_share for cap in caps) if floor_share is not None else []
        lines += [entry for floor in shares for entry in _limit("floor under GPU burn", round(floor, 1))]
    return _chart("Power per card", "W", series, lines)


def _wall(line: Timeline, limits: LimitsSpec | None) -> dict[str, Any]:
    lines: list[dict[str, Any]] = []
    if limits is not None:
        lines += _limit("asked, GPU burn", limits.wall_power_gpu_burn_w)
        lines += _limit("asked, all loaded", limits.wall_power_all_burn_w)
    return _chart("Power at the wall", "W", [_series(line, "wall", 0, line.rig("wall_power_w"))], lines)


def _marks(readings: Readings, line: Timeline) -> list[dict[str, Any]]:
    """Moments that explain a curve: Xid messages, and what the guard did."""
    if not line.samples:
        return []
    marks = [
        {"x": line.elapsed(m.t_wall_s), "text": f"Xid {xid}"}
        for m in readings.kernel
        if (xid := xid_of(m.message)) is not None
    ]
    for event in readings.events:
        if event.event == "guard_stopped":
            why = plain(str(event.detail.get("reason", "")))
            marks.append({"x": line.elapsed(event.t_wall_s), "text": f"guard stopped: {why}"})
    return [m | {"x": round(float(str(m["x"])), 2)} for m in marks]
