"""One SSH connection per rig, for everything; with `auth` the only module that imports fabric and paramiko.

- The socket is our own, with TCP_NODELAY: paramiko leaves Nagle's algorithm on, which costs 45 ms a command.
- Host keys are checked always; an unknown or changed one is refused, with its fingerprint.
- Every command is bounded on the rig (`timeout`), because a limit on this side would leave it running there.
- A command that ended without an exit status is lost, never a result.
"""

from __future__ import annotations

import errno
import getpass
import logging
import re
import shlex
import socket
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from fabric import Config, Connection
from paramiko import (
    Agent,
    AuthenticationException,
    BadHostKeyException,
    ChannelException,
    PKey,
    RejectPolicy,
    SSHException,
)
from paramiko.pkey import UnknownKeyType

from rigctl.errors import (
    HostKeyChanged,
    HostKeyUnknown,
    LoginRefused,
    RigError,
    RigUnreachable,
)
from rigctl.fleet.auth import Password
from rigctl.fleet.commands import Commands, Reply, lost
from rigctl.fleet.exchange import pump
from rigctl.fleet.hops import Hop, hops_of
from rigctl.fleet.trust import HostKey, KnownKey, address_name, find_keys, forget_command, known_hosts_files, known_name
from rigctl.fleet.wording import KILL_AFTER_S

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from paramiko import Channel, SSHClient, Transport
    from pydantic import SecretStr

    from rigctl.model.rig import Login

_AUTH_TIMEOUT_S = 30
_CHANNEL_TIMEOUT_S = 30
_GRACE_S = 5
"""Beyond a command's own limit on the rig: for its last words to arrive."""
_KEEPALIVE_S = 15
_PROXY_END_S = 2

# A refused or broken connection is an error of ours, in our words; without a handler paramiko's would be printed too.
logging.getLogger("paramiko").addHandler(logging.NullHandler())


class Untrusted(HostKeyUnknown):
    """No trusted key is known for this host; carries the key that it showed."""

    def __init__(self, hop: Hop, key: HostKey) -> None:
        how = (
            f"rigctl doctor {hop.label} --trust"
            if hop.is_rig
            else f"rigctl doctor {hop.label.partition(':')[0]} --trust (asks for the jump host first)"
        )
        super().__init__(
            f"{hop.label}: host key unknown: {known_name(hop.login)} shows {key.key_type} {key.fingerprint}",
            f"compare it with the rig's own (ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub there), then: {how}",
        )
        self.hop = hop
        self.key = key


class RigConnection(Commands):
    """The connection to one rig; for one thread at a time, but `close` may come from any.

    With `password` the rig itself is logged in to by that and by no key; jump hosts are by key always.
    """

    def __init__(self, login: Login, name: str, *, password: SecretStr | None = None) -> None:
        super().__init__(login, name, login.user or getpass.getuser())
        self._password = password
        self._opened: list[Connection] = []
        self._sock: socket.socket | None = None
        self._proxy: subprocess.Popen[bytes] | None = None

    @property
    def connected(self) -> bool:
        """Whether the connection stands, as far as this side knows."""
        transport = self._transport
        return transport is not None and transport.is_active()

    @property
    def _transport(self) -> Transport | None:
        return self._opened[-1].transport if self._opened else None

    def connect(self) -> None:
        """Connect and log in; nothing happens where that is done already.

        Raises:
            RigUnreachable: or HostKeyUnknown, HostKeyChanged, LoginRefused; each with its remedy.
        """
        if self.connected:
            return
        self.close()
        try:
            for hop in hops_of(self.login, self.name):
                self._open(hop)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection and those of the jump hosts; what runs on the rig goes on until its own limit."""
        opened, self._opened = self._opened, []
        for connection in reversed(opened):
            connection.close()
        sock, self._sock = self._sock, None
        if sock is not None:
            sock.close()
        proxy, self._proxy = self._proxy, None
        if proxy is not None:
            _end(proxy)

    def _open(self, hop: Hop) -> None:
        """Connect to one hop, through the one before it."""
        gateway = self._opened[-1] if self._opened else None
        connection = None
        try:
            if gateway is None:
                self._sock, self._proxy = _socket_to(hop.login)
            strategy = Password(hop, self._password) if self._password and hop.is_rig else _Keys(hop)
            connection = _fabric_connection(hop, gateway, self._sock, strategy)
            connection.open()
            connection.transport.set_keepalive(_KEEPALIVE_S)
        except RigError:
            _close_quietly(connection)
            raise
        except (SSHException, OSError, EOFError) as error:
            _close_quietly(connection)
            raise _explained(error, hop) from error
        self._opened.append(connection)

    def _exchange(self, line: str, stdin: bytes, timeout_s: float) -> Reply:
        transport = self._transport
        if transport is None or not transport.is_active():
            raise lost(self.name, "not connected")
        started = time.monotonic()
        deadline = started + timeout_s + KILL_AFTER_S + _GRACE_S
        try:
            with transport.open_session(timeout=_CHANNEL_TIMEOUT_S) as channel:
                self._ask(channel, line, deadline)
                stdout, stderr = pump(channel, stdin, deadline)
                ended = channel.status_event.wait(max(0.0, deadline - time.monotonic()))
                status = channel.recv_exit_status() if ended else -1
        except (SSHException, OSError, EOFError) as error:
            self.close()
            raise lost(self.name, str(error) or type(error).__name__) from error
        seconds = time.monotonic() - started
        if status < 0:
            self.close()
            raise lost(
                self.name, "the command ended without an exit status" if ended else f"no answer for {seconds:.0f} s"
            )
        return Reply(status, stdout, stderr, seconds, timeout_s)

    def _ask(self, channel: Channel, line: str, deadline: float) -> None:
        """Ask for a command. Paramiko waits for the answer without any limit; a rig that hangs gets one here."""
        watch = threading.Timer(max(0.0, deadline - time.monotonic()), self.close)
        watch.daemon = True
        watch.start()
        try:
            channel.exec_command(line)
        finally:
            watch.cancel()


class _Refuse(RejectPolicy):
    """Refuses every host that is not trusted, and says which key it showed."""

    def __init__(self, hop: Hop, revoked: Iterable[KnownKey]) -> None:
        self._hop = hop
        self._revoked = {known.key.blob: known for known in revoked}

    def missing_host_key(self, client: SSHClient, hostname: str, key: PKey) -> NoReturn:  # noqa: ARG002 - paramiko's form
        shown = HostKey(key.get_name(), key.asbytes())
        known = self._revoked.get(shown.blob)
        if known is not None:
            raise HostKeyChanged(
                f"{self._hop.label}: host key revoked: {shown.key_type} {shown.fingerprint} in {known.file}",
                "give the rig a new host key; a revoked one is never trusted",
            )
        raise Untrusted(self._hop, shown)


class _Keys:
    """Logs in with the login's key files, then with the SSH agent's keys; never with a password.

    Paramiko calls this an authentication strategy and asks for `authenticate` alone.
    """

    def __init__(self, hop: Hop) -> None:
        self._hop = hop
        self._user = hop.login.user or getpass.getuser()
        self._notes: list[str] = []

    def authenticate(self, transport: Transport) -> None:
        """Try each key once. Raises LoginRefused with what became of each."""
        seen: set[bytes] = set()
        for label, key in self._candidates():
            if key.asbytes() in seen:
                continue
            seen.add(key.asbytes())
            try:
                if not transport.auth_publickey(self._user, key):
                    return
                self._notes.append(f"{label}: accepted, but the rig wants a second factor")
            except AuthenticationException:
                self._notes.append(f"{label}: refused")
        login = self._hop.login
        file = next(iter(login.identity_files), "~/.ssh/id_ed25519")
        raise LoginRefused(
            f"{self._hop.label}: {self._user}@{login.address} refused the login ({'; '.join(self._notes) or 'no key'})",
            f"run: ssh-copy-id -i {file} -p {login.port} {self._user}@{login.address}",
        )

    def _candidates(self) -> Iterator[tuple[str, PKey]]:
        for name in self._hop.login.identity_files:
            try:
                yield name, PKey.from_path(Path(name).expanduser())
            except FileNotFoundError:
                self._notes.append(f"{name}: no such file")
            except (OSError, ValueError, TypeError, SSHException, UnknownKeyType) as error:
                locked = "password" in str(error).lower() or "encrypted" in str(error).lower()
                self._notes.append(f"{name}: {'has a passphrase: run ssh-add' if locked else f'unusable: {error}'}")
        agent = Agent()
        try:
            yield from ((f"agent key {key.comment or key.get_name()}", key) for key in agent.get_keys())
        finally:
            agent.close()


def _fabric_connection(hop: Hop, gateway: Connection | None, sock: Any, strategy: _Keys | Password) -> Connection:
    """Build Fabric's connection to one hop; what ssh_config says is in the login already."""
    login = hop.login
    arguments: dict[str, Any] = {
        "auth_strategy": strategy,
        "banner_timeout": login.connect_timeout_s,
        "auth_timeout": _AUTH_TIMEOUT_S,
        "channel_timeout": _CHANNEL_TIMEOUT_S,
        "allow_agent": False,
        "look_for_keys": False,
    }
    connection = Connection(
        host=login.address,
        user=login.user or getpass.getuser(),
        port=login.port,
        gateway=gateway or False,
        connect_timeout=max(1, round(login.connect_timeout_s)),
        connect_kwargs=arguments if gateway else {**arguments, "sock": sock},
        config=Config(lazy=True, overrides={"load_ssh_configs": False, "run": {"in_stream": False}}),
    )
    client = connection.client
    known_keys = find_keys(known_hosts_files(login), known_name(login))
    client.set_missing_host_key_policy(_Refuse(hop, [known for known in known_keys if known.revoked]))
    # Paramiko looks under the address it was given; which names a line of known_hosts stands for is settled above.
    for known in known_keys:
        if not known.revoked:
            _trust(client, address_name(login), known.key)
    return connection


def _trust(client: SSHClient, name: str, key: HostKey) -> None:
    """Let the client accept `key`; one of a kind that paramiko does not know cannot be shown by a rig either."""
    with suppress(SSHException, UnknownKeyType, ValueError):
        client.get_host_keys().add(name, key.key_type, PKey.from_type_string(key.key_type, key.blob))


def _socket_to(login: Login) -> tuple[socket.socket, subprocess.Popen[bytes] | None]:
    """Open the socket that carries the first connection, and the proxy command behind it where there is one."""
    if login.proxy_command:
        # A socket pair instead of paramiko's ProxyCommand, which spins when the command ends and fails to close.
        ours, its = socket.socketpair()
        with its:
            command = f"exec {_expanded(login.proxy_command, login)}"
            end = its.fileno()
            return ours, subprocess.Popen(["sh", "-c", command], stdin=end, stdout=end, stderr=subprocess.DEVNULL)
    sock = socket.create_connection((login.address, login.port), timeout=login.connect_timeout_s)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock, None


def _end(proxy: subprocess.Popen[bytes]) -> None:
    """End a proxy command, also one that does not listen."""
    proxy.terminate()
    try:
        proxy.wait(timeout=_PROXY_END_S)
    except subprocess.TimeoutExpired:
        proxy.kill()
        proxy.wait()


def _expanded(command: str, login: Login) -> str:
    tokens = {"%h": login.address, "%p": str(login.port), "%r": login.user or getpass.getuser(), "%%": "%"}
    return re.sub("%[hpr%]", lambda found: shlex.quote(tokens[found[0]]), command)


def _close_quietly(connection: Connection | None) -> None:
    """Close what never became a connection; its own failure was said already."""
    if connection is not None:
        connection.client.close()


def _explained(error: Exception, hop: Hop) -> RigUnreachable:
    """Say in people's words why no connection was made, and what to do."""
    login = hop.login
    place = f"{login.address} port {login.port}"
    if isinstance(error, BadHostKeyException):
        return _changed(error, hop)
    if isinstance(error, socket.gaierror):
        return RigUnreachable(
            f"{hop.label}: {login.address} is no known host name", "correct ansible_host, or the name server"
        )
    if isinstance(error, ConnectionRefusedError):
        return RigUnreachable(
            f"{hop.label}: {place}: connection refused", "on the rig: systemctl status ssh; is ansible_port right?"
        )
    if isinstance(error, TimeoutError) or getattr(error, "errno", None) in (errno.EHOSTUNREACH, errno.ENETUNREACH):
        said = getattr(error, "strerror", None) or f"no answer within {login.connect_timeout_s:g} s"
        return RigUnreachable(f"{hop.label}: {place}: {said}", f"is it on? run: ping {login.address}")
    if isinstance(error, ChannelException):
        return RigUnreachable(
            f"{hop.label}: {place}: the jump host cannot reach it: {error.text}",
            f"run on the jump host: nc -vz {login.address} {login.port}",
        )
    said = getattr(error, "strerror", None) or str(error) or type(error).__name__
    if "banner" in said or isinstance(error, EOFError):
        said = "something answers, but no SSH server"
    return RigUnreachable(f"{hop.label}: {place}: {said}", f"run: ssh -v -p {login.port} {login.address}")


def _changed(error: BadHostKeyException, hop: Hop) -> HostKeyChanged:
    trusted = find_keys(known_hosts_files(hop.login), known_name(hop.login))
    shown = HostKey(error.key.get_name(), error.key.asbytes())
    old = ", ".join(f"{k.key.key_type} {k.key.fingerprint} ({k.file}:{k.line})" for k in trusted if not k.revoked)
    files = dict.fromkeys(k.file for k in trusted)
    forget = "; ".join(forget_command(hop.login, file) for file in files)
    return HostKeyChanged(
        f"{hop.label}: host key changed: it shows {shown.key_type} {shown.fingerprint}, trusted is {old}",
        f"find out why (reinstalled, or another machine at this address?); only then: {forget} "
        f"&& rigctl doctor {hop.label.partition(':')[0]} --trust",
    )
