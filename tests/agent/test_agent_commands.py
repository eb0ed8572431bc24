"""Start, poll, stop and ack with systemd put in by hand: what is refused, and what is said of a unit."""

from __future__ import annotations

import base64
import io
import json
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from rigctl.agent import busy, claim, commands, evict, lock, main, nvml, unit
from rigctl.agent.clock import boot_id
from rigctl.agent.errors import AgentError, NvmlUnavailable, TooSlow
from rigctl.agent.kernel import Entry, KernelFollower, parse_entry, read_kernel
from rigctl.agent.places import Places
from rigctl.measure.carry import START_TIMEOUT_S, STOP_TIMEOUT_S
from rigctl.measure.session import CALL_TIMEOUT_S

if TYPE_CHECKING:
    from pathlib import Path

PLAN: dict[str, Any] = {
    "run_id": "r1",
    "sample_hz": 5,
    "controller_lost_s": 60,
    "max_gpu_temp_c": 80,
    "stale_sample_s": 5,
    "expected_gpus": [],
    "gpu_burn_dir": "/opt/x",
    "torch_venv": "/opt/y",
    "steps": [{"name": "idle", "seconds": 3, "loads": []}],
}

BURN = [{"name": "gpu_burn", "seconds": 3, "loads": ["gpu"]}]


class Systemd:
    """Answers to systemctl and systemd-run, and what was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []
        self.units = ""
        self.show = "ActiveState=inactive\nResult=success\nStatusText=\nExecMainStatus=0\n"
        self.start_status = 0
        self.start_s = 0.0

    def __call__(self, *command: str, limit_s: float = 0.0) -> subprocess.CompletedProcess[str]:
        self.asked.append(command)
        if command[0] == "systemd-run":
            time.sleep(self.start_s)
            self.units = f"{command[command.index('--unit') + 1]} loaded active running rigctl run\n"
            return subprocess.CompletedProcess(command, self.start_status, "", "Job failed.\n")
        said = {"list-units": self.units, "show": self.show}.get(command[1], "")
        return subprocess.CompletedProcess(command, 0, said, "")

    def words(self, program: str) -> tuple[str, ...]:
        (found,) = [command for command in self.asked if command[0] == program]
        return found


@pytest.fixture
def systemd(monkeypatch: pytest.MonkeyPatch) -> Systemd:
    fake = Systemd()
    monkeypatch.setattr(unit, "_systemd", fake)
    monkeypatch.setattr(unit, "processes", lambda _run_id=None: [])

    def no_cards() -> None:
        raise NvmlUnavailable("NVML Shared Library Not Found")

    monkeypatch.setattr(nvml, "Nvml", no_cards)
    monkeypatch.setattr(busy, "LOOK_S", 0.01)
    monkeypatch.setattr(busy, "logged_in", list)
    return fake


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path / "spool", tmp_path / "run")


def start(places: Places, **changed: Any) -> dict[str, Any]:
    return commands.start(json.dumps(PLAN | changed).encode(), places)


def test_start_sets_the_unit_up_so_that_nothing_outlives_it(systemd: Systemd, places: Places) -> None:
    reply = start(places)
    words = systemd.words("systemd-run")
    assert reply["unit"] == "rigctl-r1.service"
    assert "--service-type=notify" in words
    for entry in (
        "NotifyAccess=main",
        f"WatchdogSec={unit.WATCHDOG_S}",
        "WatchdogSignal=SIGKILL",
        "KillMode=mixed",
        "Restart=no",
    ):
        assert entry in words
    assert f"RuntimeMaxSec={reply['runtime_max_s']:.0f}" in words
    assert unit.WATCHDOG_S + 1 <= 5, "a burn outlives its guard by 5 s at most"
    agent = words[-4]
    assert f'ExecStopPost="{sys.executable}" "-I" "{agent}" "restore" "--run" "r1"' in words
    assert words[-6:][:2] == (sys.executable, "-I")
    assert words[-3:] == ("guard", "--run", "r1")
    assert places.plan("r1").exists()
    assert float(places.heartbeat("r1").read_text()) <= time.monotonic()
    assert (places.spool("r1").stat().st_mode & 0o777) == 0o700


def test_start_refuses_while_a_guard_runs_and_names_it(systemd: Systemd, places: Places) -> None:
    systemd.units = "rigctl-2026-11-30T2300Z-7f3a.service loaded active running rigctl run\n"
    with pytest.raises(AgentError, match="run 2026-11-30T2300Z-7f3a is under way on this rig"):
        start(places)
    systemd.units = "rigctl-old.service loaded failed failed rigctl run\n"
    assert start(places)["run_id"] == "r1"


def test_start_refuses_when_a_run_left_processes(
    systemd: Systemd, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unit, "processes", lambda _run_id=None: ["4242 gpu_burn"])
    with pytest.raises(AgentError, match="4242 gpu_burn"):
        start(places)


def test_start_refuses_when_the_cards_are_in_use(
    systemd: Systemd, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = type("Opened", (), {"cards": (), "close": lambda _self: None})
    monkeypatch.setattr(nvml, "Nvml", opened)
    monkeypatch.setattr(nvml, "processes_on", lambda _cards: [(1, 4_000_001), (2, 4_000_001)])
    with pytest.raises(AgentError, match=r"computes on slot1 and slot2: unknown \(process 4000001\)") as refused:
        start(places, steps=BURN)
    assert "nothing was started" in refused.value.hint
    assert not places.spool("r1").exists()


def test_start_refuses_a_run_id_that_is_there_already(systemd: Systemd, places: Places) -> None:
    start(places)
    systemd.units = ""
    with pytest.raises(AgentError, match="on this rig already"):
        start(places, max_gpu_temp_c=90)


def test_two_starts_in_the_same_instant_do_not_both_pass(systemd: Systemd, places: Places) -> None:
    systemd.start_s = 0.3
    begin = threading.Barrier(2)

    def attempt(run_id: str) -> str:
        begin.wait(5)
        try:
            return f"started {start(places, run_id=run_id)['run_id']}"
        except AgentError as error:
            return error.message

    with ThreadPoolExecutor(2) as pool:
        told = sorted(pool.map(attempt, ("a", "b")))
    winner = told[1][-1]
    assert told[0].startswith(f"run {winner} is under way on this rig since ")
    assert told[1] == f"started {winner}"
    assert systemd.words("systemd-run")


def test_a_start_that_hangs_is_named_to_the_next_one(
    systemd: Systemd, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "LOCK_S", 0.1)
    with lock.rig_held("slow", places), pytest.raises(AgentError, match="run slow is being started on this rig"):
        start(places)
    assert start(places)["run_id"] == "r1"


def test_a_stop_waits_for_a_start_whose_answer_was_cut(
    systemd: Systemd, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_it = threading.Event()

    def slow(*_args: object) -> None:
        at_it.set()
        time.sleep(0.3)
        systemd.show = "ActiveState=active\nResult=success\n"

    monkeypatch.setattr(unit, "start", slow)
    with ThreadPoolExecutor(1) as pool:
        begun = pool.submit(start, places)
        assert at_it.wait(5)
        assert commands.stop("r1", "asked", places)["was_active"] is True
        assert begun.result(5)["run_id"] == "r1"


def test_the_same_start_again_says_that_this_run_was_started(systemd: Systemd, places: Places) -> None:
    assert start(places)["already_started"] is False
    places.heartbeat("r1").write_text("0")
    systemd.show = "ActiveState=active\nResult=success\n"
    assert start(places)["already_started"] is True
    assert float(places.heartbeat("r1").read_text()) > 0
    # Also when it has ended meanwhile: its readings wait for the controller.
    systemd.show = "ActiveState=inactive\nResult=success\n"
    (places.spool("r1") / "guard.log").touch()
    assert start(places)["already_started"] is True
    assert systemd.words("systemd-run")


def test_what_a_start_left_behind_that_was_broken_off_is_no_started_run(systemd: Systemd, places: Places) -> None:
    places.spool("r1").mkdir(parents=True)
    assert start(places)["already_started"] is False
    assert systemd.words("systemd-run")


def test_a_systemd_that_answers_too_late_may_be_asked_again_and_keeps_the_spool(
    systemd: Systemd, places: Places, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def late(*_args: object) -> None:
        raise TooSlow("systemd-run did not answer within 40 s")

    monkeypatch.setattr(unit, "start", late)
    monkeypatch.setattr(sys, "stdin", type("In", (), {"buffer": io.BytesIO(json.dumps(PLAN).encode())}))
    assert main.main(["start"], places) == 1
    assert json.loads(capsys.readouterr().out)["again"] is True
    # The guard may start yet, and needs its plan.
    assert places.plan("r1").exists()


def test_a_silent_systemd_is_told_in_the_agents_own_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "systemctl"
    program.write_text("#!/bin/sh\nexec sleep 20\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(TooSlow, match=r"systemctl did not answer within 0\.2 s"):
        unit._systemd("systemctl", "show", limit_s=0.2)


def test_all_that_a_command_asks_of_systemd_takes_less_than_its_controller_grants() -> None:
    question, order = unit.QUESTION_S, unit.ORDER_S
    assert max(unit.START_S, unit.STOP_S) < order
    assert question < CALL_TIMEOUT_S  # poll: the unit's state
    assert 2 * question < CALL_TIMEOUT_S  # ack: state, forget
    # own state, running runs, their state, forget; stop another run, start
    asked = lock.LOCK_S + 4 * question + 2 * order
    evicted = evict.WARNING_S + evict.SERVICE_S + evict.TERM_S + evict.GONE_S + claim.FREE_S + 6 * busy.LOOK_S
    assert asked + evicted < START_TIMEOUT_S
    assert lock.LOCK_S + 2 * question + order < STOP_TIMEOUT_S  # state before and after; stop


def test_a_guard_that_does_not_start_leaves_no_spool(systemd: Systemd, places: Places) -> None:
    systemd.start_status = 1
    with pytest.raises(AgentError, match="did not start: Job failed") as refused:
        start(places)
    assert "journalctl -u rigctl-r1.service" in refused.value.hint
    assert not places.spool("r1").exists()


def test_poll_is_a_word_from_the_controller_and_brings_what_is_new(systemd: Systemd, places: Places) -> None:
    start(places)
    spool = places.spool("r1")
    (spool / "events.jsonl").write_bytes(b'{"seq":0}\n{"seq":1}\n')
    (spool / "gpu_burn.log").write_bytes(b"\r10.0%")
    places.heartbeat("r1").write_text("0")
    systemd.show = "ActiveState=deactivating\nResult=success\nStatusText=step gpu_burn\nExecMainStatus=0\n"
    reply = commands.poll("r1", {"events.jsonl": 10}, places)
    # A unit on its way down still holds the rig.
    assert reply["unit"] == {"active": "active", "result": "success", "status": "step gpu_burn", "exit_status": "0"}
    assert base64.b64decode(reply["files"]["events.jsonl"]["data"]) == b'{"seq":1}\n'
    assert reply["files"]["events.jsonl"]["offset"] == 10
    assert base64.b64decode(reply["files"]["gpu_burn.log"]["data"]) == b"\r10.0%"
    assert set(reply["files"]) == {"events.jsonl", "gpu_burn.log"}
    assert float(places.heartbeat("r1").read_text()) > 0


def test_poll_of_a_run_that_was_never_here(systemd: Systemd, places: Places) -> None:
    with pytest.raises(AgentError, match="no readings of run r9"):
        commands.poll("r9", {}, places)
    assert not places.heartbeat("r9").exists()


def test_ack_refuses_while_the_run_is_under_way_and_then_removes_everything(systemd: Systemd, places: Places) -> None:
    start(places)
    running = "ActiveState=active\nResult=success\n"
    ended, systemd.show = systemd.show, running
    with pytest.raises(AgentError, match="still under way"):
        commands.ack("r1", places)
    systemd.show = ended
    assert commands.ack("r1", places) == {"removed": True}
    assert not places.spool("r1").exists()
    assert not places.heartbeat("r1").exists()
    assert commands.ack("r1", places) == {"removed": False}


def test_stop_leaves_the_reason_for_the_guard_and_may_be_asked_twice(systemd: Systemd, places: Places) -> None:
    systemd.show = "ActiveState=active\nResult=success\n"
    assert commands.stop("r1", "the person pressed Ctrl-C", places)["was_active"] is True
    assert places.stop_reason("r1").read_text() == "the person pressed Ctrl-C\n"
    assert ("systemctl", "stop", "rigctl-r1.service") in systemd.asked
    systemd.show = "ActiveState=inactive\nResult=success\n"
    again = commands.stop("r1", "again", places)
    assert (again["was_active"], again["left_running"]) == (False, [])


@pytest.mark.parametrize("line", ["0::/system.slice/rigctl-r1.service\n", "9:name=systemd:/a/rigctl-r1.service/x\n"])
def test_processes_of_a_unit_in_both_kinds_of_cgroups(tmp_path: Path, line: str) -> None:
    for pid, cgroup in (("10", line), ("11", "0::/system.slice/rigctl-r10.service\n"), ("12", "0::/user.slice\n")):
        (tmp_path / pid).mkdir()
        (tmp_path / pid / "cgroup").write_text(cgroup)
        (tmp_path / pid / "comm").write_text("gpu_burn\n")
    assert unit.processes("r1", tmp_path) == ["10 gpu_burn"]
    assert unit.processes(None, tmp_path) == ["10 gpu_burn", "11 gpu_burn"]


def test_a_fault_of_the_agent_itself_is_told_and_not_swallowed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_args: object) -> dict[str, Any]:
        raise RuntimeError("unforeseen")

    monkeypatch.setattr(commands, "kernel", broken)
    assert main.main(["kernel", "--since-mono", "0", "--boot-id", "b"]) == 1
    told = capsys.readouterr()
    assert "unforeseen" in json.loads(told.out)["error"]
    assert "Traceback" in told.err


ENTRIES = (
    (
        '{"__CURSOR":"c1","__MONOTONIC_TIMESTAMP":"10000000","__REALTIME_TIMESTAMP":"1700000000000000",'
        '"MESSAGE":"NVRM: Xid (PCI:0000:02:00): 79, pid=1, name=x"}'
    ),
    (
        '{"__CURSOR":"c2","__MONOTONIC_TIMESTAMP":"11500000","__REALTIME_TIMESTAMP":"1700000001500000",'
        '"MESSAGE":[104,105,255]}'
    ),
    # The wall clock was stepped back by an hour meanwhile.
    '{"__CURSOR":"c3","__MONOTONIC_TIMESTAMP":"12000000","__REALTIME_TIMESTAMP":"1699996402000000","MESSAGE":null}',
)
JOURNAL = (
    'case "$*" in *--since*) exit 1;; *"--after-cursor c3"*) exit 0;; esac\n'
    + "\n".join(f"echo '{entry}'" for entry in ENTRIES)
    + "\n"
)


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "bin" / "journalctl"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n" + JOURNAL)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    return program


def test_kernel_messages_with_bytes_and_nothing_in_them(journal: Path) -> None:
    messages, reason = read_kernel(11.0)
    assert reason is None
    assert [message["t_wall_s"] for message in messages] == [1700000001.5, 1699996402.0]
    assert messages[0]["message"] == "hi\ufffd"
    assert messages[1]["message"] == ""


def test_an_unreadable_kernel_log_is_never_an_empty_one(journal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal.write_text("#!/bin/sh\necho 'No journal files were opened due to insufficient permissions.' >&2\nexit 1\n")
    told = commands.kernel(0.0, "b")
    assert (told["kernel"], told["kernel_read"]) == ([], False)
    assert "permissions" in told["kernel_error"]
    journal.write_text("#!/bin/sh\nexit 0\n")
    assert commands.kernel(0.0, "b")["kernel_error"] == "the journal holds no kernel message of this boot"
    journal.write_text("#!/bin/sh\necho garbage\n")
    assert commands.kernel(0.0, "b")["kernel_read"] is False
    monkeypatch.setenv("PATH", "/nowhere")
    assert "journalctl" in commands.kernel(0.0, "b")["kernel_error"]


def test_the_follower_passes_each_message_on_once(journal: Path) -> None:
    got: list[dict[str, Any]] = []
    follower = KernelFollower(0.0, got.append)
    follower.read_new()
    follower.read_new()
    assert len(got) == 3
    follower.start()
    assert follower.end(timeout_s=5)
    assert len(got) == 3


def test_what_the_journal_repeats_behind_a_cursor_is_passed_on_once(journal: Path) -> None:
    got: list[dict[str, Any]] = []
    follower = KernelFollower(11.0, got.append)
    follower.read_new()
    journal.write_text("#!/bin/sh\n" + JOURNAL.replace('*"--after-cursor c3"*) exit 0;;', ""))
    follower.read_new()
    assert [message["t_wall_s"] for message in got] == [1700000001.5, 1699996402.0]


def test_an_entry_is_read_exactly() -> None:
    line = b'{"__CURSOR":"c","__MONOTONIC_TIMESTAMP":"7000001","__REALTIME_TIMESTAMP":"1700000000123456","MESSAGE":"x"}'
    assert parse_entry(line) == Entry(7.000001, "c", {"t_wall_s": 1700000000.123456, "message": "x"})


def test_a_clock_that_is_stepped_back_hides_no_message(journal: Path) -> None:
    got: list[dict[str, Any]] = []
    follower = KernelFollower(11.0, got.append)
    journal.write_text("#!/bin/sh\n" + JOURNAL.replace(f"echo '{ENTRIES[2]}'\n", ""))
    follower.read_new()
    journal.write_text("#!/bin/sh\n" + f"""case "$*" in *"--after-cursor c2"*) echo '{ENTRIES[2]}';; esac\n""")
    follower.read_new()
    assert [message["t_wall_s"] for message in got] == [1700000001.5, 1699996402.0]


def test_a_moment_of_another_boot_hides_nothing_of_this_one(journal: Path) -> None:
    assert len(commands.kernel(11.0, boot_id())["kernel"]) == 2
    assert len(commands.kernel(11.0, "another")["kernel"]) == 3
