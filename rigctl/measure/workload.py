"""What a step beside the burns is made of: one load of the agent, and what the spec says of it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from rigctl.model.reading import Facts
    from rigctl.model.spec import RigSpec


@dataclass(frozen=True)
class Workload:
    """One step that is neither rest nor burn."""

    name: str
    limit_s: float
    """It is stopped after so long, seconds."""
    expected_s: Callable[[RigSpec], float | None]
    """How long it is expected to take, seconds; None where the spec does not ask for it."""
    step: Callable[[RigSpec, Facts], dict[str, Any]]
    """What the plan's step holds beside name and seconds, as the agent reads it: `loads`, and what they need."""


def script(
    name: str, arguments: dict[str, Any], *, python: Literal["system", "torch"], needs_cards: bool
) -> dict[str, Any]:
    """Return the plan's words for a step that runs one of the agent's own programs."""
    program = {"name": name, "python": python, "arguments": arguments, "needs_cards": needs_cards}
    return {"loads": ["script"], "script": program}
