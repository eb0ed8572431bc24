"""testinfra over the rig's own connection, recorded; and the same commands answered again from the record.

The backend's whole interface is `run`. What a live host answers and what a replay answers is the same text: a reply
becomes text once, before anybody looks at it.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING, Any

from testinfra.backend.base import BaseBackend
from testinfra.host import Host

from rigctl.errors import RigError
from rigctl.model.reading import CommandReply

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from testinfra.backend.base import CommandResult

    from rigctl.fleet.commands import Commands

TIMEOUT_S = 60
"""One question of testinfra must be answered within this time, seconds."""
_AS_ROOT = "sudo: "
_ENCODING = "utf-8"


class NotRecorded(RigError):
    """A replay was asked for a command that the run did not record."""


class _Backend(BaseBackend):  # type: ignore[misc] # testinfra carries no types
    """What live and replayed hosts share: the command's name in the record, and text as UTF-8."""

    NAME = "rigctl"

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._encoding = _ENCODING

    def get_sudo_command(self, command: str, sudo_user: str | None) -> str:
        """Mark a command of `host.sudo()`; the connection knows how this rig's sudo is called."""
        as_user = command if sudo_user is None else self.quote("sudo -n -u %s /bin/sh -c %s", sudo_user, command)
        return _AS_ROOT + as_user

    def run(self, command: str, *args: str, **kwargs: Any) -> CommandResult:  # noqa: ARG002 - testinfra's form
        """Answer one command. Raises RigError."""
        marked = self.get_command(command, *args)
        line = marked
        while line.startswith(_AS_ROOT):
            line = line.removeprefix(_AS_ROOT)
        reply = self.answer(line, root=line != marked)
        return self.result(reply.exit_status, line.encode(), reply.stdout.encode(), reply.stderr.encode())

    def answer(self, line: str, *, root: bool) -> CommandReply:
        """Answer the quoted command line."""
        raise NotImplementedError


class LiveHost(_Backend):
    """Asks the rig and records what it said."""

    def __init__(self, conn: Commands, record: Callable[[CommandReply], None]) -> None:
        super().__init__(conn.name)
        self._conn = conn
        self._record = record

    def answer(self, line: str, *, root: bool) -> CommandReply:
        """Ask the rig. Raises RigError as the connection does."""
        reply = self._conn.run(line, timeout_s=TIMEOUT_S, root=root)
        answered = CommandReply(
            command=_recorded_as(line, root=root),
            exit_status=reply.exit_status,
            stdout=reply.stdout.decode(_ENCODING, errors="replace"),
            stderr=reply.stderr.decode(_ENCODING, errors="replace"),
        )
        self._record(answered)
        return answered


class ReplayHost(_Backend):
    """Answers from the record, in its order; the last answer to a command stays."""

    def __init__(self, replies: Sequence[CommandReply], name: str) -> None:
        super().__init__(name)
        self._replies: dict[str, deque[CommandReply]] = defaultdict(deque)
        for reply in replies:
            self._replies[reply.command].append(reply)

    def answer(self, line: str, *, root: bool) -> CommandReply:
        """Look the command up. Raises NotRecorded."""
        known = self._replies.get(_recorded_as(line, root=root))
        if not known:
            raise NotRecorded(
                f"{self.hostname}: not recorded in this run: {line}", "run rigctl accept again: the run asked less"
            )
        return known.popleft() if len(known) > 1 else known[0]


def live_host(conn: Commands, record: Callable[[CommandReply], None]) -> Host:
    """Return testinfra's host for a connected rig; every command goes to `record`."""
    return _host(LiveHost(conn, record))


def replay_host(replies: Sequence[CommandReply], name: str = "replay") -> Host:
    """Return testinfra's host that answers from a run's record."""
    return _host(ReplayHost(replies, name))


def _host(backend: _Backend) -> Host:
    host = Host(backend)
    backend.set_host(host)
    return host


def _recorded_as(line: str, *, root: bool) -> str:
    return _AS_ROOT + line if root else line
