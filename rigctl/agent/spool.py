"""The spool: what a run has read, on the rig's disk until the controller has fetched it.

Lines are written by a thread of their own, so that a slow or hanging disk holds neither the sampling nor the guard:
the guard sees how long a line has been waiting, and the error of a write that failed.
"""

from __future__ import annotations

import base64
import json
import os
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

FSYNC_S = 0.5
"""Readings are on the disk at most so long after they were written, seconds; events at once."""
RESERVE_BYTES = 256 * 1024
"""Kept free for the last events of a run that found its disk full."""
CHUNK_BYTES = 512 * 1024
"""Most that one poll takes from one file."""
TELEMETRY = "telemetry.jsonl"
EVENTS = "events.jsonl"
KERNEL = "kernel.jsonl"
RESERVE = ".reserve"


class Spool:
    """Appends JSON lines to the files of one run; `append` never waits for the disk."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.error: str | None = None
        """The first write that failed; cleared by `use_reserve`."""
        self._waiting: deque[tuple[str, bytes, float]] = deque()
        self._files: dict[str, int] = {}
        self._dirty: set[str] = set()
        self._synced_s = time.monotonic()
        self._wake = threading.Event()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="spool", daemon=True)

    def start(self) -> None:
        """Set the reserve aside and start writing. Raises OSError when the disk is full already."""
        reserve = self.folder / RESERVE
        reserve.write_bytes(b"\0" * RESERVE_BYTES)
        self._thread.start()

    def append(self, file: str, line: dict[str, Any]) -> None:
        """Have one JSON line written."""
        data = json.dumps(line, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
        self._waiting.append((file, data, time.monotonic()))
        self._wake.set()

    def waiting_since_s(self) -> float | None:
        """CLOCK_MONOTONIC at which the oldest unwritten line came; None when all are written."""
        try:
            return self._waiting[0][2]
        except IndexError:
            return None

    def use_reserve(self) -> None:
        """Give the reserve back to the disk and try the lines that failed again."""
        (self.folder / RESERVE).unlink(missing_ok=True)
        self.error = None
        self._wake.set()

    def close(self, timeout_s: float) -> bool:
        """Write and sync everything; False when that did not work within `timeout_s`."""
        self._closing = True
        self._wake.set()
        self._thread.join(timeout_s)
        if self._thread.is_alive() or self._waiting or self.error is not None:
            return False
        (self.folder / RESERVE).unlink(missing_ok=True)
        return True

    def _run(self) -> None:
        while True:
            self._wake.wait(FSYNC_S / 2)
            self._wake.clear()
            try:
                self._write_waiting()
                self._sync(now=self._closing)
            except OSError as error:
                self.error = f"{error.filename or self.folder}: {error.strerror}"
                if self._closing:
                    return
                time.sleep(FSYNC_S / 2)  # a full disk may get room again; until then no busy loop
                continue
            if self._closing and not self._waiting:
                return

    def _write_waiting(self) -> None:
        while self._waiting:
            file, data, came = self._waiting[0]
            written = os.write(self._open(file), data)
            if written < len(data):
                # The disk took a part: the rest follows, so that the line stays whole.
                self._waiting[0] = (file, data[written:], came)
                continue
            self._dirty.add(file)
            self._waiting.popleft()
            if file == EVENTS:
                self._sync(now=True)

    def _open(self, file: str) -> int:
        if file not in self._files:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            self._files[file] = os.open(self.folder / file, flags, 0o600)
        return self._files[file]

    def _sync(self, *, now: bool) -> None:
        if not self._dirty or (not now and time.monotonic() - self._synced_s < FSYNC_S):
            return
        for file in sorted(self._dirty):
            os.fsync(self._files[file])
        self._dirty.clear()
        self._synced_s = time.monotonic()


def readings_of(folder: Path) -> list[Path]:
    """The files of a spool that the controller fetches; what is hidden or unfinished is not one of them."""
    return sorted(
        path for path in folder.iterdir() if path.is_file() and not path.name.startswith(".") and path.suffix != ".part"
    )


def read_from(path: Path, offset: int) -> dict[str, Any]:
    """At most 512 KiB of a file from `offset` on: bytes as they are, in base64, and the file's size now."""
    with path.open("rb") as file:
        file.seek(offset)
        data = file.read(CHUNK_BYTES)
        size = os.fstat(file.fileno()).st_size
    return {"offset": offset, "data": base64.b64encode(data).decode("ascii"), "size": size}
