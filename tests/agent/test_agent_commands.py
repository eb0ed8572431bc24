"""Start, poll, stop and ack with systemd put in by hand: what is refused, and what is said of a unit."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from rigctl.agent import commands, main, nvml, unit
from rigctl.agent.errors import AgentError, NvmlUnavailable
from rigctl.agent.kernel import KernelFollower, parse_entry, read_kernel
from rigctl.agent.places import Places

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


class Systemd:
    """Answers to systemctl and systemd-run, and what was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []
        self.units = ""
        self.show = "ActiveState=inactive\nResult=success\nStatusText=\nExecMainStatus=0\n"
        self.start_status = 0

    def __call__(self, *command: str) -> subprocess.CompletedProcess[str]:
        self.asked.append(command)
        if command[0] == "systemd-run":
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
    for entry in ("NotifyAccess=main", "WatchdogSec=15", "WatchdogSignal=SIGKILL", "KillMode=mixed", "Restart=no"):
        assert entry in words
    assert f"RuntimeMaxSec={reply['runtime_max_s']:.0f}" in words
    assert words[-6:][:2] == (sys.executable, "-I")
    assert words[-3:] == ("guard", "--run", "r1")
    assert places.plan("r1").exists()
    assert float(places.heartbeat("r1").read_text()) <= time.monotonic()
    assert (places.spool("r1").stat().st_mode & 0o777) == 0o700


def test_start_refuses_while_a_guard_runs_and_names_it(systemd: Systemd, places: Places) -> None:
    systemd.units = "rigctl-2026-11-30T2300Z-7f3a.service loaded active running rigctl run\n"
    with pytest.raises(AgentError, match="2026-11-30T2300Z-7f3a is under way"):
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
    monkeypatch.setattr(nvml, "compute_processes", lambda _cards: ["77 python3 on slot1"])
    with pytest.raises(AgentError, match="77 python3 on slot1") as refused:
        start(places)
    assert "nothing was started" in refused.value.hint
    assert not places.spool("r1").exists()


def test_start_refuses_a_run_id_that_is_there_already(systemd: Systemd, places: Places) -> None:
    start(places)
    with pytest.raises(AgentError, match="on this rig already"):
        start(places)


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
    assert main.main(["kernel", "--since-wall", "0"]) == 1
    told = capsys.readouterr()
    assert "unforeseen" in json.loads(told.out)["error"]
    assert "Traceback" in told.err


JOURNAL = """#!/bin/sh
echo '{"__REALTIME_TIMESTAMP":"1700000000000000","MESSAGE":"NVRM: Xid (PCI:0000:02:00): 79, pid=1, name=x"}'
echo '{"__REALTIME_TIMESTAMP":"1700000001500000","MESSAGE":[104,105,255]}'
echo '{"__REALTIME_TIMESTAMP":"1700000002000000","MESSAGE":null}'
"""


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "bin" / "journalctl"
    program.parent.mkdir()
    program.write_text(JOURNAL)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    return program


def test_kernel_messages_with_bytes_and_nothing_in_them(journal: Path) -> None:
    messages, reason = read_kernel(1700000001.0)
    assert reason is None
    assert [message["t_wall_s"] for message in messages] == [1700000001.5, 1700000002.0]
    assert messages[0]["message"] == "hi\ufffd"
    assert messages[1]["message"] == ""


def test_an_unreadable_kernel_log_is_never_an_empty_one(journal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal.write_text("#!/bin/sh\necho 'No journal files were opened due to insufficient permissions.' >&2\nexit 1\n")
    told = commands.kernel(0.0)
    assert (told["kernel"], told["kernel_read"]) == ([], False)
    assert "permissions" in told["kernel_error"]
    journal.write_text("#!/bin/sh\nexit 0\n")
    assert commands.kernel(0.0)["kernel_error"] == "the journal holds no kernel message of this boot"
    journal.write_text("#!/bin/sh\necho garbage\n")
    assert commands.kernel(0.0)["kernel_read"] is False
    monkeypatch.setenv("PATH", "/nowhere")
    assert "journalctl" in commands.kernel(0.0)["kernel_error"]


def test_the_follower_passes_each_message_on_once(journal: Path) -> None:
    got: list[dict[str, Any]] = []
    follower = KernelFollower(0.0, got.append)
    follower.read_new()
    follower.read_new()
    assert len(got) == 3
    follower.start()
    assert follower.end(timeout_s=5)
    assert len(got) == 3


def test_an_entry_is_read_exactly() -> None:
    line = b'{"__REALTIME_TIMESTAMP":"1700000000123456","MESSAGE":"x"}'
    assert parse_entry(line) == {"t_wall_s": 1700000000.123456, "message": "x"}
