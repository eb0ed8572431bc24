"""One request as JSON, one answer as JSON: what an upgrade asks of a rig."""

import json
import sys
from collections.abc import Callable
from typing import Any

from . import cards, held, holders, kept, planning, state
from .state import Refused


def plan(**wishes: Any) -> dict[str, Any]:
    """Say what the roles would do, and which holds stand in the way."""
    answer = planning.plan(**wishes)
    return {**answer, "held": planning.held_among(answer["packages"])}


def capture() -> dict[str, Any]:
    """Everything that is compared afterwards, but for what the agent knows of cards and links."""
    return {**state.capture(), "cards": cards.settings()}


WORK: dict[str, Callable[..., dict[str, Any]]] = {
    "plan": plan,
    "can_build": planning.can_build,
    "capture": capture,
    "keep": kept.keep,
    "restore": kept.restore,
    "forget": kept.forget,
    "lock": held.lock,
    "unlock": held.unlock,
    "release": holders.release,
    "start_again": holders.start_again,
    "set_cards": cards.set_cards,
}


def main(argument: str) -> None:
    """Print the answer; a refusal is `error` and `hint`."""
    request = json.loads(argument)
    try:
        answer = WORK[request.pop("do")](**request)
    except Refused as refused:
        answer = {"error": refused.said, "hint": refused.remedy}
    json.dump(answer, sys.stdout)
