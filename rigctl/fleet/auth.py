"""Logging in with a password: once, to put a key in its place; everything else logs in by key."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING

from paramiko import AuthenticationException, BadAuthenticationType, SSHException

from rigctl.errors import LoginRefused

if TYPE_CHECKING:
    from paramiko import Transport
    from pydantic import SecretStr

    from rigctl.fleet.hops import Hop


class Password:
    """Logs in with one password, tried once, so that no account is locked by repeating it.

    Paramiko calls this an authentication strategy and asks for `authenticate` alone. It also answers the one hidden
    question of a server that asks for the password by keyboard-interactive.
    """

    def __init__(self, hop: Hop, password: SecretStr) -> None:
        self._hop = hop
        self._user = hop.login.user or getpass.getuser()
        self._password = password

    def authenticate(self, transport: Transport) -> None:
        """Try the password. Raises LoginRefused; the password is in no message."""
        try:
            wanted = transport.auth_password(self._user, self._password.get_secret_value())
        except BadAuthenticationType as error:
            takes = ", ".join(error.allowed_types) or "nothing"
            raise self._refused(
                f"takes no password (it takes: {takes})",
                "on the rig's own console: add your public key to ~/.ssh/authorized_keys there",
            ) from None
        except AuthenticationException:
            raise self._refused(
                "did not accept the password", "check user and password; only one try is made"
            ) from None
        except SSHException as error:
            if not transport.is_active():
                raise
            # More than one question: a second factor, or a password that must be changed first.
            raise self._refused(
                f"asks for more than a password ({error})", f"log in once by hand: ssh -p {self._port} {self._target}"
            ) from None
        if wanted:
            raise self._refused(
                f"wants {' and '.join(wanted)} after the password", "log in by key: add it on the rig's own console"
            )

    @property
    def _target(self) -> str:
        return f"{self._user}@{self._hop.login.address}"

    @property
    def _port(self) -> int:
        return self._hop.login.port

    def _refused(self, why: str, hint: str) -> LoginRefused:
        return LoginRefused(f"{self._hop.label}: {self._target} {why}", hint)
