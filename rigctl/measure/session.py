"""One rig's connection with its agent, for as long as a run lasts: cuts are survived, noted and bounded."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

from rigctl.errors import ConnectionLost, HostKeyChanged, HostKeyUnknown, RigError, RigUnreachable
from rigctl.fleet.delivery import AgentSilent, RemoteAgent
from rigctl.fleet.ssh import RigConnection

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from rigctl.model.rig import Rig

CALL_TIMEOUT_S = 30
"""One short question to the agent must be answered within this time, seconds."""
GIVE_UP_S = 300
"""A rig that cannot be reached again for so long is lost, seconds."""
MAX_WAIT_S = 5
"""Longest pause between two attempts to reconnect, seconds."""


class Cancelled(RigError):
    """The person at the controller asked to stop."""


class _NoRoute(RigError):
    """Neither connected nor refused for a reason that time would not mend: worth another attempt."""


class RigSession:
    """The agent on one rig, behind one connection that is made again when it breaks."""

    def __init__(self, rig: Rig, cancel: threading.Event, say: Callable[[str], None]) -> None:
        self.rig = rig
        self.connection = RigConnection(rig.login, rig.name)
        self.agent = RemoteAgent(self.connection)
        self.cuts: list[str] = []
        self._cancel = cancel
        self._say = say

    def open(self) -> None:
        """Connect and deliver the agent. Raises RigError with the remedy; nothing is tried twice."""
        self.connection.connect()
        self.agent.deliver()

    def call(self, *args: str, stdin: bytes = b"", timeout_s: float = CALL_TIMEOUT_S) -> dict[str, Any]:
        """Ask the agent once. Raises RigError."""
        reply: dict[str, Any] = self.agent.call(*args, timeout_s=timeout_s, stdin=stdin)
        return reply

    def ask(self, *args: str, during: str, stdin: bytes = b"", timeout_s: float = CALL_TIMEOUT_S) -> dict[str, Any]:
        """Ask the agent something that may be asked twice; reconnect for up to 300 s when the connection breaks.

        A rig under full load may once be too slow to answer: that is met in the same way.

        `during` names the step for the note on the cut. Raises ConnectionLost when the rig stays away, Cancelled when
        the person at the controller asked to stop, RigError when the agent refused.
        """
        try:
            return self.call(*args, stdin=stdin, timeout_s=timeout_s)
        except (ConnectionLost, RigUnreachable, AgentSilent) as error:
            return self._ask_again(*args, during=during, stdin=stdin, timeout_s=timeout_s, first=error)

    def _ask_again(self, *args: str, during: str, stdin: bytes, timeout_s: float, first: RigError) -> dict[str, Any]:
        lost_at = time.monotonic()
        self._say(f"connection lost ({first.message}); reconnecting")

        def attempt() -> dict[str, Any]:
            if self._cancel.is_set():
                raise Cancelled("stopped while reconnecting")
            try:
                self.connection.close()
                self.connection.connect()
                return self.call(*args, stdin=stdin, timeout_s=timeout_s)
            except (HostKeyUnknown, HostKeyChanged):
                raise
            except (ConnectionLost, RigUnreachable, AgentSilent) as error:
                # A login that was accepted before is refused for a while by a rig that boots (pam_nologin).
                raise _NoRoute(error.message, error.hint) from error

        try:
            reply = Retrying(
                retry=retry_if_exception_type(_NoRoute),
                stop=stop_after_delay(GIVE_UP_S),
                wait=wait_random_exponential(multiplier=0.5, max=MAX_WAIT_S),
                retry_error_callback=_raise_last,
            )(attempt)
        except _NoRoute as error:
            seconds = time.monotonic() - lost_at
            raise ConnectionLost(
                f"lost at {during}: no connection for {seconds:.0f} s ({error.message})",
                f"is the rig on? `rigctl doctor {self.rig.name}`; its burn has stopped by itself",
            ) from error
        seconds = time.monotonic() - lost_at
        self.cuts.append(f"connection cut for {seconds:.0f} s during {during}, then resumed")
        self._say("")
        return reply

    def close(self) -> None:
        """Close the connection; the rig goes on by itself."""
        self.connection.close()


def _raise_last(state: RetryCallState) -> dict[str, Any]:
    if state.outcome is None:
        raise ConnectionLost("no attempt to reconnect was made")
    reply: dict[str, Any] = state.outcome.result()
    return reply
