"""Power: limits as asked, reached under load, and the wall agrees."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rigctl.checks import brake, energy, power, switched

if TYPE_CHECKING:
    from rigctl.acceptance.plugin import Judge
    from rigctl.model.baseline import Baseline
    from rigctl.model.reading import Readings
    from rigctl.model.spec import ProfileSpec, RigSpec


@pytest.mark.check("power.limit")
def test_limit(spec: RigSpec, readings: Readings, judge: Judge) -> None:
    """Each card's limit is the asked one."""
    judge(power.limit(spec, readings))


@pytest.mark.check("power.idle")
def test_idle(spec: RigSpec, readings: Readings, baseline: Baseline | None, judge: Judge) -> None:
    """Each card rests when it has nothing to do."""
    judge(power.idle(spec, readings, baseline))


@pytest.mark.check("power.share_of_limit")
def test_share_of_limit(spec: RigSpec, readings: Readings, judge: Judge) -> None:
    """Each card draws most of its limit."""
    judge(power.share_of_limit(spec, readings))


@pytest.mark.check("power.wall")
def test_wall(spec: RigSpec, readings: Readings, profile: ProfileSpec, judge: Judge) -> None:
    """The wall meter shows what this class draws."""
    judge(power.wall(spec, readings, profile))


@pytest.mark.check("power.residual")
def test_residual(spec: RigSpec, readings: Readings, profile: ProfileSpec, judge: Judge) -> None:
    """What the wall gives and neither cards nor CPU take stays small."""
    judge(energy.residual(spec, readings, profile))


@pytest.mark.check("power.brake")
def test_brake(spec: RigSpec, readings: Readings, judge: Judge) -> None:
    """No supply or board asks a card to draw less."""
    judge(brake.brake(spec, readings))


@pytest.mark.check("power.step_load")
def test_step_load(
    spec: RigSpec, readings: Readings, profile: ProfileSpec, baseline: Baseline | None, judge: Judge
) -> None:
    """The supply bears cards and CPU that are switched together."""
    judge(switched.step_load(spec, readings, profile, baseline))


@pytest.mark.check("power.idle_to_load")
def test_idle_to_load(spec: RigSpec, readings: Readings, profile: ProfileSpec, judge: Judge) -> None:
    """Each card wakes from rest."""
    judge(switched.idle_to_load(spec, readings, profile))
