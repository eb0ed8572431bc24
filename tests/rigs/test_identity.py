"""What people and firmware change on an accepted rig: each change is one cause, and a shifted bus number is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rigctl.sim import faults
from rigctl.sim.rigs import wait_ready

from .conftest import Fleet
from .test_acceptance import assert_well

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rigctl import sim

pytestmark = [pytest.mark.rigs, pytest.mark.slow, pytest.mark.timeout(600, func_only=True)]
RIG = "rig2"
COMPARED = {"identity.cards", "identity.card_firmware"}
"""What has nothing to compare with at a first acceptance."""


@pytest.fixture(scope="module")
def accepted(running: sim.State, tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    """The rigs, of which one was burnt and accepted in a run of this folder."""
    fleet = Fleet(running, tmp_path_factory.mktemp("accepted"))
    first = fleet.accept("burn", RIG)
    assert_well(first, RIG)
    assert first.exit_code == 0
    assert {v["check"] for v in first.of(RIG, "skip").values()} >= COMPARED
    return fleet


@pytest.fixture
def known(accepted: Fleet) -> Iterator[Fleet]:
    """The rig as it was accepted, before and after a test."""
    yield accepted
    faults.clear(accepted.state.directory, RIG)
    wait_ready(accepted.state, accepted.state.rig(RIG))


def test_unchanged_it_is_the_rig_that_was_accepted(known: Fleet) -> None:
    again = known.accept("rest", RIG)
    assert again.exit_code == 0
    assert {v["check"] for v in again.of(RIG, "pass").values()} >= {*COMPARED, "identity.settings", "identity.modules"}


@pytest.mark.parametrize(
    ("fault", "cause", "subjects", "said"),
    [
        ("card_swapped", "identity.cards", 1, "swapped: "),
        ("card_moved", "identity.cards", 2, "moved: it sits in "),
        ("wrong_card", "topology.gpu_model", 1, "RTX 3080 instead of "),
        ("vbios_changed", "identity.card_firmware", 1, "changed since the accepted run: VBIOS "),
        ("bios_defaults", "identity.settings", 1, "BIOS defaults returned: Above 4G decoding on → off; ASPM off → on"),
        ("foreign_module", "identity.modules", 1, "rgb_fans (out of tree, unsigned)"),
    ],
)
def test_a_change_is_named_as_the_one_cause(known: Fleet, fault: str, cause: str, subjects: int, said: str) -> None:
    faults.apply(known.state.directory, RIG, fault, {})
    changed = known.accept("rest", RIG)
    assert changed.causes(RIG) == {cause}
    named = [v["reason"] for v in changed.of(RIG, "fail").values() if v["check"] == cause]
    assert len(named) == subjects
    assert all(said in reason for reason in named)
    assert changed.exit_code == 1


def test_a_disk_that_shifts_bus_numbers_is_no_change_of_cards(known: Fleet) -> None:
    faults.apply(known.state.directory, RIG, "nvme_added", {})
    shifted = known.accept("rest", RIG)
    assert_well(shifted, RIG)
    assert shifted.exit_code == 0
    reasons = [v["reason"] for v in shifted.of(RIG, "pass").values() if v["check"] == "identity.cards"]
    assert len(reasons) == 2
    assert all("its bus number shifted from " in reason for reason in reasons)
