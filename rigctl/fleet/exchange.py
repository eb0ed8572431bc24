"""One command over one channel: bytes in, bytes out, until a deadline; no thread and no pause of its own."""

from __future__ import annotations

import select
import time
from typing import Protocol

_CHUNK = 1 << 16
_TICK_S = 1.0
_SENDING_TICK_S = 0.005
"""While bytes wait to be sent: the channel cannot wake us when its window opens."""


class Channel(Protocol):
    """What is used of paramiko's channel."""

    @property
    def closed(self) -> int:
        """Whether the channel was closed, by either side."""

    @property
    def eof_received(self) -> int:
        """Whether the other side has ended its output."""

    def fileno(self) -> int:
        """Return a descriptor that is readable when something arrived."""

    def send_ready(self) -> bool:
        """Whether the window is open."""

    def send(self, data: bytes) -> int:
        """Send what fits the window."""

    def shutdown_write(self) -> None:
        """Say that no more will be sent."""

    def recv_ready(self) -> bool:
        """Whether standard output waits to be read."""

    def recv(self, nbytes: int) -> bytes:
        """Read standard output."""

    def recv_stderr_ready(self) -> bool:
        """Whether standard error waits to be read."""

    def recv_stderr(self, nbytes: int) -> bytes:
        """Read standard error."""


def pump(channel: Channel, stdin: bytes, deadline: float) -> tuple[bytes, bytes]:
    """Feed `stdin` and gather both outputs until the other side has ended them, or the monotonic `deadline`.

    The deadline does not raise: a command without an exit status is the caller's to name. A command may end before it
    has read everything.
    """
    stdout, stderr = bytearray(), bytearray()
    unsent = memoryview(stdin)
    closed_stdin = False
    while time.monotonic() < deadline:
        if unsent and channel.send_ready() and not channel.closed:
            unsent = unsent[channel.send(bytes(unsent[:_CHUNK])) :]
        if not unsent and not closed_stdin:
            channel.shutdown_write()
            closed_stdin = True
        moved = False
        while channel.recv_ready():
            stdout += channel.recv(_CHUNK)
            moved = True
        while channel.recv_stderr_ready():
            stderr += channel.recv_stderr(_CHUNK)
            moved = True
        if moved:
            continue
        # A program may close its outputs and still read: then only the closed channel ends the exchange.
        if channel.closed or (channel.eof_received and not unsent):
            break
        tick = _SENDING_TICK_S if unsent else _TICK_S
        select.select([channel.fileno()], [], [], max(0.0, min(tick, deadline - time.monotonic())))
    return bytes(stdout), bytes(stderr)
