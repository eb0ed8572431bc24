"""The way from a password login to a trusted key login, step by step; each can be taken again."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import ValidationError

from rigctl.bootstrap.box import LOOK, Box, read_box
from rigctl.bootstrap.keys import INSTALL
from rigctl.errors import CommandFailed, LoginRefused, RigError
from rigctl.fleet import commands
from rigctl.fleet.hops import hops_of
from rigctl.fleet.ssh import RigConnection, Untrusted
from rigctl.fleet.trust import record_key

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import SecretStr

    from rigctl.bootstrap.keys import PublicKey
    from rigctl.model.rig import Login, Rig

_QUICK_S = 30
_POLL_S = 2.0
_NOT_INSTALLED = 127
_RUNNING = {"running", "not started", "not run"}
_BAD = "error"
"""What `cloud-init status` says of a first boot that did not do what it was told."""


@dataclass(frozen=True)
class Options:
    """What a bootstrap was asked to do."""

    user: str | None = None
    """Who logs in; None: who the inventory says."""
    key: PublicKey | None = None
    """None: nothing is put on the rig, its login by key must work already."""
    password: SecretStr | None = None
    """The login's password, used once, where no key is accepted yet."""
    become_password: SecretStr | None = None
    """Sudo's, where the inventory has none; None: the login's own password, which is what sudo asks for."""
    cloud_init_timeout_s: float = 600


@dataclass(frozen=True)
class Bootstrapped:
    """A rig that is ready to be provisioned."""

    rig: str
    user: str
    key: str
    """Where the accepted key came from."""
    key_installed: bool
    sudo_asks: bool
    """Whether sudo wants a password."""
    cloud_init: str
    box: Box


class Bootstrap:
    """One rig's bootstrap.

    Args:
        trusts: shows a host's key to a person and says whether it is to be trusted.
        say: is told each step as it is done: a word and what was found.
    """

    def __init__(
        self, rig: Rig, options: Options, trusts: Callable[[Untrusted], bool], say: Callable[[str, str], None]
    ) -> None:
        self._rig = rig
        self._options = options
        self._trusts = trusts
        self._say = say

    def run(self) -> Bootstrapped:
        """Take every step.

        Raises:
            RigError: one could not be taken, with its remedy; those before it stay done.
        """
        connection, installed = self._by_key()
        try:
            cloud_init = self._cloud_init(connection)
            sudo_asks = self._sudo(connection)
            box = self._box(connection)
        finally:
            connection.close()
        self._as_inventory_says(connection.user)
        key = self._options.key
        origin = key.origin if key else "a key"
        return Bootstrapped(self._rig.name, connection.user, origin, installed, sudo_asks, cloud_init, box)

    def _by_key(self) -> tuple[RigConnection, bool]:
        """A connection by key, the key put in its place before where that is needed."""
        login = self._login()
        try:
            connection = self._connected(login)
        except LoginRefused as error:
            self._install(login, error)
            return self._connected_after_installing(login), True
        self._say("login", f"{connection.user}, by a key that it had already")
        return connection, False

    def _login(self) -> Login:
        options = self._options
        changes: dict[str, object] = {}
        if options.user is not None:
            changes["user"] = options.user
        if options.key is not None and options.key.file is not None:
            known = self._rig.login.identity_files
            changes["identity_files"] = tuple(dict.fromkeys((options.key.file, *known)))
        if self._rig.login.become_password is None:
            changes["become_password"] = options.become_password or options.password
        return self._rig.login.model_copy(update=changes)

    def _connected(self, login: Login, password: SecretStr | None = None) -> RigConnection:
        """Connect; each key that is not known yet, jump hosts' first, is shown and recorded once."""
        connection = RigConnection(login, self._rig.name, password=password)
        for _hop in hops_of(login, self._rig.name):
            try:
                connection.connect()
            except Untrusted as unknown:
                if not self._trusts(unknown):
                    raise
                file = record_key(unknown.hop.login, unknown.key)
                self._say("host key", f"{unknown.key.fingerprint}, recorded in {file}")
        connection.connect()
        return connection

    def _install(self, login: Login, refused: LoginRefused) -> None:
        """Log in with the password, once, and put the key in its place."""
        name, options = self._rig.name, self._options
        if refused.message.startswith(f"{name}: jump host "):
            raise refused  # the rig's password does not help there
        if options.password is None or options.key is None:
            raise LoginRefused(refused.message, "log in once with a password: --ask-pass")
        connection = self._connected(login, options.password)
        try:
            reply = connection.run(INSTALL, timeout_s=_QUICK_S, stdin=options.key.line.encode() + b"\n")
        finally:
            connection.close()
        if reply.exit_status != 0:
            said = " ".join(reply.stderr.decode(errors="replace").split()) or f"exit status {reply.exit_status}"
            by_hand = f"ssh -p {login.port} {connection.user}@{login.address}"
            if "assword change required" in said or "has expired" in said:
                raise LoginRefused(f"{name}: the password of {connection.user} has expired", f"change it: {by_hand}")
            raise CommandFailed(f"{name}: the key cannot be installed: {said}", f"look there by hand: {by_hand}")
        self._say("key", f"{options.key.origin} installed for {connection.user}")

    def _connected_after_installing(self, login: Login) -> RigConnection:
        try:
            connection = self._connected(login)
        except LoginRefused as error:
            locked = "passphrase" in error.message
            file = self._options.key.origin if self._options.key else ""
            raise LoginRefused(
                f"{error.message}, although the key is installed",
                f"run: ssh-add {file}"
                if locked
                else "on the rig: journalctl -u ssh; sshd -T | grep -i -e authorizedkeysfile -e pubkeyauthentication",
            ) from error
        self._say("login", f"{connection.user}, by key")
        return connection

    def _cloud_init(self, connection: RigConnection) -> str:
        """Wait until the first boot has done what it was told; before, users, keys and packages may still change."""
        deadline = time.monotonic() + self._options.cloud_init_timeout_s
        while True:
            state = _cloud_init_state(connection)
            if state not in _RUNNING:
                break
            if time.monotonic() >= deadline:
                raise CommandFailed(
                    f"{self._rig.name}: cloud-init has not ended after {self._options.cloud_init_timeout_s:.0f} s",
                    "on the rig: cloud-init status --long; then run this again, or with a longer --cloud-init-timeout",
                )
            time.sleep(_POLL_S)
        if state == _BAD:
            raise CommandFailed(
                f"{self._rig.name}: cloud-init ended with an error: the box is not what it was told to become",
                "on the rig: cloud-init status --long; /var/log/cloud-init.log",
            )
        self._say("cloud-init", state)
        return state

    def _sudo(self, connection: RigConnection) -> bool:
        """Whether sudo asks for a password. Raises SudoRefused where it does not take ours, or nobody may use it."""
        reply = connection.run(["id", "-u"], timeout_s=_QUICK_S, root=True)
        if reply.stdout.strip() != b"0":
            raise CommandFailed(
                f"{self._rig.name}: sudo runs commands as another user than root",
                "look into /etc/sudoers on the rig: runas_default must be root",
            )
        if connection.user == commands.ROOT:
            self._say("sudo", "not needed: root logs in")
            return False
        asks = connection.run("sudo -k -n true", timeout_s=_QUICK_S).exit_status != 0
        self._say("sudo", "root, with a password" if asks else "root, without a password")
        return asks

    def _box(self, connection: RigConnection) -> Box:
        reply = connection.run(LOOK, timeout_s=_QUICK_S)
        try:
            return read_box(reply.stdout.decode(errors="replace"))
        except (ValueError, KeyError, ValidationError) as error:
            said = " ".join(reply.stderr.decode(errors="replace").split())[-300:]
            raise CommandFailed(
                f"{self._rig.name}: the box does not say what it is: {said or error}",
                "rigs run Linux with the usual programs of Debian or Ubuntu",
            ) from error

    def _as_inventory_says(self, user: str) -> None:
        """Make sure that the login of the inventory works as well: with that everything else is done."""
        connection = RigConnection(self._rig.login, self._rig.name)
        if self._login().model_copy(update={"become_password": None}) == self._rig.login.model_copy(
            update={"become_password": None}
        ):
            return
        try:
            connection.connect()
        except RigError as error:
            change = f"ansible_user: {user}" if connection.user != user else ""
            key = self._options.key.file if self._options.key else None
            if key and key not in self._rig.login.identity_files:
                change = f"{change} and ansible_ssh_private_key_file: {key}".removeprefix(" and ")
            raise LoginRefused(
                f"{self._rig.name} is ready for {user}, but the inventory logs in otherwise: {error.message}",
                f"set {change} for {self._rig.name} in the inventory" if change else error.hint,
            ) from error
        finally:
            connection.close()


def _cloud_init_state(connection: RigConnection) -> str:
    """`done`, `running`, …; `not installed` where there is no cloud-init."""
    reply = connection.run("command -v cloud-init > /dev/null || exit 127; cloud-init status", timeout_s=_QUICK_S)
    if reply.exit_status == _NOT_INSTALLED:
        return "not installed"
    for line in reply.stdout.decode(errors="replace").splitlines():
        key, _, value = line.partition(":")
        if key == "status":
            return value.strip()
    return _BAD
