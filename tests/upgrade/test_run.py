"""A fleet's upgrade: who goes first, how many are out, when it stops, and another controller that goes on."""

from __future__ import annotations

import re
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from rigctl.errors import ExitCode, UsageError
from rigctl.model.upgrade import End, Group, Pace
from rigctl.store.driving import driven_by_me
from rigctl.upgrade.order import max_unavailable
from rigctl.upgrade.run import Upgrade, how_busy

from .park import Killed, machines, new_run, park


@pytest.fixture
def run(tmp_path):
    return new_run(tmp_path)


def upgrade(rigs, run, groups=(), busy=None, **pace):
    return Upgrade(run, machines(rigs, run), Pace(**{"settle_s": 0, **pace}), groups, lambda: busy or {})


def ends(outcome):
    return {one.rig: one.end for one in outcome.ends}


def order_of(run):
    return [entry.detail["rig"] for entry in run.journal_entries() if entry.event == "rig_ended"]


@pytest.mark.parametrize("allowed", [1, 2, 3])
def test_all_rigs_are_upgraded_and_never_more_are_out_than_allowed(run, allowed):
    rigs = park(6)
    outcome = upgrade(rigs, run, max_unavailable=allowed).drive()
    assert set(ends(outcome).values()) == {End.UPGRADED}
    assert outcome.exit_code == ExitCode.OK
    assert max(rigs["rig1"].most_out) <= allowed


def test_the_canary_goes_first_and_alone(run):
    rigs = park(3)
    upgrade(rigs, run, canary="rig3", max_unavailable=3).drive()
    assert order_of(run)[0] == "rig3"
    assert rigs["rig1"].most_out[0] == 1


def test_without_a_canary_the_least_busy_rig_goes_first(run):
    upgrade(park(3), run, busy={"rig1": 2, "rig2": 0, "rig3": 1}).drive()
    assert order_of(run)[0] == "rig2"


def test_a_failed_canary_ends_it_whatever_may_fail(run):
    rigs = park(3)
    rigs["rig1"].wrong = "slower"
    outcome = upgrade(rigs, run, max_unavailable=3, max_failures=2).drive()
    assert ends(outcome) == {"rig1": End.ROLLED_BACK, "rig2": End.NOT_BEGUN, "rig3": End.NOT_BEGUN}
    assert (rigs["rig2"].done, rigs["rig3"].done) == ([], [])
    assert outcome.exit_code == ExitCode.CHANGE_INCOMPLETE


@pytest.mark.parametrize(("allowed", "begun"), [(0, {"rig1", "rig2"}), (1, {"rig1", "rig2", "rig3", "rig4"})])
def test_it_stops_at_the_first_failed_rig_unless_more_may_fail(run, allowed, begun):
    rigs = park(4)
    rigs["rig2"].wrong = "unfit_after"
    upgrade(rigs, run, max_failures=allowed).drive()
    assert {name for name, rig in rigs.items() if rig.done} == begun


def test_a_rig_that_stays_drained_counts_as_out(run):
    rigs = park(4)
    rigs["rig2"].wrong = "never_comes_back"
    outcome = upgrade(rigs, run, max_failures=9).drive()
    assert ends(outcome) == {
        "rig1": End.UPGRADED, "rig2": End.LEFT_DRAINED, "rig3": End.NOT_BEGUN, "rig4": End.NOT_BEGUN,
    }  # fmt: skip


def test_rigs_of_one_group_are_never_out_together(run):
    rigs = park(5)
    barrier = threading.Barrier(2, timeout=20)
    for name in ("rig2", "rig4"):  # of two circuits: these two do run at once
        change = rigs[name].change
        rigs[name].change = lambda wishes, change=change: (barrier.wait(), change(wishes))[1]  # type: ignore[method-assign]
    groups = (Group(name="a", rigs=("rig2", "rig3")), Group(name="b", rigs=("rig4", "rig5")))
    together = []
    for rig in rigs.values():
        drain = rig.drain

        def watched(reason, rig=rig, drain=drain):
            said = drain(reason)
            together.append(frozenset(rig.out))
            return said

        rig.drain = watched  # type: ignore[method-assign]
    upgrade(rigs, run, groups=groups, canary="rig1", max_unavailable=4).drive()
    assert not any({"rig2", "rig3"} <= out or {"rig4", "rig5"} <= out for out in together)
    assert any(len(out) == 2 for out in together)


def test_another_controller_goes_on_with_the_same_canary(run):
    rigs = park(3)
    rigs["rig1"].die_at = "change"
    with pytest.raises(Killed):
        upgrade(rigs, run).drive()
    outcome = upgrade(rigs, run, busy={"rig1": 9}).drive()
    assert set(ends(outcome).values()) == {End.UPGRADED}
    assert order_of(run)[0] == "rig1"
    assert [entry.event for entry in run.journal_entries()].count("canary_chosen") == 1


def test_ctrl_c_ends_the_present_step_and_begins_no_other(run):
    rigs = park(2)
    one = upgrade(rigs, run)
    change = rigs["rig1"].change
    rigs["rig1"].change = lambda wishes: (one.stop.set(), change(wishes))[1]  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        one.drive()
    assert ends(one.outcome()) == {"rig1": End.UNFINISHED, "rig2": End.NOT_BEGUN}
    assert rigs["rig1"].driver == "535"
    assert "smoke after" not in rigs["rig1"].done
    assert set(ends(upgrade(rigs, run).drive()).values()) == {End.UPGRADED}


def test_an_upgrade_that_was_left_while_its_canary_settled_goes_on(run):
    rigs = park(2)
    one = upgrade(rigs, run, settle_s=1000)
    with ThreadPoolExecutor(1) as pool:
        driven = pool.submit(one.drive)
        deadline = time.monotonic() + 60
        while not one.waits_for:
            assert time.monotonic() < deadline
            time.sleep(0.001)
        assert re.fullmatch(r"rig1 settles, 16 min( \d\d s)? left", one.waits_for)
        one.stop.set()
        with pytest.raises(KeyboardInterrupt):
            driven.result()
    assert ends(one.outcome()) == {"rig1": End.UPGRADED, "rig2": End.NOT_BEGUN}
    assert set(ends(upgrade(rigs, run).drive()).values()) == {End.UPGRADED}


def test_a_rig_that_does_not_answer_is_the_last_choice_of_a_canary(run):
    rigs = park(3)
    rigs["rig1"].reachable = False
    rigs["rig2"].work = ["job 7 of ada"]
    assert how_busy(machines(rigs, run)) == {"rig1": sys.maxsize, "rig2": 1, "rig3": 0}


def test_abort_takes_back_what_was_begun_and_leaves_the_rest(run):
    rigs = park(3)
    rigs["rig2"].die_at = "change"
    with pytest.raises(Killed):
        upgrade(rigs, run).drive()
    outcome = upgrade(rigs, run).abort("asked for")
    assert ends(outcome) == {"rig1": End.UPGRADED, "rig2": End.ABORTED, "rig3": End.ABORTED}
    assert [rig.driver for rig in rigs.values()] == ["535", "515", "515"]
    assert rigs["rig3"].done == []


def test_one_controller_drives_a_run(run):
    with (
        driven_by_me(run.path, "ann@host"),
        pytest.raises(UsageError, match="driven by another process"),
        driven_by_me(run.path, "ann@host"),
    ):
        pass
    with driven_by_me(run.path, "ann@host"):
        pass


@pytest.mark.parametrize(("words", "number"), [("1", 1), ("6", 6), ("50%", 3), ("1%", 1), ("100%", 6), ("34%", 2)])
def test_how_many_may_be_out(words, number):
    assert max_unavailable(words, 6) == number


@pytest.mark.parametrize("words", ["0", "7", "0%", "101%", "-1", "two", "", "1.5"])
def test_how_many_may_not_be_out(words):
    with pytest.raises(UsageError, match="--max-unavailable"):
        max_unavailable(words, 6)


def test_a_canary_that_is_not_there(run):
    with pytest.raises(UsageError, match="--canary rig9"):
        upgrade(park(2), run, canary="rig9").drive()
