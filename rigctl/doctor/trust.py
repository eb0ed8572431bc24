"""Trusting a rig for the first time: its key is shown, and recorded once somebody has agreed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rigctl.errors import RigError
from rigctl.fleet.hops import hops_of
from rigctl.fleet.ssh import RigConnection, Untrusted
from rigctl.fleet.trust import record_key

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rigctl.model.rig import Rig


def trust_rig(rig: Rig, agrees: Callable[[Untrusted], bool]) -> tuple[Path, ...]:
    """Record keys, jump hosts' first, until the rig is trusted or `agrees` says no; return the files written to.

    What else keeps the rig from being reached is none of its business.

    Raises:
        RigError: a key could not be recorded.
    """
    written = []
    for _hop in hops_of(rig.login, rig.name):
        untrusted = _shown(rig)
        if untrusted is None or not agrees(untrusted):
            break
        written.append(record_key(untrusted.hop.login, untrusted.key))
    return tuple(written)


def _shown(rig: Rig) -> Untrusted | None:
    """The key that no known_hosts file holds yet; None where the rig is trusted, or cannot be asked."""
    connection = RigConnection(rig.login, rig.name)
    try:
        connection.connect()
    except Untrusted as untrusted:
        return untrusted
    except RigError:
        return None  # the examination that follows meets it again, and says it
    finally:
        connection.close()
    return None
