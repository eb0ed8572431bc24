"""What an Ansible that was ended leaves running on the controller."""

from __future__ import annotations

import os
import signal
from pathlib import Path

MARK = "RIGCTL_PROVISION"
"""Variable of the environment by which the processes of one run are known."""


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
