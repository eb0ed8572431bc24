"""Power: limits as asked, reached under load, and the wall agrees."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rigctl.checks import power

if TYPE_CHECKING:
    from rigctl.acceptance.plugin import Judge
    from rigctl.model.reading import Readings
    from rigctl.model.spec import ProfileSpec, RigSpec


@pytest.mark.check("power.limit")
def test_limit(spec: RigSpec, readings: Readings, judge: Judge) -> None:
    """Each card's limit is the asked one."""
    judge(power.limit(spec, readings))


@pytest.mark.check("power.share_of_limit")
def test_share_of_limit(spec: RigSpec, readings: Readings, judge: Judge) -> None:
    """Each card draws most of its limit."""
    judge(power.share_of_limit(spec, readings))


@pytest.mark.check("power.wall")
def test_wall(spec: RigSpec, readings: Readings, profile: ProfileSpec, judge: Judge) -> None:
    """The wall meter shows what this class draws."""
    judge(power.wall(spec, readings, profile))
