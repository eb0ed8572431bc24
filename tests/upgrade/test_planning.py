"""What a plan keeps for the way back."""

from __future__ import annotations

import pytest

from rigctl.model.rig import Login, Rig
from rigctl.model.upgrade import RigPlan, Wishes
from rigctl.upgrade.planning import PlanSeen, _built_anew, _is_ours
from tests.measure.test_plan import spec

RIG = Rig(name="rig1", login=Login(address="192.0.2.1"), spec=spec(), profiles={})
BURNER, TORCH = "/opt/gpuburn", "/opt/rigctl/torch"


def variables(**changes):
    return {
        "nvidia_driver_branch": "515",
        "cuda_version": "11.7",
        "pytorch_version": "auto",
        "pytorch_build": "auto",
    } | changes


@pytest.mark.parametrize(
    ("wishes", "changes", "kept"),
    [
        ({"driver": "535"}, {}, (BURNER, TORCH)),  # the tables choose another PyTorch for it
        ({"driver": "515.86.01"}, {}, (BURNER,)),
        ({"driver": "535"}, {"pytorch_version": "2.0.1"}, (BURNER, TORCH)),
        ({"driver": "535"}, {"pytorch_build": "cpu"}, (BURNER,)),
        ({"driver": "535"}, {"pytorch_build": "distribution"}, (BURNER,)),
        ({"cuda": "11.8"}, {}, (BURNER,)),
        ({"torch": "2.0.1"}, {"pytorch_build": "cpu"}, (TORCH,)),
    ],
)
def test_what_may_be_built_anew_is_kept_and_nothing_else(wishes, changes, kept):
    assert _built_anew(RIG, Wishes(**wishes), variables(**changes)) == kept


def test_a_plan_of_an_earlier_version_keeps_everything():
    assert RigPlan(rig="rig1", has={}, gets={}).folders is None


@pytest.mark.parametrize(
    ("name", "driver", "ours", "wished", "hold"),
    [
        ("nvidia-utils-515", True, True, {"nvidia_driver_branch": "535"}, True),
        ("nvidia-utils-515", True, False, {"nvidia_driver_branch": "535"}, False),
        ("site-tools", False, False, {"nvidia_driver_branch": "535"}, True),
        ("linux-generic", False, False, {"nvidia_driver_branch": "535"}, True),
        ("linux-generic", False, True, {"kernel_version": "5.15.0-105-generic"}, True),
    ],
)
def test_a_hold_is_the_roles_own_or_somebody_s(name, driver, ours, wished, hold):
    seen = PlanSeen(facts=None, answer={}, variables={"nvidia_driver_hold": hold})
    assert _is_ours({"name": name, "driver": driver}, wished, seen) == ours
