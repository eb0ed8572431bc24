"""One start on a rig at a time: who looks whether the rig is free holds it until its guard runs, or is refused."""

from __future__ import annotations

import contextlib
import fcntl
import time
from typing import TYPE_CHECKING, TextIO

from .errors import AgentError
from .places import checked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .places import Places

LOCK_S = 30
"""A start that is under way is waited for at most so long, seconds."""
_LOOK_S = 0.05


@contextlib.contextmanager
def rig_held(run_id: str, places: Places) -> Iterator[None]:
    """Hold the rig for `run_id`; AgentError names the run that holds it, when that one does not let go.

    The kernel lets go of it with the process, however that ends.
    """
    path = places.start_lock
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", encoding="ascii") as file:
        deadline = time.monotonic() + LOCK_S
        while not _taken(file):
            if time.monotonic() >= deadline:
                holder = path.read_text(encoding="ascii").strip() or "another run"
                raise AgentError(f"{holder} is being started on this rig", "wait for its end; nothing was started")
            time.sleep(_LOOK_S)
        file.truncate(0)
        file.write(f"run {checked(run_id)}\n")
        file.flush()
        yield


def _taken(file: TextIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
