"""One request as JSON, one answer as JSON: what an upgrade asks of a rig."""

import json
import sys
from collections.abc import Callable
from typing import Any

from . import held, holders, kept, planning, state
from .state import Refused

WORK: dict[str, Callable[..., dict[str, Any]]] = {
    "plan": planning.plan,
    "capture": state.capture,
    "keep": kept.keep,
    "restore": kept.restore,
    "forget": kept.forget,
    "lock": held.lock,
    "unlock": held.unlock,
    "release": holders.release,
    "start_again": holders.start_again,
}


def main(argument: str) -> None:
    """Print the answer; a refusal is `error` and `hint`."""
    request = json.loads(argument)
    try:
        answer = WORK[request.pop("do")](**request)
    except Refused as refused:
        answer = {"error": refused.said, "hint": refused.remedy}
    json.dump(answer, sys.stdout)
