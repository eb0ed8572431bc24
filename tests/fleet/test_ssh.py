"""The SSH connection against a real OpenSSH server."""

from __future__ import annotations

import getpass
import hashlib
import os
import signal
import socket
import subprocess
import threading
import time
from typing import TYPE_CHECKING

import paramiko
import pytest
from pydantic import SecretStr

from rigctl.errors import (
    CommandFailed,
    ConnectionLost,
    HostKeyChanged,
    HostKeyUnknown,
    LoginRefused,
    RigUnreachable,
    SudoRefused,
)
from rigctl.fleet import commands, ssh
from rigctl.fleet.ssh import RigConnection, Untrusted

from .conftest_sshd import Server, free_port, make_key

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def known(sshd: Server, tmp_path: Path) -> Path:
    return sshd.known_hosts(tmp_path)


@pytest.fixture
def conn(sshd: Server, known: Path) -> Iterator[RigConnection]:
    connection = RigConnection(sshd.login(known), "rig1")
    connection.connect()
    yield connection
    connection.close()


@pytest.fixture
def not_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the login count as an ordinary one, so that sudo is asked."""
    monkeypatch.setattr(commands, "ROOT", "nobody-is-root")


def test_status_and_both_outputs(conn: RigConnection) -> None:
    reply = conn.run("echo out; echo err >&2; exit 7", timeout_s=10)
    assert (reply.exit_status, reply.stdout, reply.stderr) == (7, b"out\n", b"err\n")
    assert not reply.timed_out


def test_words_are_not_read_by_a_shell(conn: RigConnection) -> None:
    assert conn.run(["printf", "%s|", "a b", "$HOME", "';"], timeout_s=10).stdout == b"a b|$HOME|';|"


def test_binary_stdin_comes_back_unchanged(conn: RigConnection) -> None:
    data = os.urandom(3_000_000)
    reply = conn.run("cat", timeout_s=30, stdin=data)
    assert hashlib.sha256(reply.stdout).digest() == hashlib.sha256(data).digest()


def test_large_output_on_both_streams(conn: RigConnection) -> None:
    reply = conn.run("head -c 5000000 /dev/zero; head -c 4000000 /dev/zero >&2", timeout_s=30)
    assert (len(reply.stdout), len(reply.stderr)) == (5_000_000, 4_000_000)


def test_command_that_does_not_read_its_stdin(conn: RigConnection) -> None:
    reply = conn.run("echo done", timeout_s=10, stdin=b"x" * 8_000_000)
    assert (reply.exit_status, reply.stdout) == (0, b"done\n")


def test_program_that_closes_its_outputs_and_still_reads(conn: RigConnection, tmp_path: Path) -> None:
    target = tmp_path / "all"
    data = os.urandom(6_000_000)
    conn.run(f"exec >&- 2>&-; cat > {target}", timeout_s=20, stdin=data)
    assert target.read_bytes() == data


def test_close_from_another_thread_ends_a_command(conn: RigConnection) -> None:
    closer = threading.Timer(0.3, conn.close)
    closer.start()
    started = time.monotonic()
    with pytest.raises(ConnectionLost):
        conn.run("sleep 20", timeout_s=30)
    closer.join()
    assert time.monotonic() - started < 5


def test_no_stdin_is_an_empty_stdin(conn: RigConnection) -> None:
    assert conn.run("wc -c", timeout_s=10).stdout.strip() == b"0"


def test_command_is_ended_on_the_rig(conn: RigConnection) -> None:
    mark = f"{time.time():.6f}"
    reply = conn.run(f"sleep 60.{mark.replace('.', '')}", timeout_s=0.5)
    assert reply.timed_out
    assert reply.seconds < 5
    assert conn.run(["pgrep", "-f", f"^sleep 60.{mark.replace('.', '')}"], timeout_s=5).stdout == b""


def test_short_commands_do_not_wait_for_nagle(conn: RigConnection) -> None:
    assert conn._sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_put_is_whole_and_has_its_mode(conn: RigConnection, tmp_path: Path) -> None:
    target = tmp_path / "a b'c"
    conn.put(b"\0\xffdata", str(target), 0o640)
    assert target.read_bytes() == b"\0\xffdata"
    assert target.stat().st_mode & 0o777 == 0o640
    assert [p.name for p in tmp_path.iterdir() if p.name.endswith(".part")] == []


def test_put_into_a_missing_folder_says_so(conn: RigConnection, tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match=r"rig1: cannot write .*/none/x"):
        conn.put(b"data", str(tmp_path / "none" / "x"), 0o600)


def test_killed_session_is_lost_and_can_be_made_again(sshd: Server, conn: RigConnection) -> None:
    killer = threading.Timer(0.5, sshd.kill_sessions)
    killer.start()
    with pytest.raises(ConnectionLost, match="rig1: connection lost") as caught:
        conn.run("sleep 20", timeout_s=30)
    killer.join()
    assert "rigctl doctor rig1" in caught.value.hint
    assert not conn.connected
    conn.connect()
    assert conn.run("echo again", timeout_s=5).stdout == b"again\n"


def test_rig_that_hangs_while_it_is_asked_is_given_up_in_time(sshd: Server, known: Path, monkeypatch) -> None:
    """The kernel goes on acknowledging for a process that no longer runs, so no connection breaks by itself."""
    monkeypatch.setattr(ssh, "KILL_AFTER_S", 0.2)
    monkeypatch.setattr(ssh, "_GRACE_S", 0.2)
    real = paramiko.Channel.exec_command
    frozen: list[int] = []

    def freeze(channel: paramiko.Channel, command: str) -> None:
        frozen.extend(sshd.sessions())
        for pid in frozen:
            os.kill(pid, signal.SIGSTOP)
        real(channel, command)

    connection = RigConnection(sshd.login(known), "rig1")
    connection.connect()
    monkeypatch.setattr(paramiko.Channel, "exec_command", freeze)
    began = time.monotonic()
    try:
        with pytest.raises(ConnectionLost):
            connection.run("true", timeout_s=0.2)
    finally:
        for pid in frozen:
            os.kill(pid, signal.SIGKILL)
    assert frozen
    assert time.monotonic() - began < 5


def test_proxy_command_that_does_not_listen_is_ended(sshd: Server, known: Path) -> None:
    command = f"ssh -F none -W %h:%p -p {sshd.port} -i {sshd.key_file} -o UserKnownHostsFile={known} %r@127.0.0.1"
    connection = RigConnection(sshd.login(known, proxy_command=command), "rig1")
    connection.connect()
    proxy = connection._proxy
    assert proxy is not None
    os.kill(proxy.pid, signal.SIGSTOP)
    closing = threading.Thread(target=connection.close)
    closing.start()
    closing.join(6)
    assert proxy.poll() == -signal.SIGKILL


def test_run_without_a_connection_is_lost(sshd: Server, known: Path) -> None:
    with pytest.raises(ConnectionLost, match="not connected"):
        RigConnection(sshd.login(known), "rig1").run("true", timeout_s=5)


def test_command_killed_on_the_rig_with_its_bound_is_lost_not_a_result(conn: RigConnection) -> None:
    with pytest.raises(ConnectionLost, match="without an exit status"):
        conn.run("kill -9 $PPID", timeout_s=5)


def test_unknown_host_key_is_refused_with_its_fingerprint(sshd: Server, tmp_path: Path) -> None:
    known = sshd.known_hosts(tmp_path, "")
    expected = subprocess.run(
        ["ssh-keygen", "-lf", str(sshd.folder / "host_ed25519.pub")], capture_output=True, text=True, check=True
    ).stdout.split()[1]
    with pytest.raises(HostKeyUnknown) as caught:
        RigConnection(sshd.login(known), "rig1").connect()
    assert expected in caught.value.message
    assert "rigctl doctor rig1 --trust" in caught.value.hint
    assert isinstance(caught.value, Untrusted)
    assert known.read_text() == ""


def test_changed_host_key_shows_both_and_the_command(sshd: Server, tmp_path: Path) -> None:
    other = make_key(tmp_path / "other").with_suffix(".pub").read_text()
    known = sshd.known_hosts(tmp_path, f"[127.0.0.1]:{sshd.port} {other}")
    with pytest.raises(HostKeyChanged) as caught:
        RigConnection(sshd.login(known), "rig1").connect()
    assert caught.value.message.count("SHA256:") == 2
    assert f"ssh-keygen -R '[127.0.0.1]:{sshd.port}' -f {known}" in caught.value.hint


def test_hashed_known_hosts(sshd: Server, known: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(known)], check=True, capture_output=True)
    assert known.read_text().startswith("|1|")
    connection = RigConnection(sshd.login(known), "rig1")
    connection.connect()
    connection.close()


def test_host_key_alias(sshd: Server, tmp_path: Path) -> None:
    known = sshd.known_hosts(tmp_path, f"the-rig {sshd.host_key}\n")
    connection = RigConnection(sshd.login(known, host_key_alias="the-rig"), "rig1")
    connection.connect()
    assert connection.connected
    connection.close()


def test_revoked_host_key(sshd: Server, tmp_path: Path) -> None:
    known = sshd.known_hosts(tmp_path, f"@revoked * {sshd.host_key}\n")
    with pytest.raises(HostKeyChanged, match="revoked"):
        RigConnection(sshd.login(known), "rig1").connect()


def test_wrong_key_names_what_was_tried(sshd: Server, known: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    wrong = make_key(tmp_path / "wrong")
    login = sshd.login(known, identity_files=(str(wrong), str(tmp_path / "absent")))
    with pytest.raises(LoginRefused) as caught:
        RigConnection(login, "rig1").connect()
    assert f"{wrong}: refused" in caught.value.message
    assert "absent: no such file" in caught.value.message
    assert caught.value.hint == f"run: ssh-copy-id -i {wrong} -p {sshd.port} {getpass.getuser()}@127.0.0.1"


def test_key_with_a_passphrase_points_to_the_agent(sshd: Server, known: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    locked = make_key(tmp_path / "locked", "phrase")
    with pytest.raises(LoginRefused, match=r"locked: has a passphrase: run ssh-add"):
        RigConnection(sshd.login(known, identity_files=(str(locked),)), "rig1").connect()


def test_agent_key(sshd: Server, known: Path, tmp_path: Path, monkeypatch) -> None:
    sock = tmp_path / "agent"
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", str(sock)], stdout=subprocess.DEVNULL)
    try:
        monkeypatch.setenv("SSH_AUTH_SOCK", str(sock))
        deadline = time.monotonic() + 5
        while not sock.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        subprocess.run(["ssh-add", "-q", str(sshd.key_file)], check=True)
        connection = RigConnection(sshd.login(known, identity_files=()), "rig1")
        connection.connect()
        assert connection.run("echo in", timeout_s=5).stdout == b"in\n"
        connection.close()
    finally:
        agent.terminate()
        agent.wait(5)


def test_nothing_listens(sshd: Server, known: Path) -> None:
    with pytest.raises(RigUnreachable, match=r"rig1: 127.0.0.1 port \d+: connection refused"):
        RigConnection(sshd.login(known, port=free_port()), "rig1").connect()


def test_unknown_name(sshd: Server, known: Path) -> None:
    with pytest.raises(RigUnreachable, match="no known host name"):
        RigConnection(sshd.login(known, address="rig1.invalid"), "rig1").connect()


def test_silent_server_is_given_up_in_time(sshd: Server, known: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        login = sshd.login(known, port=silent.getsockname()[1], connect_timeout_s=1)
        started = time.monotonic()
        with pytest.raises(RigUnreachable):
            RigConnection(login, "rig1").connect()
        assert time.monotonic() - started < 6


def test_through_a_jump_host(sshd: Server, known: Path) -> None:
    connection = RigConnection(sshd.login(known, proxy_jump=f"{getpass.getuser()}@127.0.0.1:{sshd.port}"), "rig1")
    connection.connect()
    assert connection.run("echo there", timeout_s=10).stdout == b"there\n"
    connection.close()


def test_jump_host_that_cannot_reach_the_rig(sshd: Server, known: Path) -> None:
    jump = f"{getpass.getuser()}@127.0.0.1:{sshd.port}"
    with pytest.raises(RigUnreachable, match="the jump host cannot reach it"):
        RigConnection(sshd.login(known, proxy_jump=jump, port=free_port()), "rig1").connect()


def test_untrusted_jump_host_is_named(sshd: Server, tmp_path: Path) -> None:
    known = sshd.known_hosts(tmp_path, "")
    with pytest.raises(HostKeyUnknown, match=r"rig1: jump host 127\.0\.0\.1: host key unknown"):
        RigConnection(sshd.login(known, proxy_jump=f"127.0.0.1:{sshd.port}"), "rig1").connect()


def test_through_a_proxy_command(sshd: Server, known: Path) -> None:
    command = f"ssh -F none -W %h:%p -p {sshd.port} -i {sshd.key_file} -o UserKnownHostsFile={known} %r@127.0.0.1"
    connection = RigConnection(sshd.login(known, proxy_command=command), "rig1")
    connection.connect()
    assert connection.run("echo there", timeout_s=10).stdout == b"there\n"
    connection.close()


@pytest.mark.usefixtures("not_root")
class TestSudo:
    def test_without_a_password(self, sshd: Server, conn: RigConnection) -> None:
        sshd.sudo_mode("nopasswd")
        assert conn.run("cat", timeout_s=5, stdin=b"data", root=True).stdout == b"data"
        assert sshd.calls.startswith("-n -- timeout -k 10 5 sh -c cat")

    def test_password_that_rigctl_does_not_have(self, sshd: Server, conn: RigConnection) -> None:
        sshd.sudo_mode("password")
        with pytest.raises(SudoRefused, match="rig1: sudo wants a password") as caught:
            conn.run("true", timeout_s=5, root=True)
        assert "ansible_become_password" in caught.value.hint
        assert "NOPASSWD" in caught.value.hint

    @pytest.mark.parametrize("mode", ["password", "nopasswd"])
    def test_password_never_reaches_the_command(self, sshd: Server, known: Path, mode: str) -> None:
        sshd.sudo_mode(mode)
        connection = RigConnection(sshd.login(known, become_password=SecretStr("s3cret")), "rig1")
        connection.connect()
        for _ in range(2):
            assert connection.run("cat", timeout_s=5, stdin=b"\0data\n", root=True).stdout == b"\0data\n"
        connection.close()
        assert "s3cret" not in sshd.calls

    def test_wrong_password(self, sshd: Server, known: Path) -> None:
        sshd.sudo_mode("password")
        connection = RigConnection(sshd.login(known, become_password=SecretStr("wrong")), "rig1")
        connection.connect()
        with pytest.raises(SudoRefused, match="did not accept the password") as caught:
            connection.run("true", timeout_s=5, root=True)
        connection.close()
        assert "wrong" not in caught.value.message
        assert "correct it: ansible_become_password in the inventory" in caught.value.hint

    @pytest.mark.parametrize(
        ("mode", "words"),
        [("forbidden", "not in the sudoers file"), ("tty", "must have a tty"), ("missing", "sudo is not installed")],
    )
    def test_sudo_that_refuses(self, sshd: Server, conn: RigConnection, mode: str, words: str) -> None:
        sshd.sudo_mode(mode)
        with pytest.raises(SudoRefused, match=words):
            conn.run("true", timeout_s=5, root=True)

    def test_status_1_of_the_command_is_a_reply(self, sshd: Server, conn: RigConnection) -> None:
        sshd.sudo_mode("nopasswd")
        reply = conn.run("echo 'sudo comes into this' >&2; false", timeout_s=5, root=True)
        assert reply.exit_status == 1


def test_root_login_needs_no_sudo(sshd: Server, conn: RigConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "ROOT", getpass.getuser())
    sshd.sudo_mode("forbidden")
    assert conn.run("echo hi", timeout_s=5, root=True).stdout == b"hi\n"
    assert sshd.calls == ""
