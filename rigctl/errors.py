"""The exit codes of every command and the errors that people see.

RigctlError
├── UsageError          2: met before any rig was touched
├── ChangeIncomplete    4: a change did not complete
└── RigError            3: one rig could not be reached or measured; the others go on
├── RigUnreachable      no connection was made
│   ├── HostKeyUnknown      the rig is not trusted yet
│   ├── HostKeyChanged      the rig shows another key than the trusted one
│   └── LoginRefused        no key or password was accepted
├── ConnectionLost      the connection broke; the command's fate is unknown
├── RigBusy             somebody uses the rig: it is left out, and no fault is counted
├── SudoRefused         sudo wants a password, or does not allow the command
└── CommandFailed       a command on the rig ended with an unexpected status
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What a command says to its shell; the same for every command."""

    OK = 0
    FAILED = 1
    USAGE = 2
    UNMEASURED = 3
    CHANGE_INCOMPLETE = 4
    INTERRUPTED = 130


class RigctlError(Exception):
    """An error with its remedy: printed as `error: …` and `hint: …`."""

    exit_code = ExitCode.UNMEASURED

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(RigctlError):
    """Wrong words, a wrong inventory or a wrong spec: found before any rig was touched."""

    exit_code = ExitCode.USAGE


class NoRoom(RigctlError):
    """The controller's own disk is full; what was fsynced before is still there."""


class ChangeIncomplete(RigctlError):
    """A provisioning or an upgrade did not reach its end."""

    exit_code = ExitCode.CHANGE_INCOMPLETE


class RigError(RigctlError):
    """One rig could not be reached or measured; the other rigs go on."""


class RigUnreachable(RigError):
    """No connection to the rig was made."""


class HostKeyUnknown(RigUnreachable):
    """The rig's host key is not in known_hosts: it was never trusted."""


class HostKeyChanged(RigUnreachable):
    """The rig shows another host key than the one that was trusted."""


class LoginRefused(RigUnreachable):
    """The rig accepted none of the keys (or the password) that were offered."""


class ConnectionLost(RigError):
    """The connection broke while a command ran; what became of the command is unknown."""


class RigBusy(RigError):
    """Somebody uses the rig, people or another run; `users` says who, since when."""

    def __init__(self, message: str, hint: str = "", users: str = "") -> None:
        super().__init__(message, hint)
        self.users = users or message


class SudoRefused(RigError):
    """Sudo wants a password that rigctl does not have, or does not allow the command."""


class CommandFailed(RigError):
    """A command on the rig ended with a status that was not expected."""
