"""What an Ansible that was ended leaves running on the controller."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

MARK = "RIGCTL_PROVISION"
"""Variable of the environment by which the processes of one run are known."""


_WELL = b"."
_AGAIN_S, _TIMES = 0.2, 25
"""What was being started when its parent was ended shows up within this time, seconds, and is looked for so often."""


@contextmanager
def watched(run: str) -> Iterator[None]:
    """Have a small process of its own end this run's Ansible if rigctl itself is killed outright.

    It waits for a word through a pipe; the kernel closes that when rigctl is gone, whatever ended it.
    """
    watcher = subprocess.Popen(
        [sys.executable, "-I", __file__, run],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
    finally:
        watcher.communicate(_WELL)


def end_left_over(run: str) -> list[int]:
    """End every process of this run that is still there; return their ids.

    Ansible's workers have sessions of their own, so that they outlive the group that ansible-runner kills. Over its
    own SSH a worker ends with its task; a worker that waits for an answer through Mitogen would wait for ever.
    """
    wanted = f"{MARK}={run}".encode()
    found = [int(folder.name) for folder in Path("/proc").glob("[0-9]*") if wanted in _environment(folder)]
    ended = []
    for pid in found:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue  # it has ended by itself meanwhile
        ended.append(pid)
    return ended


def _environment(folder: Path) -> list[bytes]:
    try:
        return (folder / "environ").read_bytes().split(b"\0")
    except OSError:  # it has ended, or is another user's
        return []


def _watch(run: str) -> None:
    """Be the watcher."""
    if sys.stdin.buffer.read(len(_WELL)) == _WELL:
        return
    quiet = 0
    while quiet < _TIMES:
        quiet = 0 if end_left_over(run) else quiet + 1
        time.sleep(_AGAIN_S)


if __name__ == "__main__":
    _watch(sys.argv[1])
