"""What can be asked of a rig: commands, as its user or as root, and files; over whatever channel carries them."""

from __future__ import annotations

import shlex
from abc import ABC, abstractmethod
from dataclasses import dataclass
from secrets import token_hex
from typing import TYPE_CHECKING

from rigctl.errors import CommandFailed, ConnectionLost, SudoRefused
from rigctl.fleet.wording import as_root, bounded, sudo_refusal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rigctl.model.rig import Login

ROOT = "root"
_PROBE_TIMEOUT_S = 30
_KILLED = (124, 137)
"""Exit status of `timeout` after SIGTERM and after SIGKILL."""


@dataclass(frozen=True)
class Reply:
    """What a command on a rig answered."""

    exit_status: int
    stdout: bytes
    stderr: bytes
    seconds: float
    limit_s: float = float("inf")

    @property
    def timed_out(self) -> bool:
        """Whether the command was ended at its limit on the rig."""
        return self.exit_status in _KILLED and self.seconds >= self.limit_s


class Commands(ABC):
    """Commands and files for one rig."""

    def __init__(self, login: Login, name: str, user: str) -> None:
        self.login = login
        self.name = name
        self.user = user
        self._sudo_asks: bool | None = None

    @abstractmethod
    def _exchange(self, line: str, stdin: bytes, timeout_s: float) -> Reply:
        """Run a shell line that ends by itself after `timeout_s`. Raises ConnectionLost."""

    def run(self, command: str | Sequence[str], *, timeout_s: float, stdin: bytes = b"", root: bool = False) -> Reply:
        """Run a command and wait for it; any exit status is a reply.

        Args:
            command: a string for `sh -c`, or words.
            timeout_s: after so long it is ended on the rig; see `Reply.timed_out`.
            stdin: what it reads, byte for byte.
            root: through sudo, unless the login is root's.

        Raises:
            ConnectionLost: the connection broke, or no exit status came.
            SudoRefused: sudo did not run it.
        """
        line = bounded(command, timeout_s)
        if not root or self.user == ROOT:
            return self._exchange(line, stdin, timeout_s)
        password = self.login.become_password
        if password is None or not self._asks_for_password():
            reply = self._exchange(as_root(line, with_password=False), stdin, timeout_s)
        else:
            secret = password.get_secret_value().encode() + b"\n"
            reply = self._exchange(as_root(line, with_password=True), secret + stdin, timeout_s)
        refusal = sudo_refusal(reply.exit_status, reply.stderr.decode(errors="replace"))
        if refusal:
            raise SudoRefused(f"{self.name}: {refusal} (login {self.user})", self._sudo_remedy())
        return reply

    def put(self, data: bytes, path: str, mode: int, *, root: bool = False, timeout_s: float = 60) -> None:
        """Write a file on the rig: whole or not at all, with its mode from the start.

        Raises:
            CommandFailed: it could not be written.
            ConnectionLost: or SudoRefused, as `run`.
        """
        part = shlex.quote(f"{path}.{token_hex(4)}.part")
        script = (
            f"umask 077; trap 'rm -f '{shlex.quote(part)} EXIT; cat > {part} && "
            f'[ "$(wc -c < {part})" -eq {len(data)} ] && chmod {mode:o} {part} && mv -f {part} {shlex.quote(path)}'
        )
        reply = self.run(script, timeout_s=timeout_s, stdin=data, root=root)
        if reply.exit_status != 0:
            said = reply.stderr.decode(errors="replace").strip() or f"exit status {reply.exit_status}"
            raise CommandFailed(f"{self.name}: cannot write {path}: {said}", f"check space and permissions of {path}")

    def _asks_for_password(self) -> bool:
        """Whether sudo asks this login for a password: then it takes one line of standard input, and only then."""
        if self._sudo_asks is None:
            probe = self._exchange(bounded("env LC_ALL=C sudo -k -n true", _PROBE_TIMEOUT_S), b"", _PROBE_TIMEOUT_S)
            self._sudo_asks = probe.exit_status != 0
        return self._sudo_asks

    def _sudo_remedy(self) -> str:
        if self.login.become_password is not None:
            return "correct it: ansible_become_password in the inventory, or what --ask-become-pass was given"
        return (
            "give --ask-become-pass, or set ansible_become_password in the inventory (vaulted), or on the rig: "
            f"echo '{self.user} ALL=(ALL) NOPASSWD:ALL' | sudo tee /etc/sudoers.d/rigctl"
        )


def lost(name: str, reason: str) -> ConnectionLost:
    """Say that the connection to rig `name` broke."""
    return ConnectionLost(f"{name}: connection lost: {reason}", f"is it on? run: rigctl doctor {name}")
