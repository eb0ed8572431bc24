"""Thermals: what cards and CPU settled at, what held them back, whether the guard had to stop anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rigctl.checks import guard, thermals

if TYPE_CHECKING:
    from rigctl.acceptance.plugin import Judge
    from rigctl.model.reading import Readings
    from rigctl.model.spec import ProfileSpec, RigSpec


@pytest.mark.check("thermals.settled_gpu_temp")
def test_settled_gpu_temp(spec: RigSpec, readings: Readings, judge: Judge) -> None:
    """Each card settles below its limit."""
    judge(thermals.settled_gpu_temp(spec, readings))


@pytest.mark.check("thermals.guard")
def test_guard(spec: RigSpec, readings: Readings, judge: Judge) -> None:
    """The guard stopped nothing."""
    judge(guard.guard(spec, readings))


@pytest.mark.check("thermals.throttle")
def test_throttle(spec: RigSpec, readings: Readings, profile: ProfileSpec, judge: Judge) -> None:
    """No fault held a card back."""
    judge(thermals.throttle(spec, readings, profile))


@pytest.mark.check("thermals.cpu_temp")
def test_cpu_temp(spec: RigSpec, readings: Readings, profile: ProfileSpec, judge: Judge) -> None:
    """The CPU stays below its limit."""
    judge(thermals.cpu_temp(spec, readings, profile))


@pytest.mark.check("thermals.hotspot_temp")
def test_hotspot_temp(spec: RigSpec, readings: Readings, judge: Judge) -> None:
    """The hot spot, where a card shows one."""
    judge(thermals.hotspot_temp(spec, readings))
