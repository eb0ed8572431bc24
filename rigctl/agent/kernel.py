"""The kernel log of this boot, from the journal: Xid lines, link errors, whatever the kernel had to say."""

from __future__ import annotations

import json
import re
import subprocess
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

TIMEOUT_S = 20
EVERY_S = 5.0
"""During a run the log is read so often, seconds: it may be gone after a crash."""
DRIVER_LINES = re.compile(r"NVRM|Xid")


def read_kernel(since_wall_s: float = 0.0) -> tuple[list[dict[str, Any]], str | None]:
    """Kernel messages of this boot since a moment, oldest first; and why the log could not be read, or None."""
    asked = ["journalctl", "-k", "-b", "-o", "json", "--no-pager", "--quiet", "--since", f"@{since_wall_s:.6f}"]
    try:
        done = subprocess.run(asked, capture_output=True, timeout=TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return [], f"journalctl: {error}"
    if done.returncode != 0:
        return [], f"journalctl: {done.stderr.decode(errors='replace').strip() or f'status {done.returncode}'}"
    try:
        messages = [parse_entry(line) for line in done.stdout.splitlines() if line.strip()]
    except (ValueError, KeyError) as error:
        return [], f"journalctl: an entry could not be read: {error!r}"
    return [message for message in messages if message["t_wall_s"] >= since_wall_s], None


def parse_entry(line: bytes) -> dict[str, Any]:
    """One entry of `journalctl -o json`; a message that is not UTF-8 comes as a list of bytes there."""
    entry = json.loads(line)
    message = entry.get("MESSAGE")
    if isinstance(message, list):
        message = bytes(message).decode(errors="replace")
    return {"t_wall_s": int(entry["__REALTIME_TIMESTAMP"]) / 1e6, "message": message or ""}


def log_is_kept() -> str | None:
    """Why nothing found would mean nothing: the journal holds no kernel message of this boot at all; else None."""
    asked = ["journalctl", "-k", "-b", "-n", "1", "-o", "json", "--no-pager", "--quiet"]
    try:
        done = subprocess.run(asked, capture_output=True, timeout=TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"journalctl: {error}"
    return None if done.stdout.strip() else "the journal holds no kernel message of this boot"


class KernelFollower(threading.Thread):
    """Passes on what the kernel says from a moment on."""

    def __init__(self, since_wall_s: float, write: Callable[[dict[str, Any]], None]) -> None:
        super().__init__(name="kernel", daemon=True)
        self._since = since_wall_s
        self._write = write
        self._last: list[dict[str, Any]] = []
        self._ending = threading.Event()

    def run(self) -> None:
        """Read every few seconds until told to end, and once more then."""
        while not self._ending.wait(EVERY_S):
            self.read_new()
        self.read_new()

    def end(self, timeout_s: float) -> bool:
        """Read a last time; False when that takes too long."""
        self._ending.set()
        self.join(timeout_s)
        return not self.is_alive()

    def read_new(self) -> None:
        """Pass on the messages that are new since the last reading."""
        messages, _ = read_kernel(self._since)
        # Those of the last moment are read again: more may have come within the same microsecond.
        for message in messages:
            if message not in self._last:
                self._write(message)
        if messages:
            self._since = messages[-1]["t_wall_s"]
            self._last = [message for message in messages if message["t_wall_s"] == self._since]
