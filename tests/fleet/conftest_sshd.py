"""A real OpenSSH server on loopback, with its own keys and port, and a sudo that the tests decide about."""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import socket
import stat
import subprocess
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from rigctl.model.rig import Login

SSHD = shutil.which("sshd") or shutil.which("sshd", path="/usr/sbin:/usr/local/sbin")

FAKE_SUDO = """\
#!/bin/sh
# Behaves like sudo in the mode that the file `mode` beside it names; `calls` keeps what it was asked.
here=$(dirname "$0"); mode=$(cat "$here/mode"); ask=""; quiet=""
echo "$*" >> "$here/calls"
while [ $# -gt 0 ]; do
  case $1 in
    -n) quiet=1; shift;; -k) shift;; -S) ask=1; shift;; -p) shift 2;; --) shift; break;; *) break;;
  esac
done
case $mode in
  nopasswd) exec "$@";;
  forbidden) echo "tester is not in the sudoers file." >&2; exit 1;;
  tty) echo "sudo: sorry, you must have a tty to run sudo" >&2; exit 1;;
  missing) echo "sh: 1: sudo: not found" >&2; exit 127;;
esac
if [ -n "$quiet" ] || [ -z "$ask" ]; then echo "sudo: a password is required" >&2; exit 1; fi
read -r given
if [ "$given" = "s3cret" ]; then exec "$@"; fi
echo "Sorry, try again." >&2; echo "sudo: 1 incorrect password attempt" >&2; exit 1
"""


@dataclass
class Server:
    """The server, and what it takes to reach it."""

    port: int
    folder: Path
    process: subprocess.Popen[bytes]

    @property
    def key_file(self) -> Path:
        return self.folder / "id_ed25519"

    @property
    def host_key(self) -> str:
        return (self.folder / "host_ed25519.pub").read_text().rsplit(" ", 1)[0]

    @property
    def calls(self) -> str:
        return (self.folder / "bin" / "calls").read_text()

    def sudo_mode(self, mode: str) -> None:
        (self.folder / "bin" / "mode").write_text(mode)
        (self.folder / "bin" / "calls").write_text("")

    def known_hosts(self, folder: Path, line: str | None = None) -> Path:
        file = folder / "known_hosts"
        file.write_text(f"[127.0.0.1]:{self.port} {self.host_key}\n" if line is None else line)
        return file

    def login(self, known_hosts: Path, **changes: object) -> Login:
        settings: dict[str, object] = {
            "address": "127.0.0.1",
            "port": self.port,
            "user": getpass.getuser(),
            "identity_files": (str(self.key_file),),
            "known_hosts_files": (str(known_hosts),),
            "connect_timeout_s": 5,
        }
        return Login.model_validate({**settings, **changes})

    def kill_sessions(self) -> None:
        """Kill every process that serves a connection, as a machine does that loses power."""
        for pid in _children(self.process.pid):
            os.kill(pid, signal.SIGKILL)

    def sessions(self) -> list[int]:
        """Every process that serves a connection: with an ordinary login two of them each."""
        mine = _children(self.process.pid)
        return [*mine, *(inner for pid in mine for inner in _children(pid))]


def _children(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in listed]


def make_key(path: Path, passphrase: str = "") -> Path:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-f", str(path)], check=True)
    return path


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def wait_for_port(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()
        with socket.socket() as sock:
            if sock.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise AssertionError(log.read_text())


@pytest.fixture(scope="session")
def sshd(tmp_path_factory: pytest.TempPathFactory):
    if SSHD is None:
        pytest.skip("needs OpenSSH's server: apt-get install openssh-server")
    folder = tmp_path_factory.mktemp("sshd")
    make_key(folder / "host_ed25519")
    key = make_key(folder / "id_ed25519")
    (folder / "authorized_keys").write_text(key.with_suffix(".pub").read_text())
    (folder / "bin").mkdir()
    sudo = folder / "bin" / "sudo"
    sudo.write_text(FAKE_SUDO)
    sudo.chmod(sudo.stat().st_mode | stat.S_IXUSR)
    port = free_port()
    config = folder / "sshd_config"
    config.write_text(
        textwrap.dedent(f"""\
            Port {port}
            ListenAddress 127.0.0.1
            ListenAddress ::1
            HostKey {folder}/host_ed25519
            AuthorizedKeysFile {folder}/authorized_keys
            PidFile none
            StrictModes no
            UsePAM no
            PasswordAuthentication no
            PermitRootLogin prohibit-password
            AllowTcpForwarding yes
            SetEnv PATH={folder}/bin:{os.environ["PATH"]}
            """)
    )
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    log = folder / "log"
    process = subprocess.Popen([SSHD, "-D", "-f", str(config), "-E", str(log)])
    server = Server(port, folder, process)
    server.sudo_mode("nopasswd")
    try:
        wait_for_port(port, process, log)
        yield server
    finally:
        server.kill_sessions()
        process.terminate()
        process.wait(10)
