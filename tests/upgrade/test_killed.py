"""`kill -9` of a real controller in every moment of an upgrade: another one goes on, and the end is the same."""

from __future__ import annotations

import os
import shutil
import signal
import time

import pytest

from rigctl.model.upgrade import End
from rigctl.store import RunDir, list_runs
from rigctl.upgrade.journal import read_history

from .controllers import Controllers, said
from .on_disk import BUSY, broken, change, look_at, most_out, new_park

WISH = ("--driver", "535", "--canary", "rig1", "--settle-minutes", "0")
KILLED = -9


@pytest.fixture(scope="module")
def controllers():
    made = Controllers()
    yield made
    made.close()


def only_run(park):
    (run_id,) = list_runs(park / "runs")
    return run_id


def ends(park):
    known = read_history(RunDir(park / "runs" / only_run(park)).journal_entries())
    return {name: history.end.end for name, history in known.items() if history.end is not None}


def state(park):
    return {name: (rig.driver, rig.reason, rig.holder) for name in ("rig1", "rig2") for rig in [look_at(park, name)]}


def steps_done_twice(park):
    """Steps that the journal calls finished more than once on one way of a rig."""
    seen, twice = set(), []
    for entry in RunDir(park / "runs" / only_run(park)).journal_entries():
        if entry.event == "way_changed":
            seen = {one for one in seen if one[0] != entry.detail["rig"]}
        if entry.event == "step_finished":
            one = (entry.detail["rig"], entry.detail["step"])
            twice += [one] if one in seen else []
            seen.add(one)
    return twice


def moments(controllers, folder, **what):
    """How many moments an upgrade of two such rigs has, and how it ends."""
    park = new_park(folder, 2)
    change(park, "rig2", **what)
    controllers.run(park, *WISH)
    return (park / "points").read_text().splitlines(), ends(park), state(park)


def walk(controllers, folder, then, check, only="", **what):
    """Kill a controller in each moment (or in those whose name begins so), have another one do `then`, and check."""
    passed, _, _ = moments(controllers, folder / "whole", **what)
    assert len(passed) > 60
    for number in (n for n, moment in enumerate(passed, start=1) if moment.startswith(only)):
        park = new_park(folder / "cut", 2)
        change(park, "rig2", **what)
        assert controllers.run(park, *WISH, kill_at=number) == KILLED
        where = f"killed {passed[number - 1]} ({number})"
        if not list_runs(park / "runs"):
            assert state(park) == dict.fromkeys(("rig1", "rig2"), ("515", "", "")), where
        else:
            pid = controllers.start(park, *then, only_run(park))
            code = controllers.wait(pid)
            check(park, code, f"{where}: {said(park, pid)}")
            assert broken(park) == [], where
            assert steps_done_twice(park) == [], where
            assert most_out(park) <= 1, where
        shutil.rmtree(park)


@pytest.mark.parametrize("only", ["before journal step_finished", pytest.param("", marks=pytest.mark.slow)])
def test_a_healthy_upgrade_comes_to_the_same_end_wherever_its_controller_died(controllers, tmp_path, only):
    def check(park, code, where):
        assert code == 0, where
        assert ends(park) == {"rig1": End.UPGRADED, "rig2": End.UPGRADED}, where
        assert state(park) == dict.fromkeys(("rig1", "rig2"), ("535", "", "")), where
        for name in ("rig1", "rig2"):
            done = look_at(park, name).done
            assert "restore" not in done, where
            # cut in the middle it is done once more, never after that
            assert done.count("change") <= 2, where

    walk(controllers, tmp_path, ("--resume",), check, only)


@pytest.mark.slow
def test_a_rig_that_fails_is_rolled_back_wherever_its_controller_died(controllers, tmp_path):
    def check(park, code, where):
        assert code == 4, where
        assert ends(park) == {"rig1": End.UPGRADED, "rig2": End.ROLLED_BACK}, where
        assert state(park) == {"rig1": ("535", "", ""), "rig2": ("515", "", "")}, where

    walk(controllers, tmp_path, ("--resume",), check, wrong="slower")


@pytest.mark.slow
def test_a_rig_whose_card_is_held_is_given_back_untouched_wherever_its_controller_died(controllers, tmp_path):
    def check(park, code, where):
        assert code == 4, where
        assert ends(park) == {"rig1": End.UPGRADED, "rig2": End.REFUSED}, where
        assert state(park) == {"rig1": ("535", "", ""), "rig2": ("515", "", "")}, where
        assert not {"change", "restore"} & set(look_at(park, "rig2").done), where

    walk(controllers, tmp_path, ("--resume",), check, wrong="card_held")


@pytest.mark.slow
def test_what_was_begun_is_taken_back_wherever_its_controller_died(controllers, tmp_path):
    def check(park, code, where):
        found = ends(park)
        assert set(found.values()) <= {End.UPGRADED, End.ABORTED}, where
        assert set(found) == {"rig1", "rig2"}, where
        assert code == (0 if set(found.values()) == {End.UPGRADED} else 4), where
        wanted = {End.UPGRADED: "535", End.ABORTED: "515"}
        assert state(park) == {name: (wanted[end], "", "") for name, end in found.items()}, where

    walk(controllers, tmp_path, ("--abort",), check)


@pytest.mark.parametrize("signals", [1, 2])
def test_ctrl_c_ends_after_the_step_and_a_second_one_at_once(controllers, tmp_path, signals):

    park = new_park(tmp_path / "park", 2)
    (park / BUSY).touch()
    pid = controllers.start(park, *WISH)
    wait_for(lambda: "job 7 of ada" in said(park, pid))
    for _ in range(signals):
        os.kill(pid, signal.SIGINT)
    assert controllers.wait(pid) == 130
    assert state(park)["rig1"][1].startswith("rigctl ")
    (park / BUSY).unlink()
    assert controllers.run(park, "--resume", only_run(park)) == 0
    assert state(park) == dict.fromkeys(("rig1", "rig2"), ("535", "", ""))
    assert broken(park) == []


def test_two_controllers_cannot_drive_one_run(controllers, tmp_path):
    park = new_park(tmp_path / "park", 2)
    (park / BUSY).touch()
    first = controllers.start(park, *WISH)
    wait_for(lambda: "job 7 of ada" in said(park, first))
    for words in (("--resume",), ("--abort",)):
        second = controllers.start(park, *words, only_run(park))
        assert controllers.wait(second) == 2
        assert "is driven by another process here: " in said(park, second)
        assert f"process {first}" in said(park, second)
    (park / BUSY).unlink()
    assert controllers.wait(first) == 0


def test_two_upgrades_cannot_have_one_rig(controllers, tmp_path):
    park = new_park(tmp_path / "park", 2)
    (park / BUSY).touch()
    first = controllers.start(park, *WISH)
    wait_for(lambda: "job 7 of ada" in said(park, first))
    run_id = only_run(park)
    second = controllers.start(park, *WISH)
    assert controllers.wait(second) == 4
    assert f"upgrade {run_id} is under way: rig1 at drain" in said(park, second)
    assert f"the rig is held by {run_id}" in said(park, second)
    (park / BUSY).unlink()
    assert controllers.wait(first) == 0
    assert broken(park) == []


def wait_for(seen):
    deadline = time.monotonic() + 60
    while not seen():
        assert time.monotonic() < deadline
        time.sleep(0.02)
