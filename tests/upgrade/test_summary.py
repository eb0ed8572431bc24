"""What an upgrade's report tells: steps with their seconds, rigctl's own time, what is not as it was."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from rigctl.model.run import RunRig
from rigctl.model.upgrade import End, Step, Wishes
from rigctl.provision import ProvisionProgress
from rigctl.store import JournalEntry, RunDir
from rigctl.upgrade.rig import SshRig
from rigctl.upgrade.summary import step_times, upgrade_summary
from tests.fleet.rigs import rig as any_rig

from .park import FakeRig, Killed, machines

if TYPE_CHECKING:
    from rigctl.measure.progress import Progress


def entry(seq, event, at, **detail):
    return JournalEntry(seq=seq, t_wall_s=at, t_mono_s=at, event=event, detail={"rig": "rig1", **detail})


def times(*entries):
    return [(one.step, one.state, one.seconds) for one in step_times([entry(n, *rest[:2], **rest[2])
            for n, rest in enumerate(entries, start=1)])]  # fmt: skip


def test_a_step_that_ended_a_cut_one_and_one_under_way():
    assert times(
        ("step_started", 10, {"step": "drain"}),
        ("step_started", 50, {"step": "drain"}),
        ("step_finished", 70, {"step": "drain", "seconds": 20.5}),
        ("step_started", 71, {"step": "before"}),
    ) == [(Step.DRAIN, "cut", None), (Step.DRAIN, "done", 20.5), (Step.BEFORE, "under_way", None)]


def test_a_step_that_failed_and_one_in_which_it_was_turned_round():
    assert times(
        ("step_started", 10, {"step": "change"}),
        ("way_changed", 14.25, {"step": "change", "way": "back"}),
        ("step_started", 15, {"step": "restore"}),
        ("rig_ended", 17, {"end": {}}),
    ) == [(Step.CHANGE, "failed", 4.25), (Step.RESTORE, "failed", 2.0)]
    assert times(
        ("step_started", 10, {"step": "change"}), ("way_changed", 14, {"step": None, "way": "back"}),
    ) == [(Step.CHANGE, "cut", None)]  # fmt: skip


def upgraded(tmp_path, **what):
    rig = FakeRig("rig1", **what)
    run = RunDir.create(
        tmp_path, "upgrade", rigs=[RunRig(name="rig1", spec=any_rig("rig1").spec)],
        asked={"wishes": Wishes(driver="535").model_dump()},
    )  # fmt: skip
    return rig, run


def test_own_time_is_what_is_neither_change_nor_acceptance_nor_waiting(tmp_path, monkeypatch):
    clock = SimpleNamespace(now=1000.0)
    took = {"plan": 1.0, "smoke before": 60.0, "change": 300.0, "smoke after": 62.0, "capture True": 2.0, "seen": 1.5}
    monkeypatch.setattr("rigctl.upgrade.machine.time.monotonic", lambda: clock.now)
    monkeypatch.setattr("rigctl.store.rundir.time.time", lambda: clock.now)
    rig, run = upgraded(tmp_path)
    does = FakeRig._does
    monkeypatch.setattr(
        FakeRig, "_does", lambda one, what: (does(one, what), setattr(clock, "now", clock.now + took.get(what, 0)))[0]
    )
    assert machines({"rig1": rig}, run)["rig1"].advance().end == End.UPGRADED
    (told,) = upgrade_summary(run).rigs
    assert told.seconds == pytest.approx(426.5)
    assert told.own_seconds == pytest.approx(1.0 + 2.0 + 1.5)


def test_a_rig_in_the_middle_says_where_and_has_no_end_yet(tmp_path):
    rig, run = upgraded(tmp_path, die_at="change")
    with pytest.raises(Killed):
        machines({"rig1": rig}, run)["rig1"].advance()
    (told,) = upgrade_summary(run).rigs
    assert (told.end.end, told.end.step, told.seconds, told.own_seconds) == (End.UNFINISHED, Step.CHANGE, None, None)
    assert (told.steps[-1].step, told.steps[-1].state) == (Step.CHANGE, "under_way")
    assert machines({"rig1": rig}, run)["rig1"].advance().end == End.UPGRADED
    (told,) = upgrade_summary(run).rigs
    assert [one.state for one in told.steps if one.step == Step.CHANGE] == ["cut", "done"]
    assert told.own_seconds is None
    assert [(one.name, one.before, one.after) for one in told.packages] == [
        ("nvidia-driver-515", "515", ""), ("nvidia-driver-535", "", "535"),
    ]  # fmt: skip


@pytest.fixture
def ssh_rig(tmp_path):
    own = SimpleNamespace(write=lambda *_: None)
    return SshRig(any_rig("rig1"), tmp_path, own, tmp_path, tmp_path, {}, {})  # type: ignore[arg-type]


def test_the_change_is_at_a_role_and_a_task(ssh_rig, monkeypatch):
    heard = []

    def attempt(_options, watch):
        progress = ProvisionProgress(["rig1"])
        watch(progress)
        data = {"host": "rig1", "role": "cuda", "task": "Install the toolkit"}
        progress.take({"event": "runner_on_start", "event_data": data})
        heard.append(ssh_rig.doing())
        return SimpleNamespace(incomplete=(), run_id="x")

    monkeypatch.setattr("rigctl.upgrade.rig.attempt", attempt)
    monkeypatch.setattr(SshRig, "start_again", lambda _: None)
    ssh_rig.change(Wishes(cuda="12.2"))
    assert heard == ["cuda · Install the toolkit"]
    assert ssh_rig.doing() == ""


def test_an_acceptance_is_at_a_step(ssh_rig, monkeypatch):
    heard = []

    def accept(_options, _run, progress: Progress):
        progress.step("rig1", "gpu_burn")
        progress.note("rig1", "reconnecting")
        heard.append(ssh_rig.doing())
        raise Killed

    monkeypatch.setattr("rigctl.upgrade.rig.accept", accept)
    monkeypatch.setattr("rigctl.upgrade.rig.start_run", lambda _: None)
    monkeypatch.setattr("rigctl.upgrade.rig.load_fleet", lambda *_: (any_rig("rig1"),))
    with pytest.raises(Killed):
        ssh_rig.smoke("before")
    assert heard == ["gpu_burn · reconnecting"]
    assert ssh_rig.doing() == ""
