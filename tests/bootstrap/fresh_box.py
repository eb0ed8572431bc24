"""A fresh box on loopback: an SSH server that takes a password, with a home, a sudo and a cloud-init of its own."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import paramiko

from tests.fleet.conftest_sshd import FAKE_SUDO

if TYPE_CHECKING:
    from pathlib import Path

PASSWORD = "s3cret"  # noqa: S105 - the one that the stand-in for sudo takes too
LSPCI = """\
#!/bin/sh
echo '00:02.0 Audio device: NVIDIA Corporation GA102 High Definition Audio Controller (rev a1)'
echo '01:00.0 VGA compatible controller: NVIDIA Corporation GA102 [GeForce RTX 3090 Ti] (rev a1)'
"""


@dataclass
class FreshBox:
    """What it takes, what it was asked, and its folder."""

    home: Path
    port: int = 0
    methods: str = "publickey,password"
    questions: int = 1
    """How many it asks by keyboard-interactive."""
    attempts: list[str] = field(default_factory=list)
    """Each try to log in: method and user."""
    answers: list[list[str]] = field(default_factory=list)
    """What its questions were answered by."""
    lines: list[str] = field(default_factory=list)
    """Each command line."""
    answer: tuple[int, bytes] | None = None
    """What every command answers on standard error instead of being run."""

    def program(self, name: str, text: str) -> None:
        path = self.home / "bin" / name
        path.write_text(text)
        path.chmod(0o755)

    def sudo_mode(self, mode: str) -> None:
        (self.home / "bin" / "mode").write_text(mode)

    @property
    def authorized(self) -> list[str]:
        path = self.home / ".ssh" / "authorized_keys"
        return path.read_text().splitlines() if path.is_file() else []


class _Server(paramiko.ServerInterface):
    def __init__(self, box: FreshBox) -> None:
        self._box = box

    def get_allowed_auths(self, username: str) -> str:
        return self._box.methods

    def check_auth_password(self, username: str, password: str) -> int:
        self._box.attempts.append(f"password {username}")
        right = "password" in self._box.methods and password == PASSWORD
        return paramiko.AUTH_SUCCESSFUL if right else paramiko.AUTH_FAILED

    def check_auth_interactive(self, username: str, submethods: str) -> paramiko.InteractiveQuery:
        self._box.attempts.append(f"interactive {username}")
        questions = [("Password: ", False), ("Code: ", False)][: self._box.questions]
        return paramiko.InteractiveQuery("", "", *questions)

    def check_auth_interactive_response(self, responses: list[str]) -> int:
        self._box.answers.append(list(responses))
        return paramiko.AUTH_SUCCESSFUL if responses == [PASSWORD] else paramiko.AUTH_FAILED

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        self._box.attempts.append(f"publickey {username}")
        known = any(line.split()[1] == key.get_base64() for line in self._box.authorized if username != "stranger")
        return paramiko.AUTH_SUCCESSFUL if known else paramiko.AUTH_FAILED

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return paramiko.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        self._box.lines.append(command.decode())
        threading.Thread(target=_run, args=(self._box, channel, command.decode()), daemon=True).start()
        return True


def _run(box: FreshBox, channel: paramiko.Channel, line: str) -> None:
    with contextlib.suppress(OSError, EOFError):
        stdin = b"".join(iter(lambda: channel.recv(65536), b""))
        if box.answer is not None:
            status, stderr = box.answer
            channel.sendall_stderr(stderr)
        else:
            path = f"{box.home / 'bin'}:{os.environ['PATH']}"
            done = subprocess.run(
                ["sh", "-c", line],
                input=stdin,
                capture_output=True,
                check=False,
                cwd="/",
                env={"PATH": path, "HOME": str(box.home)},
            )
            status = done.returncode
            channel.sendall(done.stdout)
            channel.sendall_stderr(done.stderr)
        channel.send_exit_status(status)
        channel.close()


def _serve(box: FreshBox, listener: socket.socket, host_key: paramiko.PKey) -> None:
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        transport = paramiko.Transport(client)
        transport.add_server_key(host_key)
        with contextlib.suppress(paramiko.SSHException, EOFError):
            transport.start_server(event=threading.Event(), server=_Server(box))


@contextlib.contextmanager
def fresh_box(home: Path):
    box = FreshBox(home)
    (home / "bin").mkdir(parents=True)
    box.program("sudo", FAKE_SUDO)
    box.program("id", "#!/bin/sh\necho 0\n")  # the stand-in for sudo makes nobody root
    box.program("lspci", LSPCI)
    box.program("cloud-init", "#!/bin/sh\necho 'status: done'\n")
    box.sudo_mode("nopasswd")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        box.port = listener.getsockname()[1]
        host_key = paramiko.ECDSAKey.generate()
        threading.Thread(target=_serve, args=(box, listener, host_key), daemon=True).start()
        yield box
        listener.shutdown(socket.SHUT_RDWR)
