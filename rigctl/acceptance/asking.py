"""Asking a rig through testinfra so that a question without an answer is answered the same way in a replay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from testinfra.backend.base import BaseBackend
from testinfra.host import Host

from rigctl.errors import RigError
from rigctl.model.reading import CommandReply

if TYPE_CHECKING:
    from collections.abc import Callable

    from testinfra.backend.base import CommandResult

NO_ANSWER = -1
"""Exit status in `commands.jsonl` of a command that brought no answer; its reason stands as stderr."""
_SUDO = "sudo: "


class NoAnswer(Exception):
    """The rig did not answer a command; raised alike live and in a replay."""


class AskingBackend(BaseBackend):  # type: ignore[misc] # testinfra carries no types
    """Passes commands on to another host's backend, and remembers the ones that brought no answer."""

    NAME = "rigctl"

    def __init__(self, inner: Host, record: Callable[[CommandReply], None] | None) -> None:
        super().__init__(inner.backend.hostname)
        self._inner = inner.backend
        self._record = record
        self._encoding = "utf-8"
        self.ahead: dict[str, CommandReply] = {}
        """Answers that were asked for before anybody waited for them."""

    def run(self, command: str, *args: str, **kwargs: Any) -> CommandResult:
        """Answer one command. Raises NoAnswer."""
        if not args and (known := self.ahead.pop(command, None)) is not None:
            if known.exit_status < 0:
                raise NoAnswer(known.stderr)
            return self.result(known.exit_status, command.encode(), known.stdout.encode(), known.stderr.encode())
        self._inner.sudo, self._inner.sudo_user = self.sudo, self.sudo_user
        try:
            result = self._inner.run(command, *args, **kwargs)
        except RigError as error:
            name = self._inner.get_command(command, *args)
            while name.startswith(_SUDO * 2):
                name = name.removeprefix(_SUDO)
            if self._record is not None:
                self._record(CommandReply(command=name, exit_status=NO_ANSWER, stdout="", stderr=error.message))
            raise NoAnswer(error.message) from error
        if result.exit_status < 0:
            raise NoAnswer(result.stderr)
        return self.result(result.exit_status, result.command, result.stdout, result.stderr)


def asking(inner: Host, record: Callable[[CommandReply], None] | None) -> Host:
    """Return a testinfra host over `inner`; unanswered questions go to `record`, where there is one."""
    backend = AskingBackend(inner, record)
    host = Host(backend)
    backend.set_host(host)
    return host


def ask(host: Host, command: str) -> CommandReply:
    """Ask one command; one that brings no answer is a reply too, with a status below zero and its reason as stderr."""
    try:
        result = host.run(command)
    except NoAnswer as error:
        return CommandReply(command=command, exit_status=NO_ANSWER, stdout="", stderr=str(error))
    return CommandReply(command=command, exit_status=result.rc, stdout=result.stdout, stderr=result.stderr)
