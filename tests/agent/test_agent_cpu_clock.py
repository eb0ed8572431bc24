"""The processor's clock from cpufreq, its nominal clock from CPPC or intel_pstate, and its count of throttling."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rigctl.agent.cpu import CpuSensors
from rigctl.agent.cpu_clock import MOST_CORES, Clocks, nominal_mhz

if TYPE_CHECKING:
    from pathlib import Path


def core(sys: Path, number: int, **files: str) -> None:
    for name, text in files.items():
        path = sys / "bus/cpu/devices" / f"cpu{number}" / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")


def test_the_mean_of_the_cores(tmp_path: Path) -> None:
    for number, khz in enumerate((4_200_000, 4_100_000)):
        core(tmp_path, number, cpufreq__scaling_cur_freq=str(khz))
    assert Clocks(tmp_path).mhz() == 4150.0
    assert CpuSensors(tmp_path, tmp_path).read(0.0)["cpu_mhz"] == 4150.0
    assert "cpu_mhz" not in CpuSensors(tmp_path, tmp_path).missing()


@pytest.mark.parametrize(("cores", "read"), [(8, 8), (9, 5), (24, 8), (64, 8), (128, 8)])
def test_a_few_cores_spread_over_all_are_read(tmp_path: Path, cores: int, read: int) -> None:
    for number in range(cores):
        core(tmp_path, number, cpufreq__scaling_cur_freq=str(1000 * number))
    clocks = Clocks(tmp_path)
    assert len(clocks._chosen) == read <= MOST_CORES
    assert clocks._chosen[0].name == "cpu0"
    assert int(clocks._chosen[-1].name[3:]) >= cores / 2


@pytest.mark.parametrize("text", ["", "<unknown>", "-1", "4.2e6"])
def test_what_is_no_clock_is_none(tmp_path: Path, text: str) -> None:
    core(tmp_path, 0, cpufreq__scaling_cur_freq=text)
    clocks = Clocks(tmp_path)
    assert not clocks.there
    assert (clocks.mhz(), clocks.throttles()) == (None, None)


def test_a_core_that_goes_away_is_left_out(tmp_path: Path) -> None:
    for number in range(2):
        core(tmp_path, number, cpufreq__scaling_cur_freq="3000000")
    clocks = Clocks(tmp_path)
    (tmp_path / "bus/cpu/devices/cpu1/cpufreq/scaling_cur_freq").unlink()
    assert clocks.mhz() == 3000.0


def test_the_count_of_throttling(tmp_path: Path) -> None:
    counts = {"thermal_throttle__core_throttle_count": "2", "thermal_throttle__package_throttle_count": "5"}
    for number in range(2):
        core(tmp_path, number, cpufreq__scaling_cur_freq="3000000", **counts)
    assert Clocks(tmp_path).throttles() == 14


def test_what_the_maker_promises(tmp_path: Path) -> None:
    assert nominal_mhz(tmp_path) is None
    core(tmp_path, 0, acpi_cppc__nominal_freq="3700")
    assert nominal_mhz(tmp_path) == 3700
    core(tmp_path, 1, cpufreq__base_frequency="2400000", acpi_cppc__nominal_freq="0")
    assert nominal_mhz(tmp_path) == 2400, "the slower kind of core"
