"""Ansible's events → progress, outcome and words per rig."""

import time
from io import StringIO

import pytest
from rich.console import Console

from rigctl.cli.provision import watch_provision
from rigctl.errors import ExitCode
from rigctl.provision.outcome import ProvisionOutcome
from rigctl.provision.progress import ProvisionProgress, failure_message


def event(kind, host="", **data):
    return {"event": kind, "event_data": {"host": host, **data}}


def stats(**by_kind):
    return event("playbook_on_stats", processed={"rig1": 1, "rig2": 1}, **by_kind)


@pytest.fixture
def progress():
    return ProvisionProgress(["rig1", "rig2"], total=12)


def take(progress, *events):
    for one in events:
        progress.take(one)
    return progress.rig_outcomes()


def test_running_tasks_are_seen_per_rig(progress):
    take(progress, event("playbook_on_task_start"), event("runner_on_start", "rig1", role="cuda", task="Install"))
    first, second = progress.snapshot()
    assert (first.state, first.stage, first.task) == ("running", "cuda", "Install")
    assert second.state == "waiting"
    assert progress.announced == 1


def test_a_handler_is_said_to_be_one_and_counts_as_no_task(progress):
    take(
        progress,
        event("playbook_on_task_start", role="cpu_burn", task_uuid="a", is_conditional=False),
        event("runner_on_start", "rig1", role="cpu_burn", task="Install", task_uuid="a"),
        event("playbook_on_task_start", role="cuda", task_uuid="b", is_conditional=True),
        event("runner_on_start", "rig1", role="cuda", task="Read the paths", task_uuid="b"),
    )
    assert progress.snapshot()[0].stage == "cuda, handler"
    assert progress.announced == 1


def test_a_task_outside_of_roles_is_said_by_its_play(progress):
    take(progress, event("runner_on_start", "rig1", play="After the roles", task="Say so"))
    assert progress.snapshot()[0].stage == "After the roles"


def test_where_there_is_no_terminal_each_new_stage_is_a_line(progress):
    console = Console(file=StringIO(), width=200)
    with watch_provision(progress, console):
        for stage in ("base", "base", "cuda, handler"):
            take(progress, event("runner_on_start", "rig1", role=stage))
            until(lambda stage=stage: f"rig1: {stage} (" in console.file.getvalue())
    assert [line.partition(" (")[0] for line in console.file.getvalue().splitlines()] == [
        "rig1: base",
        "rig1: cuda, handler",
    ]


def until(seen, timeout_s=10):
    deadline = time.monotonic() + timeout_s
    while not seen():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_ok_and_changed(progress):
    first, second = take(
        progress,
        event("runner_on_ok", "rig2", res={"changed": True}),
        stats(ok={"rig1": 20, "rig2": 21}, changed={"rig2": 1}, skipped={"rig1": 3}),
    )
    assert (first.state, first.ok, first.changed, first.skipped) == ("ok", 20, 0, 3)
    assert (second.state, second.changed) == ("changed", 1)


def test_a_failure_carries_role_task_message_and_remedy(progress):
    _, second = take(
        progress,
        event("runner_on_failed", "rig2", role="nvidia_driver", task="Refuse", res={"msg": "515 became 535. Choose."}),
        stats(ok={"rig1": 1}, failures={"rig2": 1}),
    )
    assert (second.state, second.role, second.task) == ("failed", "nvidia_driver", "Refuse")
    assert second.message == "515 became 535. Choose."
    assert "provision again" in second.hint


def test_a_rescued_failure_is_none(progress):
    first, _ = take(
        progress,
        event("runner_on_failed", "rig1", role="cuda", task="Install", res={"msg": "no"}),
        stats(ok={"rig1": 2, "rig2": 2}, rescued={"rig1": 1}),
    )
    assert (first.state, first.message) == ("ok", "")


def test_an_ignored_failure_is_none(progress):
    take(progress, event("runner_on_failed", "rig1", ignore_errors=True, res={"msg": "no"}))
    assert progress.snapshot()[0].message == ""


def test_unreachable_is_named_with_its_remedy(progress):
    first, _ = take(
        progress,
        event("runner_on_unreachable", "rig1", task="Gathering Facts", res={"msg": "Connection refused"}),
        stats(dark={"rig1": 1}, ok={"rig2": 1}),
    )
    assert (first.state, first.message) == ("unreachable", "Connection refused")
    assert "rigctl doctor rig1" in first.hint


def test_a_rig_that_ansible_never_came_to_is_not_well(progress):
    first, _ = progress.rig_outcomes()
    assert first.state == "not_run"
    assert not first.complete


def test_exit_code(progress):
    rigs = take(progress, stats(ok={"rig1": 1, "rig2": 1}))
    usual = {"run_id": "r", "path": "p", "check": False, "seconds": 1.0}
    assert ProvisionOutcome(rigs=rigs, **usual).exit_code == ExitCode.OK
    failed = take(progress, stats(ok={"rig1": 1}, failures={"rig2": 1}))
    assert ProvisionOutcome(rigs=failed, **usual).exit_code == ExitCode.CHANGE_INCOMPLETE


@pytest.mark.parametrize(
    ("res", "message"),
    [
        ({"msg": "Task failed: Action failed: no card"}, "no card"),
        ({"msg": "non-zero return code", "stderr": "a\nb\n"}, "non-zero return code | a | b"),
        ({"msg": "x", "stderr": "\n".join(map(str, range(30)))}, "x | " + " | ".join(map(str, range(20, 30)))),
        ({"msg": "items", "results": [{"failed": True, "msg": "one"}, {"msg": "two"}]}, "one"),
        ({}, "the task failed without a word"),
    ],
)
def test_failure_message(res, message):
    assert failure_message(res) == message
