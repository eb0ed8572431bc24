"""Throughput: the burners find no error, and cards, CPU and training keep their pace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rigctl.checks import burn, cpu, throughput

if TYPE_CHECKING:
    from rigctl.acceptance.plugin import Judge
    from rigctl.model.baseline import Baseline
    from rigctl.model.reading import Readings
    from rigctl.model.spec import ProfileSpec, RigSpec


@pytest.mark.check("throughput.gpu_burn")
def test_gpu_burn(spec: RigSpec, readings: Readings, profile: ProfileSpec, judge: Judge) -> None:
    """gpu-burn ran to its end and found no error."""
    judge(burn.oracle(spec, readings, profile))


@pytest.mark.check("throughput.burn_gflops")
def test_burn_gflops(spec: RigSpec, readings: Readings, profile: ProfileSpec, judge: Judge) -> None:
    """Each card keeps gpu-burn's rate."""
    judge(throughput.burn_gflops(spec, readings, profile))


@pytest.mark.check("throughput.cpu_burn")
def test_cpu_burn(readings: Readings, profile: ProfileSpec, judge: Judge) -> None:
    """stress-ng found no error."""
    judge(throughput.cpu_burn(readings, profile))


@pytest.mark.check("throughput.cpu_clock")
def test_cpu_clock(
    spec: RigSpec, readings: Readings, profile: ProfileSpec, baseline: Baseline | None, judge: Judge
) -> None:
    """The CPU keeps its clock under load."""
    judge(cpu.clock(spec, readings, profile, baseline))


@pytest.mark.check("throughput.training")
def test_training(spec: RigSpec, readings: Readings, baseline: Baseline | None, judge: Judge) -> None:
    """Training keeps the spec's pace."""
    judge(throughput.training(spec, readings, baseline))
