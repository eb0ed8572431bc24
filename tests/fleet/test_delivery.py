"""The agent's delivery and calls, over a real connection, with a small agent of our own."""

from __future__ import annotations

import hashlib
import io
import zipfile
from typing import TYPE_CHECKING

import pytest

from rigctl.errors import CommandFailed, RigBusy
from rigctl.fleet import delivery
from rigctl.fleet.bundle import Bundle
from rigctl.fleet.delivery import AgentSilent, RemoteAgent
from rigctl.fleet.ssh import RigConnection

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .conftest_sshd import Server

AGENT = """\
import json, sys, time
word = sys.argv[1]
if word == "echo":
    print(json.dumps({"args": sys.argv[2:], "stdin": sys.stdin.buffer.read().hex()}))
elif word == "refuse":
    print(json.dumps({"error": "another run is active", "hint": "wait for it"})); sys.exit(1)
elif word == "late":
    print(json.dumps({"error": "systemctl did not answer within 12 s", "hint": "look", "again": True})); sys.exit(1)
elif word == "busy":
    print(json.dumps({"error": "the rig is in use: bob", "hint": "ask bob", "again": False, "busy": True})); sys.exit(1)
elif word == "crash":
    print("\\n".join(f"line {n}" for n in range(20)), file=sys.stderr); raise SystemExit(3)
elif word == "list":
    print("[1, 2]")
elif word == "sleep":
    time.sleep(60)
"""


@pytest.fixture
def agent(sshd: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RemoteAgent]:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("__main__.py", AGENT)
    data = packed.getvalue()
    monkeypatch.setattr(delivery, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(delivery, "build_bundle", lambda: Bundle(data, hashlib.sha256(data).hexdigest()))
    sshd.sudo_mode("nopasswd")
    connection = RigConnection(sshd.login(sshd.known_hosts(tmp_path)), "rig1")
    connection.connect()
    yield RemoteAgent(connection)
    connection.close()


def test_delivered_once_and_repaired(agent: RemoteAgent, tmp_path: Path) -> None:
    assert agent.deliver() is True
    (file,) = (tmp_path / "cache").iterdir()
    assert str(file) == agent.path
    assert file.stat().st_mode & 0o777 == 0o644
    assert agent.deliver() is False
    file.write_bytes(file.read_bytes()[:-1] + b"!")
    assert agent.deliver() is True


def test_answer_with_arguments_and_stdin(agent: RemoteAgent) -> None:
    agent.deliver()
    answer = agent.call("echo", "a b", "--x=$y", timeout_s=20, stdin=b"\0\xff")
    assert answer == {"args": ["a b", "--x=$y"], "stdin": "00ff"}


def test_the_agents_own_error_and_hint(agent: RemoteAgent) -> None:
    agent.deliver()
    with pytest.raises(CommandFailed, match="rig1: another run is active") as caught:
        agent.call("refuse", timeout_s=20)
    assert caught.value.hint == "wait for it"


def test_crash_shows_the_last_ten_lines(agent: RemoteAgent) -> None:
    agent.deliver()
    with pytest.raises(CommandFailed, match="exit status 3") as caught:
        agent.call("crash", timeout_s=20)
    assert "line 10 | " in caught.value.message
    assert "line 9 |" not in caught.value.message
    assert f"sudo python3 -I {agent.path} crash" in caught.value.hint


@pytest.mark.parametrize("word", ["list", "silent"])
def test_no_json_object_is_an_error(agent: RemoteAgent, word: str) -> None:
    agent.deliver()
    with pytest.raises(CommandFailed, match=f"agent {word}: exit status 0"):
        agent.call(word, timeout_s=20)


def test_no_answer_in_time(agent: RemoteAgent) -> None:
    agent.deliver()
    with pytest.raises(CommandFailed, match=r"no answer within 0\.5 s"):
        agent.call("sleep", timeout_s=0.5)


def test_folder_that_cannot_be_made(agent: RemoteAgent, tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(delivery, "CACHE_DIR", str(tmp_path / "file" / "cache"))
    with pytest.raises(CommandFailed, match="cannot create"):
        agent.deliver()


def test_a_rig_that_somebody_uses_is_busy_and_says_who(agent: RemoteAgent) -> None:
    agent.deliver()
    with pytest.raises(RigBusy, match="the rig is in use: bob") as busy:
        agent.call("busy", timeout_s=10)
    assert (busy.value.users, busy.value.hint) == ("the rig is in use: bob", "ask bob")


def test_a_rig_too_slow_for_its_agent_may_be_asked_again_and_the_agents_words_arrive(agent: RemoteAgent) -> None:
    agent.deliver()
    with pytest.raises(AgentSilent, match="systemctl did not answer within 12 s") as slow:
        agent.call("late", timeout_s=10)
    assert slow.value.hint == "look"
