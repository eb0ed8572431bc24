"""`rigctl accept --resume`, `--detach` and `rigctl collect` over rigs in memory: what people are told, exit codes."""

from __future__ import annotations

import json
import time
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

import rigctl
from rigctl.accept import AcceptOptions, carry_out, start_run
from rigctl.cli.app import main
from rigctl.errors import NoRoom, RigUnreachable
from rigctl.left import left_runs
from rigctl.measure.claim import Claim
from rigctl.measure.progress import Progress
from rigctl.measure.rig import RigMeasurement
from rigctl.model.verdict import Verdict
from rigctl.store import RunDir, list_runs
from rigctl.store import rundir as store
from rigctl.store.driving import LOCK, driven_by_me
from tests.measure.guarded_rig import RIG, GuardedRig, Killed, Killer

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("rig1", "rig2")


class Fleet:
    """Two rigs in memory, their folder of runs, and what the command line needs to meet them."""

    def __init__(self, runs: Path, patch: pytest.MonkeyPatch) -> None:
        self.runs, self.patch = runs, patch
        self.rigs = {name: GuardedRig() for name in NAMES}
        self.known = tuple(RIG.model_copy(update={"name": name}) for name in NAMES)
        patch.setattr("rigctl.measure.carry.POLL_S", 0.0)
        patch.setattr("rigctl.inventory.load_fleet", self._load)
        patch.setattr("rigctl.resume.load_fleet", self._load)
        sessions = partial(RigMeasurement, connect=lambda rig, *_: self.rigs[rig.name])
        patch.setattr("rigctl.accept.RigMeasurement", sessions)

    def _load(self, _inventory, pattern):
        return tuple(one for one in self.known if pattern == "all" or one.name in pattern.split(","))

    def options(self, **more) -> AcceptOptions:
        asked = {"inventory": str(self.runs), "acceptance_tests": []}
        return AcceptOptions(self.known, "standard", self.runs, asked, claim=Claim("ann@host"), **more)

    def left(self, at: int, silent: bool = False) -> str:
        """A run whose controller was killed at its `at`-th moment with rig1, rig2 being done."""
        options = self.options()
        run = start_run(options)
        killer = Killer(at)
        with pytest.raises(Killed), killer.watching(self.rigs["rig1"], self.patch):
            carry_out(AcceptOptions(**{**options.__dict__, "max_rigs_at_once": 1}), run, Progress(NAMES))
        if silent:
            self.rigs["rig1"].silence()
        return run.run_id

    def rigctl(self, *words: str) -> int:
        return main([*words, "--runs", str(self.runs)])


@pytest.fixture
def fleet(tmp_path, monkeypatch) -> Fleet:
    return Fleet(tmp_path / "runs", monkeypatch)


def verdicts(record) -> dict[str, str]:
    return {f"{rig.name} {one.key}": one.verdict for rig in record.rigs for one in rig.verdicts}


def whole(fleet: Fleet):
    options = fleet.options()
    return carry_out(options, start_run(options), Progress(NAMES)).record


@pytest.mark.parametrize("silent", [False, True])
def test_a_resumed_run_has_the_verdicts_of_one_that_was_not_interrupted(fleet, capsys, silent):
    wanted = verdicts(whole(fleet))
    run_id = fleet.left(120, silent)
    code = fleet.rigctl("accept", "--resume", run_id, "--json")
    record = RunDir(fleet.runs / run_id).read_record()
    assert code == record.exit_code
    assert verdicts(record) == wanted
    assert json.loads(capsys.readouterr().out)["run_id"] == run_id
    notes = [note for rig in record.rigs if rig.name == "rig1" for note in rig.notes]
    assert any("its controller was gone for" in note for note in notes)
    assert any("was done again from its beginning" in note for note in notes) is silent
    assert not (fleet.runs / run_id / LOCK).exists()
    assert left_runs(fleet.runs, NAMES) == ()


def test_killed_while_it_judges_or_reports_it_is_judged_by_the_next_one(fleet, monkeypatch):
    options = fleet.options()
    for broken in ("judge_run", "write_own"):
        run = start_run(options)
        with monkeypatch.context() as patch:
            patch.setattr(f"rigctl.accept.{broken}", raises(Killed))
            with pytest.raises(Killed):
                carry_out(options, run, Progress(NAMES))
        assert "rig1 is measured, rig2 is measured" in left_runs(fleet.runs, NAMES)[0]
        started = {name: len(rig.started) for name, rig in fleet.rigs.items()}
        assert fleet.rigctl("accept", "--resume", run.run_id) == RunDir(run.path).read_record().exit_code
        assert {name: len(rig.started) for name, rig in fleet.rigs.items()} == started
        assert (run.path / "report.html").is_file()
        assert RunDir(run.path).read_record().rigs[0].verdicts


def raises(error):
    def act(*_args, **_more):
        raise error

    return act


def test_the_next_command_says_what_was_left_and_what_each_rig_does(fleet, capsys):
    run_id = fleet.left(120)
    (said,) = left_runs(fleet.runs, ["rig2"])
    assert said.startswith(f"acceptance {run_id} was left in the middle: rig1 was at ")
    assert "its guard stops a load after 60 s without a controller" in said
    assert said.endswith(f"`rigctl accept --resume {run_id}` finishes it")
    assert left_runs(fleet.runs, ["another"]) == ()
    with driven_by_me(fleet.runs / run_id, "ann@host"):
        assert left_runs(fleet.runs, NAMES) == ()
        assert fleet.rigctl("accept", "--resume", run_id) == 2
    assert "driven by another process here: ann@host" in capsys.readouterr().err


def test_what_cannot_be_resumed_is_said_in_one_line(fleet, capsys):
    record = whole(fleet)
    assert fleet.rigctl("accept", "--resume", record.run_id) == 2
    assert capsys.readouterr().err.splitlines()[0] == f"error: run {record.run_id} is finished"
    assert not (fleet.runs / record.run_id / LOCK).exists()
    assert fleet.rigctl("accept", "rig1", "--resume", record.run_id) == 2
    assert "knows its rigs" in capsys.readouterr().err
    assert fleet.rigctl("accept", "--resume", "2020-01-01T0000Z-0000") == 2
    run_id = fleet.left(120)
    fleet.known = fleet.known[:1]
    assert fleet.rigctl("accept", "--resume", run_id) == 2
    assert "the inventory does not know: rig2" in capsys.readouterr().err


def test_another_version_of_rigctl_goes_on_and_says_so(fleet, monkeypatch):
    run_id = fleet.left(120)
    monkeypatch.setattr(rigctl, "__version__", "99.0")
    fleet.rigctl("accept", "--resume", run_id)
    record = RunDir(fleet.runs / run_id).read_record()
    assert any("then the run was resumed by rigctl 99.0" in note for note in record.rigs[0].notes)


def test_a_spec_that_changed_meanwhile_does_not_change_the_run(fleet):
    run_id = fleet.left(120)
    fleet.known = tuple(
        one.model_copy(update={"spec": one.spec.model_copy(update={"rig_class": "other"}), "profiles": {}})
        for one in fleet.known
    )
    fleet.rigctl("accept", "--resume", run_id)
    assert RunDir(fleet.runs / run_id).read_record().rigs[0].rig_class == RIG.rig_class


def test_a_detached_run_is_begun_looked_at_and_collected(fleet, capsys):
    assert fleet.rigctl("accept", "--detach") == 0
    (run_id,) = list_runs(fleet.runs)
    assert (
        f"run {run_id} goes on alone on rig1, rig2; bring it home: rigctl collect {run_id}" in capsys.readouterr().err
    )
    assert "goes on alone: rig1 was last seen at start" in left_runs(fleet.runs, NAMES)[0]
    assert fleet.rigctl("collect", run_id, "--no-wait", "--json") == 3
    assert json.loads(capsys.readouterr().out)["goes_on_alone"] == ["rig1", "rig2"]
    code = fleet.rigctl("collect", run_id)
    record = RunDir(fleet.runs / run_id).read_record()
    assert code == record.exit_code
    assert verdicts(record) == verdicts(whole(fleet))
    assert not any("gone" in note for note in record.rigs[0].notes)


def test_a_rig_that_collect_does_not_reach_is_collected_by_the_next_one(fleet, monkeypatch, capsys):
    fleet.rigctl("accept", "--detach")
    (run_id,) = list_runs(fleet.runs)
    with monkeypatch.context() as patch:
        patch.setattr(fleet.rigs["rig2"], "open", raises(RigUnreachable("rig2: no route")))
        assert fleet.rigctl("collect", run_id) == 3
    assert f"goes on alone on rig2; bring it home: rigctl collect {run_id}" in capsys.readouterr().err
    assert not RunDir(fleet.runs / run_id).has_record
    fleet.rigctl("collect", run_id)
    found = verdicts(RunDir(fleet.runs / run_id).read_record())
    assert {found[f"{name} measure.reached[rig]"] for name in NAMES} == {Verdict.PASS}


def test_a_full_disk_here_stops_the_rigs_and_with_some_room_the_run_is_finished(fleet, monkeypatch, capsys):
    wanted = verdicts(whole(fleet))
    append, written = store.append_durably, []

    def full(path, data, **more):
        if len(written) > 40 and path.name == "telemetry.jsonl":
            raise NoRoom(f"no room left to write {path.name}", "free some space")
        written.append(path)
        append(path, data, **more)

    capsys.readouterr()
    known = set(list_runs(fleet.runs))  # ids of one minute are in random order
    with monkeypatch.context() as patch:
        patch.setattr(store, "append_durably", full)
        assert fleet.rigctl("accept") == 3
    (run_id,) = set(list_runs(fleet.runs)) - known
    said = capsys.readouterr().err
    assert f"acceptance {run_id} was left in the middle" in said
    assert said.splitlines()[-2:] == ["error: no room left to write telemetry.jsonl", "hint: free some space"]
    assert {name: rig.stopped for name, rig in fleet.rigs.items()} == {name: [run_id] for name in NAMES}
    assert not RunDir(fleet.runs / run_id).has_record
    fleet.rigctl("accept", "--resume", run_id)
    assert verdicts(RunDir(fleet.runs / run_id).read_record()) == wanted


def test_a_controller_whose_clock_is_set_back_an_hour_judges_the_same(fleet, monkeypatch):
    wanted = verdicts(whole(fleet))
    real, asked = time.time, []

    def set_back():
        asked.append(None)
        return real() - (3600 if len(asked) > 40 else 0)

    with monkeypatch.context() as patch:
        patch.setattr("time.time", set_back)
        record = whole(fleet)
    assert len(asked) > 60
    journal = RunDir(fleet.runs / record.run_id).journal_entries()
    assert [one.seq for one in journal] == list(range(1, len(journal) + 1))
    assert any(later.t_wall_s < earlier.t_wall_s for earlier, later in pairwise(journal))
    changed = {key for key in wanted if verdicts(record)[key] != wanted[key]}
    assert changed <= {"rig1 kernel.clock[rig]", "rig2 kernel.clock[rig]"}


def test_resumed_by_a_clock_that_is_behind_it_was_gone_for_no_time(fleet, monkeypatch):
    run_id = fleet.left(120)
    real = time.time
    monkeypatch.setattr("time.time", lambda: real() - 3600)
    fleet.rigctl("accept", "--resume", run_id)
    assert any("gone for 0 s" in note for note in RunDir(fleet.runs / run_id).read_record().rigs[0].notes)
