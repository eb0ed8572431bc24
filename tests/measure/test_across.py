"""Rigs that train together: who meets where, and what is refused before any rig is touched."""

from __future__ import annotations

from typing import Any

import pytest

from rigctl.errors import UsageError
from rigctl.measure.across import DEFAULT_PORT, STEP, meeting
from rigctl.measure.claim import Claim
from rigctl.measure.plan import build_plan, step_seconds
from rigctl.model.rig import Login, Rig
from tests.checks import healthy as h


def rig(name: str, address: str = "", **spec: Any) -> Rig:
    profiles = {"smoke": h.PROFILE.model_copy(update={"workloads": ("disk",)})}
    return Rig(
        name=name,
        login=Login(address=address or f"192.0.2.{name[-1]}"),
        spec=h.spec(across=None, **spec),
        profiles=profiles,
    )


def test_they_meet_at_the_first_one() -> None:
    met = meeting((rig("rig1"), rig("rig2")), "smoke", {})
    assert [one.spec.across.model_dump() for one in met if one.spec.across] == [
        {"rigs": ("rig1", "rig2"), "rank": rank, "address": "192.0.2.1", "port": DEFAULT_PORT} for rank in (0, 1)
    ]
    assert [one.profiles["smoke"].workloads for one in met] == [("disk", STEP)] * 2


def test_the_inventory_says_where_they_meet() -> None:
    variables = {"rig1": {"rig_across_address": "10.0.0.1", "rig_across_port": 31_000}}
    met = meeting((rig("rig1", "127.0.0.1"), rig("rig2")), "smoke", variables)
    assert {(one.spec.across.address, one.spec.across.port) for one in met if one.spec.across} == {("10.0.0.1", 31_000)}


def test_asked_twice_the_step_is_there_once() -> None:
    once = meeting((rig("rig1"), rig("rig2")), "smoke", {})
    assert meeting(once, "smoke", {})[0].profiles["smoke"].workloads == ("disk", STEP)


def test_a_profile_that_is_not_there_is_left_to_who_knows_of_profiles() -> None:
    assert meeting((rig("rig1"), rig("rig2")), "soak", {})[0].profiles.keys() == {"smoke"}


@pytest.mark.parametrize(
    ("fleet", "variables", "said"),
    [
        ((rig("rig1"),), {}, "rig1 would train with no other rig"),
        ((rig("rig1"), rig("rig2", rig_class="other")), {}, "the rigs are of 2 classes: dual_3090ti, other"),
        ((rig("rig1"), rig("rig2", training=None)), {}, "the spec of rig2 names no training"),
        ((rig("rig1", "127.0.0.1"), rig("rig2")), {}, "no other rig finds it at '127.0.0.1'"),
        ((rig("rig1"), rig("rig2")), {"rig1": {"rig_across_address": 7}}, "no other rig finds it at 7"),
        ((rig("rig1"), rig("rig2")), {"rig1": {"rig_across_port": "x"}}, "rig_across_port: 'x' is no port"),
        ((rig("rig1"), rig("rig2")), {"rig1": {"rig_across_port": 65_536}}, "65536 is no port"),
        ((rig("rig1"), rig("rig2")), {"rig1": {"rig_across_port": True}}, "True is no port"),
    ],
)
def test_what_is_refused(fleet: tuple[Rig, ...], variables: dict[str, dict[str, Any]], said: str) -> None:
    with pytest.raises(UsageError) as refused:
        meeting(fleet, "smoke", variables)
    assert said in refused.value.message
    assert refused.value.hint


def test_the_step_carries_what_torchrun_needs() -> None:
    one = meeting((rig("rig1"), rig("rig2")), "smoke", {})[1]
    profile = one.profiles["smoke"]
    assert STEP in step_seconds(one.spec, profile)
    (step,) = [s for s in build_plan("r1", one.spec, profile, h.facts(), Claim())["steps"] if s["name"] == STEP]
    script = step["script"]
    assert (script["name"], script["python"], script["needs_cards"]) == (STEP, "torch", True)
    assert script["arguments"]["ranks"] == 2
    assert script["arguments"]["across"]["rank"] == 1
    assert script["arguments"]["training"]["model"] == "gpt2_medium"
    assert step["seconds"] > script["arguments"]["limit_s"]


def test_nobody_meets_unasked() -> None:
    assert STEP not in step_seconds(h.spec(across=None), h.PROFILE)
    assert STEP in step_seconds(h.spec(), h.PROFILE)
