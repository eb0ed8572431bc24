"""The command lines that rigctl sends to a rig: bounded there, as root through sudo; and sudo's own words."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

KILL_AFTER_S = 10
"""How long a command that ignores SIGTERM at its limit may go on before SIGKILL, seconds."""
_SUDO_EXIT = 1
_NOT_FOUND = 127

_PASSWORD = re.compile(
    r"^sudo: (a password is required|a terminal is required|.*incorrect password|no password was)", re.MULTILINE
)
_WRONG_PASSWORD = re.compile(r"^(Sorry, try again|sudo: .*incorrect password attempt)", re.MULTILINE)
_FORBIDDEN = re.compile(
    r"^(Sorry, user .* is not allowed|.* is not in the sudoers file|.* is not allowed to run sudo"
    r"|sudo: sorry, you must have a tty)",
    re.MULTILINE,
)
_BROKEN = re.compile(
    r"^sudo: (.*(must be owned by uid 0|effective uid is not 0|error in .*sudoers|unable to .*))", re.MULTILINE
)
_MISSING = re.compile(r"sudo: (command )?not found")


def bounded(command: str | Sequence[str], timeout_s: float) -> str:
    """Wrap a command so that it ends on the rig by itself, whatever becomes of the connection.

    A string is run by `sh -c`, a sequence word by word.
    """
    words = ["sh", "-c", command] if isinstance(command, str) else list(command)
    return shlex.join(["timeout", "-k", str(KILL_AFTER_S), f"{timeout_s:g}", *words])


def as_root(line: str, *, with_password: bool) -> str:
    """Run `line` as root: without a prompt, or with the password as the first line of standard input.

    `-k` together with a command ignores a cached password, so that the line is read exactly once.
    """
    flags = "-k -S -p ''" if with_password else "-n"
    return f"env LC_ALL=C sudo {flags} -- {line}"


def sudo_refusal(exit_status: int, stderr: str) -> str | None:
    """Say in one phrase why sudo did not run the command; None when it did (or cannot be blamed)."""
    if exit_status == _NOT_FOUND and _MISSING.search(stderr):
        return "sudo is not installed"
    if exit_status != _SUDO_EXIT:
        return None
    if _WRONG_PASSWORD.search(stderr):
        return "sudo did not accept the password"
    if _PASSWORD.search(stderr):
        return "sudo wants a password"
    forbidden = _FORBIDDEN.search(stderr) or _BROKEN.search(stderr)
    return forbidden[0].removeprefix("sudo: ") if forbidden else None
