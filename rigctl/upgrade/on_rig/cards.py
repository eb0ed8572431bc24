"""What each card is set to: its power limit and its persistence mode, as nvidia-smi tells and sets them."""

import re
from typing import Any

from .state import run

_FIELDS = "uuid,enforced.power.limit,persistence_mode"
_MODES = {"Enabled": True, "Disabled": False}
_WATTS = re.compile(r"\d+(\.\d+)?")
ANSWER_S = 30
"""Without persistence every call starts the driver anew; and behind a card that hangs nothing answers."""


def settings() -> dict[str, dict[str, Any]]:
    """UUID → `power_limit_w` and `persistence`; None for what a card does not tell, nothing where no driver answers."""
    words = (f"--query-gpu={_FIELDS}", "--format=csv,noheader,nounits")
    code, text, _ = run("nvidia-smi", *words, timeout_s=ANSWER_S)
    return read_settings(text) if code == 0 else {}


def read_settings(text: str) -> dict[str, dict[str, Any]]:
    """The rows of nvidia-smi; `[N/A]` and other words are None."""
    rows = [[word.strip() for word in line.split(",")] for line in text.splitlines()]
    rows = [row for row in rows if len(row) == _FIELDS.count(",") + 1]
    return {uuid: {"power_limit_w": _watts(limit), "persistence": _MODES.get(mode)} for uuid, limit, mode in rows}


def set_cards(cards: list[dict[str, Any]]) -> dict[str, Any]:
    """Set the cards that are there as they were set before; what then differs all the same is for whoever compares."""
    now = settings()
    for card in cards:
        has = now.get(card["uuid"])
        if has is None:
            continue
        if card["persistence"] is not None and has["persistence"] != card["persistence"]:
            run("nvidia-smi", "-i", card["uuid"], "-pm", str(int(card["persistence"])))
        if card["power_limit_w"] is not None and has["power_limit_w"] != card["power_limit_w"]:
            run("nvidia-smi", "-i", card["uuid"], "-pl", f"{card['power_limit_w']:g}")
    return {}


def _watts(word: str) -> float | None:
    return float(word) if _WATTS.fullmatch(word) else None
