"""Tell the people on the rig what happens to it: `wall`, which writes on every terminal that somebody uses."""

from __future__ import annotations

import logging
import subprocess
import threading
from typing import TYPE_CHECKING

from .places import unit_name

if TYPE_CHECKING:
    from .plan import Plan

TIMEOUT_S = 10
"""A terminal that does not take the words is not waited for any longer, seconds."""
log = logging.getLogger(__name__)


def begins(plan: Plan) -> str:
    """What is told before the first load."""
    minutes = max(1, round(sum(step.seconds for step in plan.steps) / 60))
    return (
        f"{_by(plan)} puts this rig under full load from now on, for {minutes} min at most.\n"
        f"What runs here will be slow. To stop it: sudo systemctl stop {unit_name(plan.run_id)}\n"
    )


def ends(plan: Plan, why: str | None) -> str:
    """What is told when nothing runs any more."""
    return f"{_by(plan)} has ended" + (f": the guard stopped it ({why}).\n" if why else ". The rig is free again.\n")


def leave(plan: Plan, seconds: float) -> str:
    """What is told to those who have to leave."""
    return f"{_by(plan)} needs this rig. Whatever uses it is ended in {seconds:.0f} s, and you are logged out.\n"


def _by(plan: Plan) -> str:
    by = f", asked for by {plan.asked_by}" if plan.asked_by else ""
    return f"rigctl: run {plan.run_id}{by},"


def tell(text: str) -> str | None:
    """Write it on every terminal; why that did not work, or None."""
    try:
        # No banner of its own: the words say who speaks. Without it `wall` needs root, which the agent is.
        done = subprocess.run(["wall", "-n"], input=text.encode(), capture_output=True, timeout=TIMEOUT_S, check=False)
    except FileNotFoundError:
        return "wall is not installed here"
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"wall: {error}"
    return None if done.returncode == 0 else f"wall: {done.stderr.decode(errors='replace').strip()}"


def tell_aside(text: str) -> threading.Thread:
    """Tell without waiting; what did not work stands in the log."""

    def speak() -> None:
        problem = tell(text)
        if problem is not None:
            log.warning("people on this rig were not told: %s", problem)

    speaking = threading.Thread(target=speak, name="wall", daemon=True)
    speaking.start()
    return speaking
