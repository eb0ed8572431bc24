"""Never over a circuit's budget, never outside the window, and nobody is forgotten."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rigctl.nightly.planner import Rotation, Wish, may_begin, plan

BUDGETS = {"a": 2300.0, "b": 1300.0}
wish = st.builds(
    Wish,
    rig=st.integers(0, 40).map("rig{}".format),
    profile=st.just("standard"),
    seconds=st.floats(60, 20_000),
    watts=st.floats(200, 1500),
    circuit=st.sampled_from(["a", "b", "unbudgeted", None]),
)


@given(st.lists(wish, max_size=20, unique_by=lambda one: one.rig), st.floats(600, 40_000))
def test_a_plan_keeps_budgets_and_window_and_every_rig(wishes: list[Wish], window_s: float) -> None:
    night = plan(wishes, window_s, BUDGETS)
    placed, left = [slot.wish for slot in night.slots], [one.wish for one in night.left_out]
    assert sorted(one.rig for one in [*placed, *left]) == sorted(one.rig for one in wishes)
    for slot in night.slots:
        assert slot.begin_s >= 0
        assert slot.end_s <= window_s
        beside = [other.wish for other in night.slots if other.begin_s <= slot.begin_s < other.end_s]
        same = [one for one in beside if one.circuit == slot.wish.circuit]
        if slot.wish.circuit == "unbudgeted":
            assert len(same) == 1
        elif slot.wish.circuit is not None:
            assert sum(one.watts for one in same) <= BUDGETS[slot.wish.circuit]
    assert all(one.reason for one in night.left_out)


def one(rig: str, hours: float = 1.0, watts: float = 1240, circuit: str | None = "a") -> Wish:
    return Wish(rig, "standard", hours * 3600, watts, circuit)


def test_two_rigs_of_1240_w_on_a_breaker_of_2300_never_burn_together() -> None:
    night = plan([one("rig1"), one("rig2"), one("rig3", circuit=None)], 4 * 3600, BUDGETS)
    assert {slot.wish.rig: slot.begin_s for slot in night.slots} == {"rig1": 0, "rig2": 3600, "rig3": 0}
    assert night.end_s == 7200


def test_a_small_rig_fits_beside_a_large_one() -> None:
    night = plan([one("rig1"), one("rig2", watts=1060)], 3600, BUDGETS)
    assert [slot.begin_s for slot in night.slots] == [0, 0]
    assert [slot.begin_s for slot in plan([one("rig1"), one("rig2", watts=1060.1)], 7200, BUDGETS).slots] == [0, 3600]


@pytest.mark.parametrize(
    ("wishes", "said"),
    [
        ([one("rig1", hours=9)], "profile standard takes 9.0 h, the window has 8.0 h"),
        ([one("rig1", watts=2400)], "it draws 2400 W by itself, circuit a bears 2300 W"),
        ([one("rig1", 5), one("rig2", 5)], "no time is left in the window beside the others on its circuit"),
    ],
)
def test_what_does_not_fit_is_said(wishes: list[Wish], said: str) -> None:
    night = plan(wishes, 8 * 3600, BUDGETS)
    assert [left.reason for left in night.left_out] == [said]
    assert len(night.slots) == len(wishes) - 1


def test_who_may_begin_now() -> None:
    assert may_begin(one("rig2"), [], 3600, BUDGETS)
    assert not may_begin(one("rig2"), [], 3599, BUDGETS)
    assert not may_begin(one("rig2"), [one("rig1")], 3600, BUDGETS)
    assert may_begin(one("rig2", circuit="c"), [one("rig1")], 3600, BUDGETS)
    assert not may_begin(one("rig2", circuit="c"), [one("rig1", circuit="c")], 3600, BUDGETS)
    assert may_begin(one("rig2", circuit=None), [one("rig1", circuit=None)], 3600, BUDGETS)


def test_each_rig_gets_the_deep_profile_once_a_week() -> None:
    rigs = [f"rig{number:02}" for number in range(20)]
    last: dict[str, float] = {}
    nights: dict[str, list[int]] = {rig: [] for rig in rigs}
    for day in range(28):
        for rig in Rotation(7, last).tonight(rigs, 20_000.0 + day):
            last[rig] = 20_000.0 + day
            nights[rig].append(day)
    assert all(len(days) >= 4 for days in nights.values()), nights
    assert all(later - earlier <= 7 for days in nights.values() for earlier, later in pairwise(days))


def test_who_is_overdue_is_taken_besides() -> None:
    assert Rotation(7, {"a": 90.0, "b": 91.0, "c": 99.0}).tonight(["a", "b", "c"], 100.0) == {"a", "b"}
