"""Slurm's words and states, and commands of the site's own, without a scheduler."""

from __future__ import annotations

import pytest

from rigctl.errors import CommandFailed
from rigctl.model.upgrade import CommandDrain, NoDrain, SlurmDrain
from rigctl.upgrade.drain import BACK_S, Slurm, drain_of, here
from rigctl.upgrade.port import StepFailed

REASON = "rigctl 2026-11-30T2300Z-7f3a: driver 535, cuda 12.2"
NODE = (
    "NodeName=rig1 Arch=x86_64 CoresPerSocket=1 CPUAlloc=0 CPUTot=2 OS=Linux 5.15.0-91-generic #1 SMP "
    "State={state} ThreadsPerCore=1 Partitions=all BootTime=2026-11-30T20:00:00{reason}"
)


class FakeSlurm:
    """Answers as `scontrol` and `squeue` of Slurm 22.05 do."""

    def __init__(self, state="IDLE", reason="", queue=""):
        self.state, self.reason, self.queue, self.asked = state, reason, queue, []

    def __call__(self, words):
        self.asked.append(words)
        if words[0] == "squeue":
            return 0, self.queue, ""
        if words[1] == "update":
            self.state = {"State=DRAIN": "IDLE+DRAIN", "State=RESUME": "IDLE"}[words[3]]
            self.reason = words[4].removeprefix("Reason=") if words[3] == "State=DRAIN" else ""
            return 0, "", ""
        stamp = f" Reason={self.reason} [root@2026-11-30T21:00:00]" if self.reason else ""
        return 0, NODE.format(state=self.state, reason=stamp), ""


def slurm(shell):
    return drain_of(SlurmDrain(kind="slurm"), "rig1", shell)


def test_a_node_is_drained_once_and_given_back():
    shell = FakeSlurm()
    assert slurm(shell).drain(REASON) == ""
    assert shell.reason == REASON
    assert slurm(shell).drain(REASON) == ""
    assert [words[1] for words in shell.asked].count("update") == 1
    assert slurm(shell).resume(REASON)
    assert (shell.state, shell.reason) == ("IDLE", "")


@pytest.mark.parametrize(
    "state", ["IDLE+DRAIN", "MIXED+DRAIN", "ALLOCATED+DRAIN", "DOWN+DRAIN", "IDLE+DRAIN*", "DRAINED"]
)
def test_a_drain_of_others_is_told_and_never_lifted(state):
    shell = FakeSlurm(state, "ada: cable")
    assert slurm(shell).drain(REASON) == "ada: cable"
    assert not slurm(shell).resume(REASON)
    assert all(words[1] != "update" for words in shell.asked)


@pytest.mark.parametrize("state", ["IDLE", "MIXED", "ALLOCATED", "IDLE+CLOUD", "MIXED-", "IDLE+MAINTENANCE"])
def test_other_states_are_no_drain(state):
    shell = FakeSlurm(state)
    assert not slurm(shell).resume(REASON)
    assert slurm(shell).drain(REASON) == ""
    assert shell.reason == REASON


@pytest.mark.parametrize(
    ("state", "word"),
    [
        ("DOWN", "down"),
        ("DOWN*", "down"),
        ("DOWN+NOT_RESPONDING", "down"),
        ("IDLE*", "not_responding"),
        ("IDLE+FAIL", "fail"),
        ("UNKNOWN", "unknown"),
        ("ERROR", "error"),
    ],
)
def test_a_node_that_slurm_would_take_back_by_itself_is_refused(state, word):
    shell = FakeSlurm(state, "ada: fan")
    for call in (slurm(shell).look, lambda: slurm(shell).drain(REASON)):
        with pytest.raises(StepFailed, match=f"Slurm has rig1 as {word}: ada: fan") as caught:
            call()
        assert "State=DRAIN" in caught.value.hint
    assert not slurm(shell).resume(REASON)
    assert all(words[1] != "update" for words in shell.asked)


@pytest.mark.parametrize(("state", "reason", "said"), [("IDLE", "", ""), ("IDLE+DRAIN", "ada: cable", "ada: cable")])
def test_a_look_changes_nothing(state, reason, said):
    shell = FakeSlurm(state, reason)
    assert slurm(shell).look() == said
    assert all(words[1] == "--oneliner" for words in shell.asked)


def test_words_of_people_in_reason_and_comment_are_no_states():
    reason = "ada: State=IDLE Reason=none [see 7]"
    stamp = f" Reason={reason} [root@2026-11-30T21:00:00] Comment=State=IDLE Reason={REASON} [x]"
    text = NODE.format(state="MIXED+DRAIN", reason=stamp)
    assert slurm(lambda _words: (0, text, "")).drain(REASON) == reason


class Late(FakeSlurm):
    """A node that Slurm has back only some time after it was told to resume it, or never."""

    def __init__(self, times):
        super().__init__("DOWN+DRAIN", REASON)
        self.times, self.waited = times, 0

    def __call__(self, words):
        if words[1] == "--oneliner" and self.state == "IDLE" and self.waited < self.times:
            return 0, NODE.format(state="IDLE+NOT_RESPONDING", reason=""), ""
        return super().__call__(words)

    def wait(self, seconds):
        self.waited += seconds


def test_a_node_is_given_back_once_slurm_has_it():
    shell = Late(3)
    assert Slurm("rig1", shell, shell.wait).resume(REASON)
    assert shell.waited == 3


def test_a_node_that_slurm_has_not_heard_of_since_its_restart_is_waited_for_before_it_is_given_back():
    shell = FakeSlurm("IDLE+DRAIN+NOT_RESPONDING", REASON)
    told = []

    def wait(_seconds):
        told.append(shell.state)
        if len(told) == 2:
            shell.state = "IDLE+DRAIN"

    assert Slurm("rig1", shell, wait).resume(REASON)
    assert told == ["IDLE+DRAIN+NOT_RESPONDING"] * 2


def test_a_node_that_slurm_does_not_hear_of_stays_drained():
    shell = FakeSlurm("IDLE+DRAIN+NOT_RESPONDING", REASON)
    with pytest.raises(StepFailed, match="does not have rig1 back: DRAIN"):
        Slurm("rig1", shell, lambda _seconds: None).resume(REASON)
    assert shell.state == "IDLE+DRAIN+NOT_RESPONDING"


def test_a_node_that_does_not_come_back_is_not_given_back():
    shell = Late(10_000)
    with pytest.raises(StepFailed, match=r"does not have rig1 back: IDLE\+NOT_RESPONDING, no reason given") as caught:
        Slurm("rig1", shell, shell.wait).resume(REASON)
    assert "slurmd" in caught.value.hint
    assert shell.waited == BACK_S


def test_a_reason_of_another_run_is_not_ours():
    shell = FakeSlurm("IDLE+DRAIN", "rigctl 2026-11-29T2300Z-1111: driver 535")
    assert slurm(shell).drain(REASON).startswith("rigctl 2026-11-29")
    assert not slurm(shell).resume(REASON)


def test_jobs_are_told_in_words():
    shell = FakeSlurm(queue="7|ada|RUNNING|1:02:03\n8|bob|COMPLETING|0:01\n")
    assert slurm(shell).jobs() == ("job 7 of ada (running, 1:02:03)", "job 8 of bob (completing, 0:01)")
    assert slurm(FakeSlurm()).jobs() == ()


@pytest.mark.parametrize("call", ["drain", "resume"])
def test_a_scheduler_that_does_not_answer_is_an_error(call):
    silent = slurm(
        lambda _words: (1, "", "slurm_load_node error: Unable to contact slurm controller (connect failure)")
    )
    with pytest.raises(CommandFailed, match="Unable to contact slurm controller"):
        getattr(silent, call)(REASON)
    with pytest.raises(CommandFailed, match="Unable to contact"):
        silent.jobs()


def test_an_answer_without_a_state_is_no_answer():
    with pytest.raises(Exception, match="says nothing of the state"):
        slurm(lambda _words: (0, "NodeName=rig1", "")).drain(REASON)


def test_a_drain_that_did_not_take_is_an_error():
    shell = FakeSlurm()

    def deaf(words):
        return (0, "", "") if words[1] == "update" else shell(words)

    with pytest.raises(Exception, match="did not drain"):
        slurm(deaf).drain(REASON)


def test_commands_of_the_site_are_told_the_rig(tmp_path):
    log = tmp_path / "log"
    script = f'echo "$0 $1" >> {log}; if [ "$0" = jobs ]; then echo "training of ada"; fi'
    words = {name: ("sh", "-c", script, name) for name in ("drain", "resume", "jobs")}
    pair = drain_of(CommandDrain(kind="command", **words), "rig1", here)
    assert (pair.drain(REASON), pair.jobs(), pair.resume(REASON)) == ("", ("training of ada",), True)
    assert log.read_text(encoding="utf-8").splitlines() == ["drain rig1", "jobs rig1", "resume rig1"]


def test_a_command_that_fails_or_is_missing_is_an_error():
    bad = CommandDrain(
        kind="command", drain=("sh", "-c", "echo no such queue >&2; exit 3"), resume=("not-there-at-all",)
    )
    with pytest.raises(CommandFailed, match="no such queue"):
        drain_of(bad, "rig1", here).drain(REASON)
    with pytest.raises(CommandFailed, match="not installed on this machine"):
        drain_of(bad, "rig1", here).resume(REASON)


def test_commands_that_are_missing_are_met_before_anything_is_done(tmp_path):
    script = f"touch {tmp_path / 'called'}"
    good = ("sh", "-c", script)
    for bad in (
        CommandDrain(kind="command", drain=("not-there-at-all",), resume=good),
        CommandDrain(kind="command", drain=good, resume=("not-there-at-all",)),
    ):
        with pytest.raises(StepFailed, match="not-there-at-all is not there on this machine"):
            drain_of(bad, "rig1", here).look()
    drain_of(CommandDrain(kind="command", drain=good, resume=good), "rig1", here).look()
    assert not (tmp_path / "called").exists()
    silent = CommandDrain(kind="command", drain=good, resume=good, jobs=("sh", "-c", "echo no answer >&2; exit 1"))
    with pytest.raises(CommandFailed, match="no answer"):
        drain_of(silent, "rig1", here).look()


def test_without_a_scheduler_there_is_nothing_to_wait_for():
    none = drain_of(NoDrain(), "rig1", here)
    assert (none.look(), none.drain(REASON), none.jobs(), none.resume(REASON)) == ("", "", (), False)
