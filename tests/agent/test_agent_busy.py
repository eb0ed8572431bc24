"""Who uses a rig, in words; and how they are made to leave."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rigctl.agent import busy, evict, nvml, people
from rigctl.agent.busy import LOGIN, PROCESSOR, User, heavy, parse_who
from rigctl.agent.errors import AgentError, NvmlUnavailable

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            "alice    pts/0        2026-11-30 12:01   .          4242 (192.0.2.7)",
            "alice is logged in on pts/0 from 192.0.2.7 since 2026-11-30 12:01 (active now)",
        ),
        (
            "bob      tty1         2026-11-28 09:15 02:13        1077",
            "bob is logged in on tty1 since 2026-11-28 09:15 (idle for 02:13 h)",
        ),
        (
            "carol    :0           2026-11-20 08:00   old        900 (:0)",
            "carol is logged in on :0 from :0 since 2026-11-20 08:00 (idle for more than a day)",
        ),
        (
            "dora     pts/3        Nov 30 12:01   ?        77 (lab)",
            "dora is logged in on pts/3 from lab since Nov 30 12:01 (idle time unknown)",
        ),
    ],
)
def test_who_is_logged_in(line: str, words: str) -> None:
    user = parse_who(line)
    assert user is not None
    assert (user.kind, user.words) == (LOGIN, words)
    assert user.pid in {4242, 1077, 900, 77}


def test_an_unknown_form_of_who_is_still_somebody() -> None:
    user = parse_who("eve at the console")
    assert user is not None
    assert user.words == "somebody is logged in: eve at the console"
    assert parse_who("  ") is None


def test_who_that_is_missing_is_an_error_and_no_empty_rig(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(AgentError, match="who is logged in cannot be told"):
        busy.logged_in()


def process(proc: Path, pid: int, command: str, service: str | None = None, **numbers: int) -> None:
    ticks, parent = numbers.get("ticks", 0), numbers.get("parent", 1)
    folder = proc / str(pid)
    folder.mkdir()
    fields = ["S", str(parent), "1", "1", "0", "-1", "0", "0", "0", "0", "0", str(ticks), "0"]
    (folder / "stat").write_text(f"{pid} (a b) c) {' '.join(fields)} {' '.join(['0'] * 6)} 100 0\n")
    (folder / "cmdline").write_bytes(command.replace(" ", "\0").encode() + b"\0")
    cgroup = f"/system.slice/{service}" if service else "/user.slice/user-1000.slice/session-2.scope"
    (folder / "cgroup").write_text(f"0::{cgroup}\n")


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    (tmp_path / "uptime").write_text("5000.00 1.00\n")
    return tmp_path


def test_a_program_is_heavy_when_it_was_busy_in_both_looks(proc: Path) -> None:
    process(proc, 10, "python3 train.py --epochs 90")
    process(proc, 11, "apt-get update")
    process(proc, 12, "miner", service="miner.service")
    looks = ({10: 5.0, 11: 1.0, 12: 0.0, 13: 0.0}, {10: 8.0, 11: 2.0, 12: 0.79, 13: 9.0}, {10: 11.5, 11: 2.1, 12: 1.6})
    (found,) = heavy(looks, 1.0, set(), proc)
    owner = people.user_name(os.getuid())
    assert found.words.startswith(f"{owner} keeps 3.0 cores busy: python3 train.py --epochs 90 (process 10, since ")
    assert (found.kind, found.pid, found.service) == (PROCESSOR, 10, None)
    at_the_border = ({12: 0.0}, {12: 0.8}, {12: 1.6})
    (miner,) = heavy(at_the_border, 1.0, set(), proc)
    assert miner.service == "miner.service"
    assert heavy(at_the_border, 1.0, {12}, proc) == [], "its own processes are nobody's else"


def test_processor_time_of_kernel_threads_is_nobodys(proc: Path) -> None:
    process(proc, 2, "kthreadd", ticks=500)
    process(proc, 30, "kworker", ticks=500, parent=2)
    process(proc, 40, "x", ticks=250)
    assert busy.cpu_seconds(proc) == {40: 250 / os.sysconf("SC_CLK_TCK")}


@pytest.mark.parametrize(
    ("service", "stopped"),
    [
        ("miner.service", True),
        ("ssh.service", False),
        ("cron.service", False),
        ("user@1000.service", False),
        (None, False),
    ],
)
def test_a_service_that_carries_its_users_programs_is_not_to_blame(
    proc: Path, service: str | None, stopped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    process(proc, 10, "train", service=service)
    opened = type("Opened", (), {"cards": (), "close": lambda _self: None})
    monkeypatch.setattr(nvml, "Nvml", opened)
    monkeypatch.setattr(nvml, "processes_on", lambda _cards: [(2, 10), (1, 10)])
    (user,) = busy.on_cards(proc)
    assert "computes on slot1 and slot2: train (process 10, since " in user.words
    assert (user.service is not None) is stopped
    assert evict.services_of([user]) == (["miner.service"] if stopped else [])


def test_without_nvml_nobody_computes_and_a_failing_card_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> None:
        raise NvmlUnavailable("NVML Shared Library Not Found")

    monkeypatch.setattr(nvml, "Nvml", none)
    assert busy.on_cards() == []

    def fails(_cards: object) -> None:
        raise nvml.NVML_ERRORS[0](15)

    monkeypatch.setattr(nvml, "Nvml", type("Opened", (), {"cards": (), "close": lambda _self: None}))
    monkeypatch.setattr(nvml, "processes_on", fails)
    monkeypatch.setattr(nvml, "words_of", lambda _error: "GPU is lost")
    with pytest.raises(AgentError, match="a card fails: GPU is lost"):
        busy.on_cards()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WARNING_S", "TERM_S", "GONE_S"):
        monkeypatch.setattr(evict, name, 0.3)


def runs(program: str) -> subprocess.Popen[bytes]:
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    return child


@pytest.mark.usefixtures("quick")
def test_who_is_told_to_leave_may_leave_and_is_made_to() -> None:
    polite = runs("print(flush=True); import time; time.sleep(60)")
    deaf = runs("import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(60)")
    told: list[str] = []
    users = [User(PROCESSOR, "polite", polite.pid), User(PROCESSOR, "deaf", deaf.pid)]
    evict.evict(users, lambda: told.append("leave"))
    assert told == ["leave"]
    assert (polite.wait(5), deaf.wait(5)) == (-signal.SIGTERM, -signal.SIGKILL)
    for child in (polite, deaf):
        child.communicate()


@pytest.mark.usefixtures("quick")
def test_a_login_is_hung_up_as_if_its_terminal_went() -> None:
    shell = runs(
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(60)"
    )
    evict.evict([User(LOGIN, "alice is logged in", shell.pid)], lambda: None)
    assert shell.wait(5) == -signal.SIGHUP
    shell.communicate()


@pytest.mark.usefixtures("quick")
def test_what_stays_after_sigkill_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evict, "_runs", lambda _pid: True)
    monkeypatch.setattr(evict.os, "kill", lambda _pid, _number: None)
    with pytest.raises(AgentError, match="still there after SIGKILL: alice computes on slot1"):
        evict.evict([User(PROCESSOR, "alice computes on slot1", 4_000_001)], lambda: None)


@pytest.mark.usefixtures("quick")
def test_a_service_that_cannot_be_stopped_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "systemctl"
    program.write_text("#!/bin/sh\necho 'Failed to stop miner.service: refused' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(AgentError, match=r"Failed to stop miner\.service"):
        evict.evict([User(PROCESSOR, "x", 1, "miner.service")], lambda: None)
