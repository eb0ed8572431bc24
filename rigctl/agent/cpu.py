"""Processor sensors: temperature from hwmon, power from RAPL, load from /proc/stat."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

from .cpu_clock import Clocks

SYS = Path("/sys")
PROC = Path("/proc")
CRITICAL_C = (70.0, 125.0)
"""Critical temperatures of processors lie within this span, °C."""
WINDOW_S = 1.0
"""Power and load are means over about this time, seconds: the counters are coarse."""


def _text(path: Path) -> str | None:
    """A small kernel file's text; None where it is not there or cannot be read (a sensor may answer EIO)."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def _whole(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text is not None and re.fullmatch(r"-?\d+", text) else None


def cpu_temp_c(sys: Path = SYS) -> float | None:
    """Temperature of the processor, °C: k10temp's Tdie or else Tctl, coretemp's hottest package; None without one."""
    found: list[float] = []
    for chip in sorted((sys / "class/hwmon").glob("hwmon*")):
        wanted = {"k10temp": ("Tdie", "Tctl"), "coretemp": ("Package",)}.get(_text(chip / "name") or "")
        if wanted is not None:
            found += _chip_temp_c(chip, wanted)
    return max(found, default=None)


def cpu_critical_temp_c(sys: Path = SYS) -> float | None:
    """What the processor's sensors themselves call critical, °C: the lowest; None where none says it.

    Some boards leave nonsense there: only what a processor can bear counts.
    """
    found: list[float] = []
    for chip in sorted((sys / "class/hwmon").glob("hwmon*")):
        if _text(chip / "name") in ("k10temp", "coretemp"):
            found += [millidegrees / 1000 for entry in chip.glob("temp*_crit") if (millidegrees := _whole(entry))]
    return min((temp_c for temp_c in found if CRITICAL_C[0] <= temp_c <= CRITICAL_C[1]), default=None)


def fans_rpm(sys: Path = SYS) -> dict[str, int]:
    """What the tachometers of fans and pumps say, rpm, by `CHIP LABEL`; a header without a fan says 0 for ever."""
    found: dict[str, int] = {}
    for chip in sorted((sys / "class/hwmon").glob("hwmon*")):
        for entry in sorted(chip.glob("fan*_input")):
            rpm = _whole(entry)
            label = _text(entry.with_name(entry.name.replace("_input", "_label"))) or entry.name[: -len("_input")]
            if rpm is not None and rpm >= 0:
                found[f"{_text(chip / 'name') or chip.name} {label}"] = rpm
    return found


def _chip_temp_c(chip: Path, wanted: tuple[str, ...]) -> list[float]:
    """The temperatures of the first wanted label that the chip has; k10temp of old kernels has no labels at all."""
    labelled: dict[str, float] = {}
    for entry in sorted(chip.glob("temp*_input")):
        millidegrees = _whole(entry)
        label = _text(entry.with_name(entry.name.replace("_input", "_label"))) or ""
        if millidegrees is not None:
            labelled[label or entry.name] = millidegrees / 1000
    for name in wanted:
        matching = [temp for label, temp in labelled.items() if label.startswith(name)]
        if matching:
            return matching
    return [labelled["temp1_input"]] if "temp1_input" in labelled else []


def rapl_packages(sys: Path = SYS) -> dict[str, tuple[int, int | None]]:
    """Energy counter and its range, µJ, of each processor package; AMD's Zen uses the same names as Intel."""
    packages: dict[str, tuple[int, int | None]] = {}
    for domain in sorted((sys / "class/powercap").glob("intel-rapl:*")):
        # Package domains only: cores, memory and the whole platform (psys) would be counted twice.
        if not (_text(domain / "name") or "").startswith("package"):
            continue
        energy = _whole(domain / "energy_uj")
        if energy is not None:
            packages[domain.name] = (energy, _whole(domain / "max_energy_range_uj"))
    return packages


@dataclass
class EnergyMeter:
    """Turns counters that wrap into a mean power."""

    _last: dict[str, int] = field(default_factory=dict)
    _joules: float = 0.0
    _history: deque[tuple[float, float]] = field(default_factory=deque)

    def power_w(self, now_s: float, packages: dict[str, tuple[int, int | None]]) -> float | None:
        """Mean power of all packages over the last second, W; None until there is something to compare with."""
        if not packages:
            self._history.clear()
            return None
        for name, (energy, span) in packages.items():
            step = energy - self._last.get(name, energy)
            if step < 0:
                # The counter wrapped at its range; without a known range this step is lost, not guessed.
                step = step + span if span else 0
            self._joules += step / 1e6
            self._last[name] = energy
        return _rate(self._history, now_s, self._joules)


def _rate(history: deque[tuple[float, float]], now_s: float, total: float) -> float | None:
    """Growth of `total` per second over the window; keeps the history short."""
    history.append((now_s, total))
    while len(history) > 2 and now_s - history[1][0] >= WINDOW_S:  # noqa: PLR2004 - one entry must reach back
        history.popleft()
    began, then = history[0]
    return None if now_s <= began else (total - then) / (now_s - began)


def cpu_times(proc: Path = PROC) -> tuple[int, int] | None:
    """Busy and total time of all processors since boot, in ticks."""
    first = (_text(proc / "stat") or "").partition("\n")[0].split()
    if len(first) < 6 or first[0] != "cpu":  # noqa: PLR2004 - cpu user nice system idle iowait
        return None
    # Guest time is part of user time already, so only the first eight figures count.
    ticks = [int(word) for word in first[1:9]]
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)


@dataclass
class LoadMeter:
    """Turns the kernel's tick counters into a share of busy time."""

    _history: deque[tuple[float, tuple[int, int]]] = field(default_factory=deque)

    def util_pct(self, now_s: float, times: tuple[int, int] | None) -> float | None:
        """Share of busy processor time over the last second, %; None until there is something to compare with."""
        if times is None:
            return None
        self._history.append((now_s, times))
        while len(self._history) > 2 and now_s - self._history[1][0] >= WINDOW_S:  # noqa: PLR2004 - as in _rate
            self._history.popleft()
        busy, total = self._history[0][1]
        if times[1] <= total:
            return None
        return 100 * (times[0] - busy) / (times[1] - total)


@dataclass
class CpuSensors:
    """All processor sensors of one rig."""

    sys: Path = SYS
    proc: Path = PROC
    _energy: EnergyMeter = field(default_factory=EnergyMeter)
    _load: LoadMeter = field(default_factory=LoadMeter)

    def __post_init__(self) -> None:
        """Choose the cores whose clock is read."""
        self._clocks = Clocks(self.sys)

    def read(self, now_s: float) -> dict[str, float | None]:
        """Temperature (°C), power (W), load (%) and clock (MHz) now; None where the rig has no such sensor."""
        return {
            "cpu_temp_c": cpu_temp_c(self.sys),
            "cpu_power_w": _rounded(self._energy.power_w(now_s, rapl_packages(self.sys))),
            "cpu_util_pct": _rounded(self._load.util_pct(now_s, cpu_times(self.proc))),
            "cpu_mhz": self._clocks.mhz(),
            "cpu_throttles": self._clocks.throttles(),
        }

    def missing(self) -> dict[str, str]:
        """Which sensors the rig does not have, and why that is thought."""
        reasons: dict[str, str] = {}
        if cpu_temp_c(self.sys) is None:
            reasons["cpu_temp_c"] = "no readable k10temp or coretemp sensor in /sys/class/hwmon"
        if not rapl_packages(self.sys):
            reasons["cpu_power_w"] = "no readable package domain in /sys/class/powercap (RAPL)"
        if cpu_times(self.proc) is None:
            reasons["cpu_util_pct"] = "/proc/stat cannot be read"
        if not self._clocks.there:
            reasons["cpu_mhz"] = "no core has scaling_cur_freq (cpufreq), as in most virtual machines"
        return reasons


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)
