"""Who drives a run: one process at a time, by a lock that the kernel takes away with the process."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rigctl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LOCK = "controller.lock"
"""In a run's directory, from the moment in which the run may do something; says who drives it."""


@contextmanager
def driven_by_me(run: Path, by: str) -> Iterator[None]:
    """Drive a run alone; the kernel lets go with the process, however that ends. `by` is told to others.

    Raises:
        UsageError: another controller drives it.
    """
    with (run / LOCK).open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise UsageError(
                f"run {run.name} is driven by another process here: {file.read().strip()}",
                "wait for its end, or stop that one with Ctrl-C",
            ) from None
        file.truncate(0)
        print(f"{by}, process {os.getpid()}", file=file, flush=True)
        yield


def is_driven(run: Path) -> bool:
    """Whether a process of this machine drives a run now."""
    try:
        with (run / LOCK).open("r", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False
