"""The kernel log of this boot, from the journal: Xid lines, link errors, whatever the kernel had to say."""

from __future__ import annotations

import json
import re
import subprocess
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

TIMEOUT_S = 20
EVERY_S = 5.0
"""During a run the log is read so often, seconds: it may be gone after a crash."""
DRIVER_LINES = re.compile(r"NVRM|Xid")


class Entry(NamedTuple):
    """One entry of the journal."""

    t_mono_s: float
    """When it came, on CLOCK_MONOTONIC of its boot, seconds: no change of the wall clock moves it."""
    cursor: str
    message: dict[str, Any]


def read_kernel(since_mono_s: float = 0.0) -> tuple[list[dict[str, Any]], str | None]:
    """Kernel messages of this boot since a moment, oldest first; and why the log could not be read, or None."""
    entries, reason = read_entries()
    return [entry.message for entry in entries if entry.t_mono_s >= since_mono_s], reason


def read_entries(after: str | None = None) -> tuple[list[Entry], str | None]:
    """Kernel messages of this boot, those behind the cursor `after` only; and why they could not be read, or None."""
    asked = ["journalctl", "-k", "-b", "-o", "json", "--no-pager", "--quiet"]
    if after is not None:
        asked += ["--after-cursor", after]
    try:
        done = subprocess.run(asked, capture_output=True, timeout=TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return [], f"journalctl: {error}"
    if done.returncode != 0:
        return [], f"journalctl: {done.stderr.decode(errors='replace').strip() or f'status {done.returncode}'}"
    try:
        return [parse_entry(line) for line in done.stdout.splitlines() if line.strip()], None
    except (ValueError, KeyError) as error:
        return [], f"journalctl: an entry could not be read: {error!r}"


def parse_entry(line: bytes) -> Entry:
    """One entry of `journalctl -o json`; a message that is not UTF-8 comes as a list of bytes there."""
    entry = json.loads(line)
    message = entry.get("MESSAGE")
    if isinstance(message, list):
        message = bytes(message).decode(errors="replace")
    told = {"t_wall_s": int(entry["__REALTIME_TIMESTAMP"]) / 1e6, "message": message or ""}
    return Entry(int(entry["__MONOTONIC_TIMESTAMP"]) / 1e6, entry["__CURSOR"], told)


def log_is_kept() -> str | None:
    """Why nothing found would mean nothing: the journal holds no kernel message of this boot at all; else None."""
    asked = ["journalctl", "-k", "-b", "-n", "1", "-o", "json", "--no-pager", "--quiet"]
    try:
        done = subprocess.run(asked, capture_output=True, timeout=TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"journalctl: {error}"
    return None if done.stdout.strip() else "the journal holds no kernel message of this boot"


class KernelFollower(threading.Thread):
    """Passes on what the kernel says from a moment on, on CLOCK_MONOTONIC."""

    def __init__(self, since_mono_s: float, write: Callable[[dict[str, Any]], None]) -> None:
        super().__init__(name="kernel", daemon=True)
        self._since = since_mono_s
        self._write = write
        self._cursor: str | None = None
        self._passed_on: set[str] = set()
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
        entries, _ = read_entries(self._cursor)
        for entry in entries:
            # Where a journal has several files, what stands behind a cursor may hold entries before it (systemd 252).
            if entry.t_mono_s >= self._since and entry.cursor not in self._passed_on:
                self._passed_on.add(entry.cursor)
                self._write(entry.message)
        if entries:
            self._cursor = entries[-1].cursor
