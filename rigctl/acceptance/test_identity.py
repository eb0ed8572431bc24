"""Identity: the rig is still the one that was accepted, down to its BIOS settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rigctl.checks import identity, machine

if TYPE_CHECKING:
    from rigctl.acceptance.plugin import Judge
    from rigctl.model.baseline import Baseline
    from rigctl.model.reading import Readings
    from rigctl.model.spec import RigSpec


@pytest.mark.check("identity.settings")
def test_settings(spec: RigSpec, readings: Readings, baseline: Baseline | None, judge: Judge) -> None:
    """The BIOS is set as the spec asks and as it was."""
    judge(machine.settings(spec, readings, baseline))


@pytest.mark.check("identity.machine")
def test_machine(readings: Readings, baseline: Baseline | None, judge: Judge) -> None:
    """Board and parts are those that were accepted."""
    judge(machine.machine(readings, baseline))


@pytest.mark.check("identity.modules")
def test_modules(spec: RigSpec, readings: Readings, baseline: Baseline | None, judge: Judge) -> None:
    """No kernel module from elsewhere has come."""
    judge(identity.modules(spec, readings, baseline))


@pytest.mark.check("identity.cards")
def test_cards(spec: RigSpec, readings: Readings, baseline: Baseline | None, judge: Judge) -> None:
    """The accepted cards sit in the accepted slots."""
    judge(identity.known_cards(spec, readings, baseline))


@pytest.mark.check("identity.card_firmware")
def test_card_firmware(spec: RigSpec, readings: Readings, baseline: Baseline | None, judge: Judge) -> None:
    """VBIOS and power range of each card are as they were."""
    judge(identity.card_firmware(spec, readings, baseline))
