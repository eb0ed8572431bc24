"""What simulated rigs keep between runs, and locks that let one process at a time change something."""

from __future__ import annotations

import fcntl
from contextlib import contextmanager
from typing import TYPE_CHECKING

from platformdirs import user_cache_path

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def cache_dir() -> Path:
    """Return the folder where wheels and environments are kept between runs; made when absent."""
    folder = user_cache_path("rigctl") / "sim"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def only_one(name: str) -> Iterator[None]:
    """Let one process at a time do what `name` stands for; others wait. The lock goes with its process."""
    with (cache_dir() / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def held(path: Path) -> Iterator[bool]:
    """Hold the lock file at `path` where it is free; yields whether it was."""
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
