"""Disks and network: health, size, room and speed; the link of the network card."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rigctl.checks import disk, network

if TYPE_CHECKING:
    from rigctl.acceptance.plugin import Judge
    from rigctl.model.baseline import Baseline
    from rigctl.model.reading import Readings
    from rigctl.model.spec import RigSpec


@pytest.mark.check("disk.space")
def test_space(spec: RigSpec, readings: Readings, judge: Judge) -> None:
    """There is room where programs, readings and test files go."""
    judge(disk.space(spec, readings))


@pytest.mark.check("disk.health")
def test_health(spec: RigSpec, readings: Readings, baseline: Baseline | None, judge: Judge) -> None:
    """Each NVMe disk is well by its own word."""
    judge(disk.health(spec, readings, baseline))


@pytest.mark.check("disk.size")
def test_size(spec: RigSpec, readings: Readings, judge: Judge) -> None:
    """The largest disk is as large as declared."""
    judge(disk.size(spec, readings))


@pytest.mark.check("disk.speed")
def test_speed(spec: RigSpec, readings: Readings, baseline: Baseline | None, judge: Judge) -> None:
    """A file is written and read as fast as declared."""
    judge(disk.speed(spec, readings, baseline))


@pytest.mark.check("network.link")
def test_link(spec: RigSpec, readings: Readings, baseline: Baseline | None, judge: Judge) -> None:
    """The network card's link is as fast as declared."""
    judge(network.link(spec, readings, baseline))
