"""What an upgrade needs of a rig and of whatever hands work to it; the machine of steps knows nothing else of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from rigctl.errors import ExitCode, RigctlError

if TYPE_CHECKING:
    from rigctl.model.upgrade import Capture, RigPlan, Wishes


class StepFailed(RigctlError):
    """A step did not reach its end; the rig goes back."""

    exit_code = ExitCode.CHANGE_INCOMPLETE


class Stopped(Exception):
    """The controller was told to stop; the journal knows how far each rig has come."""


@dataclass(frozen=True)
class Smoke:
    """A smoke acceptance of one rig."""

    run_id: str
    accepted: bool
    why_not: str = ""
    """The first cause in a sentence; empty where it was accepted."""
    figures: dict[str, float] = field(default_factory=dict)
    """`check[subject]` → what was found: rates, temperatures, watts."""
    units: dict[str, str] = field(default_factory=dict)
    """The units of those that have one."""
    simulated: bool = False


class RigPort(Protocol):
    """One rig; every method raises RigError where the rig cannot be reached, and can be called again."""

    def plan(self, wishes: Wishes) -> RigPlan:
        """Say what would be done; changes nothing."""

    def lock(self, run_id: str, *, ignore: bool = False) -> str:
        """Take the rig for a run; return '' or who holds it, since when. Whoever holds it already is given it again."""

    def unlock(self, run_id: str) -> None:
        """Let go of it; nothing where another run holds it."""

    def capture(self, run_id: str, *, keep_old: bool) -> Capture:
        """Note what the rig has; with `keep_old` fetch what a way back needs. Raises StepFailed where that is gone."""

    def users(self) -> tuple[str, ...]:
        """Who uses cards or processor, in words, jobs of a scheduler included."""

    def smoke(self, label: str) -> Smoke:
        """Accept the rig with its profile `smoke`; who still uses it is made to leave where that was asked for."""

    def release(self, wishes: Wishes) -> tuple[str, ...]:
        """Stop what holds the cards where the wishes need them free, and return it in words.

        Raises StepFailed where that is somebody's program, or what has come since the plan stands in the way.
        """

    def start_again(self) -> None:
        """Start what was stopped and has not come back by itself. Raises StepFailed."""

    def change(self, wishes: Wishes) -> None:
        """Write the wishes into the inventory, provision, start again what was stopped. Raises StepFailed."""

    def seen(self) -> Capture:
        """Say what it has now, in the form of a capture; changes nothing."""

    def restore(self, capture: Capture) -> None:
        """Put packages, holds, files and inventory back, restart, and start what was stopped. Raises StepFailed."""

    def doing(self) -> str:
        """Say what the present call is at, as `part · detail`, or nothing; another thread asks."""


class Drain(Protocol):
    """Whatever hands work to a rig."""

    def look(self) -> str:
        """Ask whether the rig could be drained; return '' or the reason of others who have done so. Changes nothing.

        Raises:
            RigError: it does not answer.
            StepFailed: it could not be drained.
        """

    def drain(self, reason: str) -> str:
        """Let nothing new begin; return '' or, where others have drained it already, their reason."""

    def jobs(self) -> tuple[str, ...]:
        """What still runs there, in words."""

    def resume(self, reason: str) -> bool:
        """Give it back, where it was drained with this very reason; return whether it was."""
