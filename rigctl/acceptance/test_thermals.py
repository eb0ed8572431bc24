"""Thermals: what cards and CPU settled at, what held them back, whether the guard had to stop anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rigctl.checks import cooling, fans, guard, thermals

if TYPE_CHECKING:
    from rigctl.acceptance.plugin import Judge
    from rigctl.model.baseline import Baseline
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


@pytest.mark.check("thermals.steady_state")
def test_steady_state(spec: RigSpec, readings: Readings, profile: ProfileSpec, judge: Judge) -> None:
    """Each card came to rest."""
    judge(thermals.steady_state(spec, readings, profile))


@pytest.mark.check("thermals.memory_temp")
def test_memory_temp(spec: RigSpec, readings: Readings, judge: Judge) -> None:
    """The memory settles below its limit, where a card shows it."""
    judge(thermals.memory_temp(spec, readings))


@pytest.mark.check("thermals.resistance")
def test_resistance(spec: RigSpec, readings: Readings, baseline: Baseline | None, judge: Judge) -> None:
    """Heat gets away as well as it should, and as it did."""
    judge(cooling.resistance(spec, readings, baseline))


@pytest.mark.check("thermals.card_spread")
def test_card_spread(spec: RigSpec, readings: Readings, judge: Judge) -> None:
    """No card is much warmer than its twins."""
    judge(cooling.card_spread(spec, readings))


@pytest.mark.check("thermals.rest_temp")
def test_rest_temp(spec: RigSpec, readings: Readings, profile: ProfileSpec, judge: Judge) -> None:
    """The room is not too warm."""
    judge(cooling.rest_temp(spec, readings, profile))


@pytest.mark.check("thermals.fans")
def test_fans(spec: RigSpec, readings: Readings, baseline: Baseline | None, judge: Judge) -> None:
    """Fans and pumps turn."""
    judge(fans.fans(spec, readings, baseline))


@pytest.mark.check("thermals.fan_speed")
def test_fan_speed(spec: RigSpec, readings: Readings, judge: Judge) -> None:
    """The fans are not asked for more than the spec allows."""
    judge(fans.fan_speed(spec, readings))
