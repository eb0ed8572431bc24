"""A rig's system as seen over SSH while its supply is switched: who uses it, shut down, gone, back."""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from rigctl.errors import RigError, RigUnreachable
from rigctl.fleet.delivery import RemoteAgent
from rigctl.fleet.ssh import RigConnection

if TYPE_CHECKING:
    from rigctl.model.rig import Rig

SHORT_S = 30
KNOCK_S = 3
LOOK_S = 2.0
"""A rig that goes off or comes back is looked for so often, seconds."""


@dataclass(frozen=True)
class Use:
    """Who has the rig, in words."""

    runs: tuple[str, ...]
    users: tuple[str, ...]


class System(Protocol):
    """What switching needs of the rig's system."""

    def use(self) -> Use | None:
        """Who uses it; None where it does not answer."""

    def boot_id(self) -> str | None:
        """Identity of its present boot; None where it does not answer."""

    def shut_down(self) -> None:
        """Ask it to shut down in good order. Raises RigError."""

    def answers(self) -> bool:
        """Whether anything listens where its SSH server does."""


class SshSystem:
    """A rig's system over SSH; each question makes its own connection, as none outlives a restart."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig

    def use(self) -> Use | None:
        """Ask the agent who uses the rig."""
        connection = RigConnection(self._rig.login, self._rig.name)
        try:
            connection.connect()
            agent = RemoteAgent(connection)
            agent.deliver()
            told = agent.call("users", timeout_s=SHORT_S)
        except RigUnreachable:
            return None
        finally:
            connection.close()
        return Use(tuple(map(str, told["runs"])), tuple(map(str, told["users"])))

    def boot_id(self) -> str | None:
        """Read it from the kernel."""
        try:
            return self._run("cat /proc/sys/kernel/random/boot_id", root=False).strip()
        except RigError:
            return None

    def shut_down(self) -> None:
        """Ask systemd, which answers before it goes."""
        self._run("systemctl --no-block poweroff", root=True)

    def answers(self) -> bool:
        """Knock at its SSH port; behind a jump host or a proxy, log in."""
        login = self._rig.login
        if login.proxy_jump is not None or login.proxy_command is not None:
            return self.boot_id() is not None
        try:
            with socket.create_connection((login.address, login.port), timeout=KNOCK_S) as knock:
                return bool(knock.recv(4))
        except OSError:
            return False

    def _run(self, command: str, *, root: bool) -> str:
        connection = RigConnection(self._rig.login, self._rig.name)
        try:
            connection.connect()
            return connection.run(command, timeout_s=SHORT_S, root=root).stdout.decode(errors="replace")
        finally:
            connection.close()


def wait_until_gone(system: System, limit_s: float) -> bool:
    """Whether the rig stopped answering within this time."""
    deadline = time.monotonic() + limit_s
    while system.answers():
        if time.monotonic() >= deadline:
            return False
        time.sleep(LOOK_S)
    return True


def wait_until_back(system: System, limit_s: float, other_than: str | None = None) -> str | None:
    """The boot id of the rig once it answers again; None where it does not within this time.

    `other_than`: the boot that is to end; a rig that still answers from it is waited for.
    """
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        if system.answers() and (boot_id := system.boot_id()) and boot_id != other_than:
            return boot_id
        time.sleep(LOOK_S)
    return None
