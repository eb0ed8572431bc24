"""testinfra live and replayed: the same text, every command recorded, nothing invented."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING

import pytest

from rigctl.errors import RigError
from rigctl.fleet import commands
from rigctl.fleet.ssh import RigConnection
from rigctl.fleet.testinfra_backend import NotRecorded, live_host, replay_host
from rigctl.model.reading import CommandReply

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest_sshd import Server


def questions(host) -> list[object]:
    """What a suite asks: modules, quoting, sudo and bytes that are no ASCII."""
    answers: list[object] = [
        host.file("/etc/passwd").exists,
        host.file("/absent").exists,
        host.check_output("printf %s", "a b"),
        host.run("printf '\\303\\244\\377'; exit 3").stdout,
        host.run("exit 3").rc,
    ]
    with host.sudo():
        answers.append(host.check_output("id -un"))
    return answers


def test_replay_says_what_the_rig_said(sshd: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "ROOT", "nobody-is-root")
    sshd.sudo_mode("nopasswd")
    record: list[CommandReply] = []
    connection = RigConnection(sshd.login(sshd.known_hosts(tmp_path)), "rig1")
    connection.connect()
    live = questions(live_host(connection, record.append))
    connection.close()
    assert live == [True, False, "a b", "ä\ufffd", 3, getpass.getuser()]
    assert any(reply.command == "sudo: id -un" for reply in record)
    kept = [CommandReply.model_validate_json(reply.model_dump_json()) for reply in record]
    assert questions(replay_host(kept)) == live


def test_not_recorded_is_an_error_with_the_command() -> None:
    host = replay_host([CommandReply(command="id", exit_status=0, stdout="x", stderr="")], "rig1")
    with pytest.raises(NotRecorded, match="rig1: not recorded in this run: id -u") as caught:
        host.run("id -u")
    assert isinstance(caught.value, RigError)
    with host.sudo(), pytest.raises(NotRecorded):
        host.run("id")


def test_a_command_asked_twice_keeps_its_order() -> None:
    replies = [CommandReply(command="date", exit_status=0, stdout=text, stderr="") for text in ("one", "two")]
    host = replay_host(replies)
    assert [host.run("date").stdout for _ in range(3)] == ["one", "two", "two"]


def test_another_user_through_sudo(sshd: Server, tmp_path: Path) -> None:
    record: list[CommandReply] = []
    connection = RigConnection(sshd.login(sshd.known_hosts(tmp_path)), "rig1")
    connection.connect()
    host = live_host(connection, record.append)
    with host.sudo("www-data"):
        host.run("id")
    connection.close()
    assert record[0].command == "sudo: sudo -n -u www-data /bin/sh -c id"
