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
    ],
)
def test_without_load(fleet: Fleet, fault: str, check: str, said: str) -> None:
    faults.apply(fleet.state.directory, RIG, fault, {})
    accepted = fleet.accept("rest", RIG)
    assert accepted.causes(RIG) == {check}
    assert any(said in v["reason"] for v in accepted.of(RIG, "fail").values())
    assert accepted.exit_code == 1


def test_every_xid_of_this_boot_is_named(fleet: Fleet) -> None:
    """The kernel's log keeps them all: each is named beside those before it."""
    for number, text in ((48, "double bit error"), (74, "NVLink: fatal error"), (119, "waiting for RPC response")):
        faults.apply(fleet.state.directory, RIG, f"xid_{number}", {})
        accepted = fleet.accept("rest", RIG)
        assert accepted.causes(RIG) == {"kernel.xid"}
        assert accepted.exit_code == 1
        found = accepted.of(RIG, "fail").values()
        assert any(str(number) in str(v["found"]).split(", ") for v in found if v["check"] == "kernel.xid")
        kernel = (accepted.run / RIG / "kernel.jsonl").read_text(encoding="utf-8")
        assert text in kernel


@pytest.mark.parametrize("fault", ["xid_13", "xid_31"])
def test_a_bad_access_under_our_own_load_is_the_cards(fleet: Fleet, fault: str) -> None:
    faults.apply(fleet.state.directory, RIG, fault, {"when": "load"})
    accepted = fleet.accept("burn", RIG)
    assert accepted.causes(RIG) == {"kernel.xid"}
    assert accepted.exit_code == 1
