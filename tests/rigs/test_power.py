"""Faults of the power on a rig: each is the one cause of what follows; a meter that lies is neither pass nor fault."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rigctl.sim import faults

if TYPE_CHECKING:
    from .conftest import Fleet

pytestmark = [pytest.mark.rigs, pytest.mark.slow, pytest.mark.timeout(600, func_only=True)]
RIG = "rig2"
EXIT_CODES = {fault.name: fault.exit_code for fault in faults.catalogue()}


@pytest.mark.parametrize(
    ("fault", "parameters", "cause", "said"),
    [
        ("power_limit_low", {}, "power.limit", "the limit is 300 W"),
        ("power_brake", {"when": "load"}, "power.brake", "signalled power brake"),
        ("idle_power_high", {}, "power.idle", " W at rest, at most "),
        ("wall_meter_stuck", {}, "power.wall", "no supply gives more than it takes"),
        ("wall_meter_absurd", {}, "power.wall", "no supply gives more than it takes"),
        ("wall_meter_absurd", {"pct": "2000"}, "power.wall", "it has lost its scale"),
    ],
)
def test_a_fault_of_the_power_is_the_one_cause(
    fleet: Fleet, fault: str, parameters: dict[str, str], cause: str, said: str
) -> None:
    faults.apply(fleet.state.directory, RIG, fault, parameters)
    accepted = fleet.accept("burn", RIG)
    assert accepted.causes(RIG) == {cause}
    reasons = [v["reason"] for v in accepted.of(RIG, "fail", "error").values() if v["check"] == cause]
    assert any(said in reason for reason in reasons)
    assert accepted.exit_code == EXIT_CODES[fault]
