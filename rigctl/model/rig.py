"""A rig: one machine of the inventory, how to reach it and what it must be."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, SecretStr

from rigctl.model.power import Power
from rigctl.model.spec import ProfileSpec, RigSpec
from rigctl.model.waiver import Waiver


class Login(BaseModel):
    """How to reach a rig over SSH, resolved as Ansible resolves it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    address: str
    port: int = 22
    user: str | None = None
    """None: the name of whoever runs rigctl."""
    identity_files: tuple[str, ...] = ()
    known_hosts_files: tuple[str, ...] = ()
    """Empty: the user's own known_hosts and the system's."""
    proxy_jump: str | None = None
    """`user@host:port[,…]`, as in OpenSSH's ProxyJump."""
    proxy_command: str | None = None
    """A command that carries the connection, as in OpenSSH's ProxyCommand; `%h`, `%p` and `%r` still in it."""
    host_key_alias: str | None = None
    """The name under which known_hosts holds the rig, as in OpenSSH's HostKeyAlias."""
    openssh_only: tuple[str, ...] = ()
    """What this login has that OpenSSH's client knows and rigctl's own connection does not, as in ssh_config."""
    connect_timeout_s: float = 10
    become_password: SecretStr | None = None
    become_method: str = "sudo"
    """How Ansible becomes root; rigctl's own connection knows sudo alone."""
    become_flags: str = ""
    """What the inventory gives that method besides."""
    host_keys: str = "ask"
    """OpenSSH's StrictHostKeyChecking, as `ssh -G` prints it. rigctl's own connection always is strict."""


class Rig(BaseModel):
    """One machine of the fleet."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    login: Login
    spec: RigSpec
    profiles: dict[str, ProfileSpec]
    waivers: tuple[Waiver, ...] = ()
    power: Power | None = None
    """How its supply is switched from outside; None where that is not described."""

    @property
    def rig_class(self) -> str:
        """The inventory group `class_*` that the rig belongs to, without the prefix."""
        return self.spec.rig_class

    def with_become_password(self, password: SecretStr) -> Rig:
        """The same rig with a password for sudo, unless the inventory has one: as Ansible's `--ask-become-pass`."""
        if self.login.become_password is not None:
            return self
        login = self.login.model_copy(update={"become_password": password})
        return self.model_copy(update={"login": login})
