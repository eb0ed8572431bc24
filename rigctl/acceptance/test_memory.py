"""Memory: of the cards, as they count their own errors, and of the host, as a test finds them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rigctl.checks import ecc, host_memory

if TYPE_CHECKING:
    from rigctl.acceptance.plugin import Judge
    from rigctl.model.baseline import Baseline
    from rigctl.model.reading import Readings
    from rigctl.model.spec import ProfileSpec, RigSpec


@pytest.mark.check("memory.ecc")
def test_ecc(spec: RigSpec, readings: Readings, profile: ProfileSpec, baseline: Baseline | None, judge: Judge) -> None:
    """No error of a card's memory stayed uncorrected."""
    judge(ecc.ecc_errors(spec, readings, profile, baseline))


@pytest.mark.check("memory.remapped_rows")
def test_remapped_rows(spec: RigSpec, readings: Readings, profile: ProfileSpec, judge: Judge) -> None:
    """No row of a card's memory waits to be replaced, or could not be."""
    judge(ecc.remapped_rows(spec, readings, profile))


@pytest.mark.check("memory.host")
def test_host_memory(spec: RigSpec, readings: Readings, judge: Judge) -> None:
    """What was written into the host's memory came back as it was."""
    judge(host_memory.host_memory(spec, readings))
