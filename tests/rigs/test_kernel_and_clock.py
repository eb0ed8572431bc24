"""Faults that the kernel tells of, and of the clock, on a rig: found without load, or while our own load runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rigctl.sim import faults

if TYPE_CHECKING:
    from .conftest import Fleet

pytestmark = [pytest.mark.rigs, pytest.mark.slow, pytest.mark.timeout(600)]
RIG = "rig2"


@pytest.mark.parametrize(
    ("fault", "check", "said"),
    [
        ("clock_drift", "kernel.clock", "ahead of the controller's"),
        ("time_sync_off", "kernel.time_sync", "no time service is on"),
        ("xid_48", "kernel.xid", "double bit error"),
        ("xid_74", "kernel.xid", "NVLink: fatal error"),
        ("xid_119", "kernel.xid", "waiting for RPC response"),
    ],
)
def test_without_load(fleet: Fleet, fault: str, check: str, said: str) -> None:
    faults.apply(fleet.state.directory, RIG, fault, {})
    accepted = fleet.accept("rest", RIG)
    assert accepted.causes(RIG) == {check}
    assert any(said in v["reason"] for v in accepted.of(RIG, "fail").values())
    assert accepted.exit_code == 1


@pytest.mark.parametrize("fault", ["xid_13", "xid_31"])
def test_a_bad_access_under_our_own_load_is_the_cards(fleet: Fleet, fault: str) -> None:
    faults.apply(fleet.state.directory, RIG, fault, {"when": "load"})
    accepted = fleet.accept("burn", RIG)
    assert accepted.causes(RIG) == {"kernel.xid"}
    assert accepted.exit_code == 1
