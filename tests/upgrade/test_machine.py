"""One rig's way through an upgrade, on all roads, with the controller dying at every step."""

from __future__ import annotations

import pytest

from rigctl.errors import RigUnreachable
from rigctl.model.upgrade import End, Step

from .park import FakeRig, Killed, machines, new_run

CALLS = (
    "plan", "lock", "capture", "drain", "smoke before", "release", "change", "seen", "smoke after", "resume",
    "unlock",
)  # fmt: skip


def go(rig, run, **rules):
    return machines({rig.name: rig}, run, **rules)[rig.name].advance()


@pytest.fixture
def run(tmp_path):
    return new_run(tmp_path)


def test_a_healthy_rig_is_upgraded_and_given_back(run):
    rig = FakeRig("rig1")
    assert go(rig, run).end == End.UPGRADED
    assert (rig.driver, rig.reason, rig.holder) == ("535", "", "")
    wanted = ["plan", "lock", "capture True", "drain", "users", "smoke before", "release", "change", "seen"]
    assert rig.done == [*wanted, "smoke after", "resume", "unlock"]


def test_a_rig_that_is_as_asked_is_not_touched(run):
    rig = FakeRig("rig1", driver="535")
    assert go(rig, run).end == End.AS_ASKED
    assert rig.done == ["plan"]


def test_a_controller_that_died_before_it_said_so_does_not_make_it_touched(run, monkeypatch):
    rig = FakeRig("rig1", driver="535")

    def dies(*_given):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("rigctl.upgrade.machine.Machine._end", dies)
        with pytest.raises(Killed):
            go(rig, run)
    assert go(rig, run).end == End.AS_ASKED
    assert rig.done == ["plan"]


@pytest.mark.parametrize(
    ("wrong", "step"),
    [
        ("transaction", Step.PREFLIGHT),
        ("no_old_debs", Step.CAPTURE),
        ("unfit_before", Step.BEFORE),
        ("card_held", Step.RELEASE),
    ],
)
def test_what_fails_before_the_change_leaves_the_rig_in_use_as_it_was(run, wrong, step):
    rig = FakeRig("rig1", wrong=wrong)
    ended = go(rig, run)
    assert (ended.end, ended.step) == (End.REFUSED, step)
    assert (rig.driver, rig.reason, rig.holder, rig.stopped) == ("515", "", "", False)
    assert not {"change", "restore"} & set(rig.done)


def test_what_was_stopped_is_started_again_where_nothing_is_changed_after_all(run):
    """Another rig has ended the upgrade in the very moment between the two steps."""
    rig = FakeRig("rig1")
    machine = machines({"rig1": rig}, run)["rig1"]
    machine.halted = lambda: "release" in rig.done
    ended = machine.advance()
    assert (ended.end, rig.reason, rig.holder, rig.stopped) == (End.NOT_BEGUN, "", "", False)
    assert rig.done[-4:] == ["release", "start_again", "resume", "unlock"]


def test_a_change_that_was_cut_looks_again_for_who_holds_a_card(run):
    rig = FakeRig("rig1", die_at="change")
    with pytest.raises(Killed):
        go(rig, run)
    rig.wrong = "card_held"
    ended = go(rig, run)
    assert (ended.end, ended.step) == (End.ROLLED_BACK, Step.CHANGE)
    assert (rig.driver, rig.stopped, rig.done.count("change")) == ("515", False, 1)


@pytest.mark.parametrize("cut", ["change", "smoke after"])
def test_a_journal_of_before_the_release_was_a_step_of_its_own_is_gone_on_from(run, cut):
    rig = FakeRig("rig1", die_at=cut)
    with pytest.raises(Killed):
        go(rig, run)
    journal = run.path / "journal.jsonl"
    lines = journal.read_text(encoding="utf-8").splitlines(keepends=True)
    old = [line for line in lines if '"release"' not in line]
    assert len(lines) - len(old) == 2
    journal.write_text("".join(old), encoding="utf-8")
    assert go(rig, run).end == End.UPGRADED
    assert rig.done.count("release") == (2 if cut == "change" else 1)
    assert (rig.driver, rig.reason, rig.holder, rig.stopped) == ("535", "", "", False)


def test_a_rig_that_stays_slow_on_its_old_driver_stays_drained(run):
    rig = FakeRig("rig1", wrong="slower")
    rig.slow_labels = ("after", "restored")
    ended = go(rig, run)
    assert (ended.end, ended.step, rig.driver) == (End.LEFT_DRAINED, Step.CHECK_RESTORED, "515")
    assert "slower after the upgrade than before" in ended.reason
    assert "slower after the way back too than before: throughput.training[rig] 85, was 100 (-15%)" in ended.reason
    assert rig.reason.startswith("rigctl ")
    machine = machines({"rig1": rig}, run)["rig1"]
    rig.slow_labels = ()
    machine.reopen()
    assert machine.advance().end == End.ROLLED_BACK
    assert (rig.done.count("restore"), rig.reason, rig.holder) == (1, "", "")


@pytest.mark.parametrize("wrong", ["half_changed", "unfit_after", "slower", "card_gone"])
def test_what_fails_from_the_change_on_is_rolled_back(run, wrong):
    rig = FakeRig("rig1", wrong=wrong)
    ended = go(rig, run)
    assert ended.end == End.ROLLED_BACK
    assert (rig.driver, rig.reason, rig.holder) == ("515", "", "")
    assert len(rig.cards) == 2
    said = {"half_changed": "no space", "unfit_after": "NV3", "slower": "85, was 100 (-15%)", "card_gone": "GPU-b"}
    assert said[wrong] in ended.reason


def test_a_loss_below_the_limit_is_no_reason_to_go_back(run):
    assert go(FakeRig("rig1", wrong="slower"), run, max_loss_share=0.16).end == End.UPGRADED


def test_without_rollback_a_rig_stays_drained_as_it_is(run):
    rig = FakeRig("rig1", wrong="slower")
    ended = go(rig, run, rollback=False)
    assert (ended.end, ended.step) == (End.LEFT_DRAINED, Step.VERIFY)
    assert rig.driver == "535"
    assert rig.reason.startswith(f"rigctl {run.run_id}")
    assert "restore" not in rig.done


@pytest.mark.parametrize("wrong", ["mirror_gone", "never_comes_back"])
def test_a_rig_that_cannot_be_brought_back_stays_drained_and_says_what_to_do(run, wrong):
    rig = FakeRig("rig1", wrong=wrong)
    if wrong == "mirror_gone":
        rig.cards, rig.rate = ("GPU-a", "GPU-b"), 100.0
        machine = machines({"rig1": rig}, run)["rig1"]
        machine.rules = type(machine.rules)(wishes=machine.rules.wishes, max_loss_share=-0.5)
        ended = machine.advance()
    else:
        ended = go(rig, run)
    assert (ended.end, ended.step) == (End.LEFT_DRAINED, Step.RESTORE)
    assert rig.reason
    assert rig.holder == run.run_id
    assert ended.hint


def test_a_rig_that_was_left_drained_is_tried_once_more(run):
    rig = FakeRig("rig1", wrong="never_comes_back")
    assert go(rig, run).end == End.LEFT_DRAINED
    rig.reachable, rig.wrong = True, ""
    machine = machines({"rig1": rig}, run)["rig1"]
    machine.reopen()
    assert machine.advance().end == End.ROLLED_BACK
    assert (rig.driver, rig.reason) == ("515", "")


def test_a_drain_that_others_set_stays(run):
    rig = FakeRig("rig1", reason="Ada: cable")
    assert go(rig, run).end == End.UPGRADED
    assert rig.reason == "Ada: cable"


def test_another_run_holds_the_rig(run):
    rig = FakeRig("rig1", holder="ada@desk since 09:00")
    ended = go(rig, run)
    assert (ended.end, ended.step) == (End.REFUSED, Step.LOCK)
    assert "ada@desk since 09:00" in ended.reason
    assert rig.holder == "ada@desk since 09:00"
    assert "drain" not in rig.done


def test_jobs_are_waited_for_up_to_a_limit(run, monkeypatch):
    monkeypatch.setattr("rigctl.upgrade.machine.LOOK_S", 0.001)
    rig = FakeRig("rig1", work=["job 7 of ada"] * 3)
    assert go(rig, run).end == End.UPGRADED
    other = FakeRig("rig2", work=["job 8 of bob"] * 10_000)
    ended = go(other, run, drain_limit_s=0.01)
    assert (ended.end, ended.step, other.reason) == (End.REFUSED, Step.DRAIN, "")
    assert "job 8 of bob" in ended.reason


@pytest.mark.parametrize("call", CALLS)
def test_the_controller_may_die_in_every_step_and_another_goes_on(run, call):
    rig = FakeRig("rig1", die_at=call)
    with pytest.raises(Killed):
        go(rig, run)
    assert go(rig, run).end == End.UPGRADED
    assert (rig.driver, rig.reason, rig.holder) == ("535", "", "")
    once = {"smoke before"} if call != "smoke before" else set()
    assert all(rig.done.count(what) == 1 for what in once)
    assert "restore" not in rig.done


@pytest.mark.parametrize(
    "call", ["release", "change", "seen", "smoke after", "restore", "seen back", "smoke restored", "resume"]
)
def test_the_controller_may_die_on_the_way_back_too(run, call):
    rig = FakeRig("rig1", die_at=call, wrong="slower")
    with pytest.raises(Killed):
        go(rig, run)
    assert go(rig, run).end == End.ROLLED_BACK
    assert (rig.driver, rig.reason, rig.holder) == ("515", "", "")


@pytest.mark.parametrize("call", CALLS[: CALLS.index("resume")])
def test_abort_takes_back_whatever_step_the_controller_died_in(run, call):
    rig = FakeRig("rig1", die_at=call)
    with pytest.raises(Killed):
        go(rig, run)
    machine = machines({"rig1": rig}, run)["rig1"]
    machine.abort("asked for")
    assert machine.advance().end == End.ABORTED
    assert (rig.driver, rig.reason, rig.holder) == ("515", "", "")
    assert ("restore" in rig.done) == (call in CALLS[CALLS.index("change") :])


@pytest.mark.parametrize("call", ["resume", "unlock"])
def test_abort_finishes_a_rig_that_may_be_in_use_again(run, call):
    rig = FakeRig("rig1", die_at=call)
    with pytest.raises(Killed):
        go(rig, run)
    machine = machines({"rig1": rig}, run)["rig1"]
    machine.abort("asked for")
    assert machine.advance().end == End.UPGRADED
    assert (rig.driver, rig.reason, rig.holder) == ("535", "", "")
    assert "restore" not in rig.done


def test_a_rig_that_cannot_be_given_back_is_not_rolled_back(run):
    """It was verified, and whether somebody uses it again is not known."""
    rig = FakeRig("rig1")
    resume = rig.resume

    def unreachable(reason):
        raise RigUnreachable("no answer of the scheduler")

    rig.resume = unreachable  # type: ignore[method-assign]
    ended = go(rig, run)
    assert (ended.end, ended.step, rig.driver) == (End.LEFT_DRAINED, Step.RESUME, "535")
    rig.resume = resume  # type: ignore[method-assign]
    machine = machines({"rig1": rig}, run)["rig1"]
    machine.reopen()
    assert machine.advance().end == End.UPGRADED
    assert (rig.done.count("change"), rig.reason, rig.holder) == (1, "", "")


def test_what_was_begun_is_never_captured_anew(run):
    """A capture that was made after the change would be a way back to nowhere."""
    rig = FakeRig("rig1", die_at="change")
    with pytest.raises(Killed):
        go(rig, run)
    rig.wrong = "slower"
    assert go(rig, run).end == End.ROLLED_BACK
    assert rig.done.count("capture True") == 1
    assert rig.driver == "515"
