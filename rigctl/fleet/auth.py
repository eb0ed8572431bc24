"""Logging in with a password: once, to put a key in its place; everything else logs in by key."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING

from paramiko import AuthenticationException, BadAuthenticationType

from rigctl.errors import LoginRefused

if TYPE_CHECKING:
    from paramiko import Transport
    from pydantic import SecretStr

    from rigctl.fleet.hops import Hop


class Password:
    """Logs in with one password, tried once, so that no account is locked by repeating it.

    Paramiko calls this an authentication strategy and asks for `authenticate` alone. It also answers a server
    that asks for the password as a question (keyboard-interactive).
    """

    def __init__(self, hop: Hop, password: SecretStr) -> None:
        self._hop = hop
        self._user = hop.login.user or getpass.getuser()
        self._password = password
        self._answered = False
        self._more = ""
        """The question that no password answers."""

    def authenticate(self, transport: Transport) -> None:
        """Try the password. Raises LoginRefused; the password is in no message."""
        try:
            wanted = self._try(transport)
        except BadAuthenticationType as error:
            takes = ", ".join(error.allowed_types) or "nothing"
            raise self._refused(
                f"takes no password (it takes: {takes})",
                "on the rig's own console: add your public key to ~/.ssh/authorized_keys there",
            ) from None
        except AuthenticationException:
            if self._more:
                raise self._refused(
                    f"asks for more than a password: {self._more!r}",
                    f"install the key by hand: ssh-copy-id -p {self._hop.login.port} {self._target}",
                ) from None
            raise self._refused("did not accept the password", "check user and password; one try was made") from None
        if wanted:
            raise self._refused(
                f"wants {' and '.join(wanted)} after the password", "log in by key: add it on the rig's own console"
            )

    def _try(self, transport: Transport) -> list[str]:
        """Try the one way that the server takes; return what else it wants."""
        try:
            return transport.auth_password(self._user, self._password.get_secret_value(), fallback=False)
        except BadAuthenticationType as error:
            if "keyboard-interactive" not in error.allowed_types:
                raise
        return transport.auth_interactive(self._user, self._answers)

    def _answers(self, _title: str, _words: str, questions: list[tuple[str, bool]]) -> list[str]:
        """Answer the first hidden question by the password, once, and nothing else by it: not a code, not a new one."""
        if not questions:
            return []
        (first, shown), *others = questions
        if shown or others or self._answered:
            self._more = " ".join((others[0][0] if others else first).split())
            return [""] * len(questions)
        self._answered = True
        return [self._password.get_secret_value()]

    @property
    def _target(self) -> str:
        return f"{self._user}@{self._hop.login.address}"

    def _refused(self, why: str, hint: str) -> LoginRefused:
        return LoginRefused(f"{self._hop.label}: {self._target} {why}", hint)
