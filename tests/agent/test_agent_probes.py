"""Questions that hang are ended, or left behind; the agent answers in time whatever the driver does."""

from __future__ import annotations

import os
import signal
import sys
import time

import pytest

from rigctl.agent import commands, facts, probes
from rigctl.agent.errors import AgentError, TooSlow

SLEEPS = (sys.executable, "-c", "import time; time.sleep(60)")


def resists(pid, _signal):
    """As if the process waited in the kernel: no signal reaches it."""


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(probes, "KILLED_S", 0.3)


def hanging():
    time.sleep(60)
    return {}


def test_a_program_that_ends_tells_its_time_and_status():
    probe = probes.ask((sys.executable, "-c", "print('no'); raise SystemExit(9)"), 20)
    assert (probe.exit_status, probe.stuck, probe.said) == (9, None, "no")
    assert 0 < probe.seconds < 20


def test_a_program_that_is_not_there_is_no_silence():
    probe = probes.ask(("no-such-nvidia-smi", "topo", "-m"), 5)
    assert probe.exit_status == 127
    assert "no-such-nvidia-smi" in probe.said


def test_a_program_that_hangs_is_ended(quick):
    begun = time.monotonic()
    probe = probes.ask(SLEEPS, 0.2)
    assert time.monotonic() - begun < 5
    assert (probe.exit_status, probe.stuck) == (None, None)
    assert "ended after" in probe.said


def test_a_program_that_no_signal_ends_is_stuck_and_left_behind(quick):
    left = []

    def note(pid, _signal):
        left.append(pid)

    probe = probes.ask(SLEEPS, 0.2, kill=note)
    try:
        assert probe.exit_status is None
        assert probe.stuck is not None
        assert f"process {left[0]} is in state S" in probe.stuck
        assert "resists SIGKILL" in probe.stuck
    finally:
        os.killpg(left[0], signal.SIGKILL)
        os.waitpid(left[0], 0)


def test_after_one_that_hangs_nothing_more_is_asked(quick, monkeypatch):
    monkeypatch.setattr(probes, "QUESTIONS", (SLEEPS, (sys.executable, "-c", "pass")))
    told = probes.ask_all(0.2)["probes"]
    assert len(told) == 1
    monkeypatch.setattr(probes, "QUESTIONS", ((sys.executable, "-c", "pass"),) * 2)
    assert [one["exit_status"] for one in probes.ask_all(20)["probes"]] == [0, 0]


def test_everything_that_the_agent_asks_ends_within_a_minute():
    assert probes.IDENTITY_S + probes.KILLED_S < 60
    assert len(probes.QUESTIONS) * (probes.PROBE_S + probes.KILLED_S) < 60


def test_a_child_answers_for_its_parent():
    answer, probe = probes.bounded("NVML", lambda: {"pid": os.getpid()}, 20)
    assert answer is not None
    assert answer["pid"] != os.getpid()
    assert (probe.exit_status, probe.stuck) == (0, None)


def test_a_child_that_hangs_is_ended_and_one_that_resists_is_stuck(quick):
    answer, probe = probes.bounded("NVML", hanging, 0.2)
    assert (answer, probe.exit_status, probe.stuck) == (None, None, None)
    left = []

    def note(pid, _signal):
        left.append(pid)

    answer, probe = probes.bounded("NVML", hanging, 0.2, kill=note)
    try:
        assert answer is None
        assert probe.stuck is not None
        assert "resists SIGKILL" in probe.stuck
    finally:
        os.kill(left[0], signal.SIGKILL)
        os.waitpid(left[0], 0)


def failing(error):
    def read():
        raise error

    return read


def test_what_a_child_cannot_do_is_told_as_if_it_were_done_here():
    with pytest.raises(AgentError, match="no cards") as caught:
        probes.bounded("x", failing(AgentError("no cards", "look")), 20)
    assert caught.value.hint == "look"
    with pytest.raises(TooSlow):
        probes.bounded("x", failing(TooSlow("later", "")), 20)
    with pytest.raises(AgentError, match="ZeroDivisionError"):
        probes.bounded("x", failing(ZeroDivisionError()), 20)
    with pytest.raises(AgentError, match="broke off"):
        probes.bounded("x", lambda: os._exit(3), 20)


def test_facts_say_that_the_driver_does_not_answer_and_all_else(quick, monkeypatch):
    monkeypatch.setattr(facts, "_driver_and_cards", hanging)
    real = probes.bounded
    monkeypatch.setattr(facts, "bounded", lambda name, read: real(name, read, 0.2))
    told = commands.facts("/opt/gpuburn", "/opt/torch")
    assert told["gpus"] == []
    assert told["driver"]["nvml_error"] == "no answer within 0.2 s"
    assert told["probes"][0]["exit_status"] is None
    assert told["hostname"]
    begun = time.monotonic()
    looked = commands.probe("/opt/gpuburn", "/opt/torch")
    assert looked["sample"] is None
    assert looked["facts"]["probes"][0]["exit_status"] is None
    assert time.monotonic() - begun < 15


def test_where_a_stuck_process_waits_is_read_from_proc(tmp_path):
    folder = tmp_path / "4711"
    folder.mkdir()
    (folder / "stat").write_text("4711 (nvidia-smi (x)) D 1 4711")
    (folder / "wchan").write_text("os_acquire_rwlock_write")
    assert probes.waits_in(4711, tmp_path) == (
        "process 4711 is in state D in os_acquire_rwlock_write and resists SIGKILL"
    )
    assert probes.waits_in(4712, tmp_path) == "process 4712 resists SIGKILL"
