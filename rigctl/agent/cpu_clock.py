"""The processor's clock: what its cores run at now, what its maker promises, and how often it slowed itself for heat.

Read below /sys/bus/cpu/devices, which leads to each core's own folder. Sources: the kernel's Documentation on cpufreq
(admin-guide/pm/cpufreq: `scaling_cur_freq` is measured by APERF and MPERF where a processor has them), CPPC
(admin-guide/acpi/cppc_sysfs: `nominal_freq`), intel_pstate (`base_frequency`) and thermal_throttle
(ABI/testing/sysfs-devices-system-cpu).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

SYS = Path("/sys")
MOST_CORES = 8
"""So many cores, spread over all of them, are read for each sample: under a burn all do the same."""
_NUMBER = re.compile(r"cpu(\d+)")


def _whole(path: Path) -> int | None:
    try:
        text = path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return None
    return int(text) if re.fullmatch(r"\d{1,18}", text) else None


def _cores(sys: Path) -> list[Path]:
    numbered = {
        int(found.group(1)): core
        for core in (sys / "bus/cpu/devices").glob("cpu*")
        if (found := _NUMBER.fullmatch(core.name))
    }
    return [numbered[number] for number in sorted(numbered)]


def nominal_mhz(sys: Path = SYS) -> float | None:
    """The clock that every core of the slowest kind keeps under load by its maker's word, MHz; None where untold."""
    found: list[float] = []
    for core in _cores(sys):
        base_khz, nominal = _whole(core / "cpufreq/base_frequency"), _whole(core / "acpi_cppc/nominal_freq")
        if base_khz:
            found.append(base_khz / 1000)
        elif nominal:
            found.append(float(nominal))
    return min(found, default=None)


@dataclass
class Clocks:
    """The cores that are read, chosen once."""

    sys: Path = SYS
    _chosen: list[Path] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Choose cores that show a clock."""
        shown = [core for core in _cores(self.sys) if _whole(core / "cpufreq/scaling_cur_freq") is not None]
        step = max(1, -(-len(shown) // MOST_CORES))
        self._chosen = shown[::step]

    @property
    def there(self) -> bool:
        """Whether any core shows its clock."""
        return bool(self._chosen)

    def mhz(self) -> float | None:
        """Mean clock now, MHz; None where no core shows it."""
        khz = [found for core in self._chosen if (found := _whole(core / "cpufreq/scaling_cur_freq")) is not None]
        return round(sum(khz) / len(khz) / 1000, 1) if khz else None

    def throttles(self) -> int | None:
        """How often cores and package slowed down for heat since the start; None where the processor does not count."""
        counts = [
            found
            for core in self._chosen
            for name in ("core_throttle_count", "package_throttle_count")
            if (found := _whole(core / "thermal_throttle" / name)) is not None
        ]
        return sum(counts) if counts else None
