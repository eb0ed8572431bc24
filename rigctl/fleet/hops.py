"""The way to a rig: its jump hosts, one login each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rigctl.errors import RigUnreachable
from rigctl.model.rig import Login

if TYPE_CHECKING:
    from collections.abc import Iterator

_HOP = re.compile(r"(?:ssh://)?(?:(?P<user>[^@]+)@)?(?:\[(?P<six>[^\]]+)\]|(?P<address>[^:@]+))(?::(?P<port>\d+))?")


@dataclass(frozen=True)
class Hop:
    """One connection on the way."""

    label: str
    """As errors name it: the rig, or `rig1: jump host bastion`."""
    login: Login
    is_rig: bool


def hops_of(login: Login, name: str) -> Iterator[Hop]:
    """Yield the jump hosts in order, then the rig itself.

    A jump host is logged in to with the rig's own keys (and those of the SSH agent) and known_hosts files.

    Raises:
        RigUnreachable: `proxy_jump` cannot be read.
    """
    for text in (login.proxy_jump or "").split(","):
        if not text.strip():
            continue
        found = _HOP.fullmatch(text.strip())
        if found is None:
            raise RigUnreachable(f"{name}: {text!r} is no jump host", "write it as user@host:port")
        jump = Login(
            address=found["six"] or found["address"],
            port=int(found["port"] or 22),
            user=found["user"],
            identity_files=login.identity_files,
            known_hosts_files=login.known_hosts_files,
            connect_timeout_s=login.connect_timeout_s,
        )
        yield Hop(f"{name}: jump host {jump.address}", jump, is_rig=False)
    yield Hop(name, login, is_rig=True)
