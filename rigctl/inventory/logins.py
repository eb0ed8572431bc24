"""Connection variables → `Login`, resolved by OpenSSH's own client, so that `~/.ssh/config` counts as for Ansible.

`ssh -G` prints what an OpenSSH client would use for a host and touches no network. It takes the same words that
Ansible would give it (`ansible_ssh_common_args`, …), so ProxyJump, UserKnownHostsFile and the like need no parser.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from rigctl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rigctl.inventory.ansible_config import ConnectionDefaults

from rigctl.model.rig import Login

LOGIN_VARIABLES = (
    "ansible_host",
    "ansible_ssh_host",
    "ansible_port",
    "ansible_ssh_port",
    "ansible_user",
    "ansible_ssh_user",
    "ansible_ssh_private_key_file",
    "ansible_private_key_file",
    "ansible_ssh_common_args",
    "ansible_ssh_extra_args",
    "ansible_ssh_args",
    "ansible_become_password",
    "ansible_become_pass",
    "ansible_sudo_pass",
    "ansible_become_method",
    "ansible_become_flags",
    "ansible_timeout",
    "ansible_ssh_timeout",
    "ansible_connection",
)
_OVER_SSH = {"ssh", "smart", "paramiko", "paramiko_ssh", "ansible.builtin.ssh", "ansible.builtin.paramiko_ssh"}
_DEFAULT_TIMEOUT_S = 10.0
_NO_TIMEOUT = "none"
_JUMP = re.compile(r"(?:ssh://)?(?:(?P<user>[^@]+)@)?(?:\[(?P<six>[^\]]+)\]|(?P<address>[^:@]+))(?::(?P<port>\d+))?")


def build_login(host: str, values: Mapping[str, Any], defaults: ConnectionDefaults) -> Login:
    """Say how to reach `host` from its resolved connection variables.

    Raises:
        UsageError: a variable has the wrong type, the rig is not reached over SSH, or OpenSSH refuses the words.
    """
    connection = values.get("ansible_connection", "ssh")
    if connection not in _OVER_SSH:
        raise UsageError(
            f"{host}: ansible_connection: {connection} is not SSH",
            "rigctl reaches rigs over SSH only: remove the variable, or leave this host out of the pattern",
        )
    address = _text(host, values, "ansible_host", "ansible_ssh_host") or host
    client = _ask_openssh(host, [*_words(host, values, defaults), "--", address])
    return Login(
        address=client["hostname"][0],
        port=int(client["port"][0]),
        user=client["user"][0],
        identity_files=_identity_files(client),
        known_hosts_files=_known_hosts_files(client),
        proxy_jump=_resolved_jump(host, _unless_none(client.get("proxyjump"))),
        proxy_command=_unless_none(client.get("proxycommand")),
        host_key_alias=_unless_none(client.get("hostkeyalias")),
        openssh_only=_openssh_only(client),
        connect_timeout_s=_timeout(host, values, defaults, client),
        become_password=_become_password(host, values),
        become_method=_text(host, values, "ansible_become_method") or defaults.become_method or "sudo",
        become_flags=_text(host, values, "ansible_become_flags") or defaults.become_flags or "",
        host_keys=client.get("stricthostkeychecking", ["ask"])[0],
    )


def _words(host: str, values: Mapping[str, Any], defaults: ConnectionDefaults) -> list[str]:
    """Return the words that Ansible would give the client, the stronger ones first."""
    words: list[str] = []
    port = _port(host, values, defaults)
    user = _text(host, values, "ansible_user", "ansible_ssh_user") or defaults.remote_user
    key = _text(host, values, "ansible_ssh_private_key_file", "ansible_private_key_file") or defaults.private_key_file
    words += ["-p", str(port)] if port else []
    words += ["-o", f'User="{user}"'] if user else []
    words += ["-o", f'IdentityFile="{Path(key).expanduser()}"'] if key else []
    for name, default in (
        ("ansible_ssh_args", defaults.ssh_args),
        ("ansible_ssh_common_args", defaults.ssh_common_args),
        ("ansible_ssh_extra_args", defaults.ssh_extra_args),
    ):
        text = _text(host, values, name)
        words += _split(host, name, default if text is None else text)
    return words


def _resolved_jump(host: str, jump: str | None) -> str | None:
    """Write every jump host as `user@address:port`, as ~/.ssh/config resolves its alias."""
    if jump is None:
        return None
    hops = []
    for text in jump.split(","):
        found = _JUMP.fullmatch(text.strip())
        if found is None:
            raise UsageError(f"{host}: {text!r} is no jump host", "write ProxyJump as user@host:port")
        words = [*(["-p", found["port"]] if found["port"] else []), *(["-l", found["user"]] if found["user"] else [])]
        client = _ask_openssh(host, [*words, "--", found["six"] or found["address"]])
        address = client["hostname"][0]
        bracketed = f"[{address}]" if ":" in address else address
        hops.append(f"{client['user'][0]}@{bracketed}:{client['port'][0]}")
    return ",".join(hops)


def _ask_openssh(host: str, words: Sequence[str]) -> dict[str, list[str]]:
    program = shutil.which("ssh")
    if program is None:
        raise UsageError("the OpenSSH client is not installed", "run: apt-get install openssh-client")
    done = subprocess.run(
        [program, "-G", *words], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        raise UsageError(
            f"{host}: the OpenSSH client refuses its connection variables: {said[-1] if said else 'no reason given'}",
            f"run: ssh -G {shlex.join(words)}",
        )
    answer: dict[str, list[str]] = {}
    for line in done.stdout.splitlines():
        name, _, value = line.partition(" ")
        answer.setdefault(name, []).append(value)
    return answer


def _identity_files(client: Mapping[str, list[str]]) -> tuple[str, ...]:
    """Return the keys that are there; OpenSSH lists its default names whether they exist or not."""
    named = [str(Path(name.strip('"')).expanduser()) for name in client.get("identityfile", ())]
    present = tuple(dict.fromkeys(name for name in named if Path(name).is_file()))
    # None is there: keep the first, so that a refused login can say which file was asked for.
    return present or tuple(named[:1])


def _known_hosts_files(client: Mapping[str, list[str]]) -> tuple[str, ...]:
    files = [
        f for key in ("userknownhostsfile", "globalknownhostsfile") for v in client.get(key, ()) for f in v.split()
    ]
    return tuple(str(Path(name).expanduser()) for name in files if name != _NO_TIMEOUT)


def _openssh_only(client: Mapping[str, list[str]]) -> tuple[str, ...]:
    """Name the settings of this login that paramiko does not have; `ssh -G` prints most only where they are set."""
    found = []
    agent = _unless_none(client.get("identityagent"))
    if agent not in (None, "SSH_AUTH_SOCK", "$SSH_AUTH_SOCK", os.environ.get("SSH_AUTH_SOCK")):
        found.append(f"IdentityAgent (run: export SSH_AUTH_SOCK={agent})")
    found += [f"CertificateFile {name}" for name in client.get("certificatefile", ())]
    found += ["PKCS11Provider"] if _unless_none(client.get("pkcs11provider")) else []
    # Debian and Ubuntu say yes to everybody; without a ticket it means nothing.
    found += ["GSSAPIAuthentication"] if client.get("gssapiauthentication") == ["yes"] and _has_ticket() else []
    return tuple(found)


def _has_ticket() -> bool:
    """Whether there may be a Kerberos ticket: a cache is named, or stands at its usual place."""
    return "KRB5CCNAME" in os.environ or Path(f"/tmp/krb5cc_{os.getuid()}").exists()  # noqa: S108 - Kerberos's own name


def _unless_none(values: list[str] | None) -> str | None:
    return None if not values or values[0] == "none" else values[0]


def _timeout(
    host: str, values: Mapping[str, Any], defaults: ConnectionDefaults, client: Mapping[str, list[str]]
) -> float:
    own = _text(host, values, "ansible_ssh_timeout", "ansible_timeout") or defaults.timeout
    if own is None:
        stated = client.get("connecttimeout", [_NO_TIMEOUT])[0]
        return _DEFAULT_TIMEOUT_S if stated == _NO_TIMEOUT else float(stated)
    try:
        return float(own)
    except ValueError as error:
        raise UsageError(
            f"{host}: ansible_timeout: {own!r} is not a number", "write seconds as a bare number"
        ) from error


def _port(host: str, values: Mapping[str, Any], defaults: ConnectionDefaults) -> int | None:
    text = _text(host, values, "ansible_port", "ansible_ssh_port") or defaults.remote_port
    if text is None:
        return None
    if not text.isdecimal() or not 0 < int(text) < 2**16:
        raise UsageError(f"{host}: ansible_port: {text!r} is no port", "write a bare number from 1 to 65535")
    return int(text)


def _become_password(host: str, values: Mapping[str, Any]) -> SecretStr | None:
    text = _text(host, values, "ansible_become_password", "ansible_become_pass", "ansible_sudo_pass")
    return SecretStr(text) if text else None


def _text(host: str, values: Mapping[str, Any], *names: str) -> str | None:
    """Return the first of these variables that is set, as text.

    Raises:
        UsageError: it is a list or a mapping.
    """
    for name in names:
        value = values.get(name)
        if value is None:
            continue
        if isinstance(value, (str, int, float)) and not isinstance(value, bool):
            return str(value)
        raise UsageError(f"{host}: {name} is no text but a {type(value).__name__}", "write one word or number")
    return None


def _split(host: str, name: str, text: str | None) -> list[str]:
    try:
        return shlex.split(text or "")
    except ValueError as error:
        raise UsageError(f"{host}: {name}: {error}: {text}", "close the quotes") from error
