"""Measuring itself: reached, the same boot, no sample lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rigctl.checks import clock, kernel, measure, probes

if TYPE_CHECKING:
    from rigctl.acceptance.plugin import Judge
    from rigctl.model.reading import Readings
    from rigctl.model.run import RunRig
    from rigctl.model.spec import ProfileSpec, RigSpec


@pytest.mark.check("measure.reached")
def test_reached(readings: Readings, judge: Judge) -> None:
    """The rig was reached and measured to the end."""
    judge(measure.reached(readings))


@pytest.mark.check("measure.telemetry")
def test_telemetry(readings: Readings, profile: ProfileSpec, judge: Judge) -> None:
    """No sample is missing, and they came often enough."""
    judge(measure.telemetry(readings, profile))


@pytest.mark.check("kernel.same_boot")
def test_same_boot(readings: Readings, judge: Judge) -> None:
    """The rig did not reboot."""
    judge(kernel.same_boot(readings))


@pytest.mark.check("kernel.xid")
def test_xid(rig: RunRig, readings: Readings, judge: Judge) -> None:
    """The kernel log holds no Xid."""
    judge(kernel.no_xid(readings, rig.past_xids))


@pytest.mark.check("kernel.clock")
def test_clock(spec: RigSpec, readings: Readings, judge: Judge) -> None:
    """The rig's clock is near the controller's."""
    judge(clock.offset(spec, readings))


@pytest.mark.check("kernel.time_sync")
def test_time_sync(spec: RigSpec, readings: Readings, judge: Judge) -> None:
    """A service keeps the rig's clock."""
    judge(clock.time_sync(spec, readings))


@pytest.mark.check("measure.left_as_found")
def test_left_as_found(readings: Readings, judge: Judge) -> None:
    """What the run changed is as it was."""
    judge(measure.left_as_found(readings))


@pytest.mark.check("measure.probes")
def test_probes(spec: RigSpec, readings: Readings, judge: Judge) -> None:
    """The driver answers in time."""
    judge(probes.answers(spec, readings))
