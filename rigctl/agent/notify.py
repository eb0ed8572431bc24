"""systemd's notification protocol, as in sd_notify(3): one datagram to the socket that the unit was given."""

from __future__ import annotations

import os
import socket


class Notifier:
    """Says `READY=1`, `WATCHDOG=1` and a status line; says nothing outside of a unit."""

    def __init__(self, address: str | None) -> None:
        # A leading @ stands for the null byte of an abstract socket.
        self._address = "\0" + address[1:] if address and address.startswith("@") else address

    @classmethod
    def from_environment(cls) -> Notifier:
        """Take the socket of this unit out of the environment, so that no load inherits it."""
        os.environ.pop("WATCHDOG_USEC", None)
        os.environ.pop("WATCHDOG_PID", None)
        return cls(os.environ.pop("NOTIFY_SOCKET", None))

    def _say(self, text: str) -> None:
        if self._address is None:
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
            channel.settimeout(0)  # a full queue must not hold the main loop; the next word comes soon
            try:
                channel.sendto(text.encode(), self._address)
            except BlockingIOError:
                return

    def ready(self, status: str) -> None:
        """The guard watches now."""
        self._say(f"READY=1\nSTATUS={status}")

    def alive(self) -> None:
        """Keep the watchdog from killing the unit."""
        self._say("WATCHDOG=1")

    def patience(self, seconds: float) -> None:
        """From now on the watchdog waits so long: nothing runs any more that could do harm."""
        self._say(f"WATCHDOG=1\nWATCHDOG_USEC={round(seconds * 1e6)}")

    def status(self, status: str) -> None:
        """One line that `systemctl status` and `poll` show."""
        self._say(f"STATUS={status}")

    def stopping(self) -> None:
        """The unit is about to end."""
        self._say("STOPPING=1")
