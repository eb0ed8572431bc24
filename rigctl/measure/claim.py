"""What a run may claim of a rig: whose run it is, and which of the two risks were asked for."""

from __future__ import annotations

import getpass
import socket
from dataclasses import dataclass, field


def somebody() -> str:
    """`user@host` of whoever runs rigctl here; what the rig tells others while the run is under way."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user number without a name, in a container for example
        user = "unknown"
    return f"{user}@{socket.gethostname()}"


@dataclass(frozen=True)
class Claim:
    """Two different words for two different risks."""

    asked_by: str = field(default_factory=somebody)
    evict_users: bool = False
    """Who uses the rig is told to leave, and made to."""
    ignore_lock: bool = False
    """Another run of rigctl that is under way there is stopped; a rig that an upgrade holds is taken all the same."""
    upgrade: str = ""
    """The upgrade that the run is a part of."""
