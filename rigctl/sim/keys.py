"""Keys and OpenSSH files of simulated rigs. Every host key is made here, so that each rig is known before it starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from rigctl.sim.state import USER

if TYPE_CHECKING:
    from pathlib import Path

    from rigctl.sim.state import State


@dataclass(frozen=True)
class KeyPair:
    """An Ed25519 key pair in OpenSSH's forms."""

    private: bytes
    public: str
    """`ssh-ed25519 AAAA…`, one line."""


def key_pair(path: Path) -> KeyPair:
    """Return the key pair kept at `path` and `path.pub`; make it when there is none."""
    public_path = path.with_name(path.name + ".pub")
    if path.exists() and public_path.exists():
        return KeyPair(path.read_bytes(), public_path.read_text(encoding="ascii").strip())
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode("ascii")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_bytes(private)
    public_path.write_text(public + "\n", encoding="ascii")
    return KeyPair(private, public)


def write_ssh_files(state: State) -> None:
    """Write `known_hosts` and `ssh_config` for the rigs of `state`."""
    known = "".join(f"[127.0.0.1]:{rig.port} {rig.host_key}\n" for rig in state.rigs)
    state.known_hosts.write_text(known, encoding="ascii")
    state.ssh_config.write_text(
        "\n".join(_host_block(state, rig.name, rig.port) for rig in state.rigs), encoding="utf-8"
    )


def _host_block(state: State, name: str, port: int) -> str:
    return (
        f"Host {name}\n"
        "  HostName 127.0.0.1\n"
        f"  Port {port}\n"
        f"  User {USER}\n"
        f'  IdentityFile "{state.identity_file}"\n'
        "  IdentitiesOnly yes\n"
        f'  UserKnownHostsFile "{state.known_hosts}"\n'
        "  GlobalKnownHostsFile /dev/null\n"
        "  StrictHostKeyChecking yes\n"
    )
