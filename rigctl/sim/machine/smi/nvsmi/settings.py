"""`-pl` and `-pm`: what nvidia-smi sets, and how it says so."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

from .nvml import NO_PERMISSION, NvmlError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .card import Card

TERMINATING = "Terminating early due to previous errors.\n"
INVALID_ARGUMENT = 2


def set_power_limit(cards: Sequence[Card], watts: float) -> tuple[str, int]:
    """Set the limit of each card; the text and the exit status."""
    text = ""
    for card in cards:
        low, high = card.power_range()
        before = card.number("limit_mw") or 0
        asked = round(1000 * watts)
        if not low <= asked <= high:
            text += (
                f"Provided power limit {watts:.2f} W is not a valid power limit which should be between "
                f"{low / 1000:.2f} W and {high / 1000:.2f} W for GPU {card.bus_id}\n{TERMINATING}"
            )
            return text, INVALID_ARGUMENT
        try:
            card.nvml.call("nvmlDeviceSetPowerManagementLimit", card.handle, ctypes.c_uint(asked))
        except NvmlError as failed:
            return text + _refused("power management limit", card, failed), failed.code
        if not card.number("persistence"):
            text += f"Warning: persistence mode is disabled on device {card.bus_id}.\n"
        text += f"Power limit for GPU {card.bus_id} was set to {watts:.2f} W from {before / 1000:.2f} W.\n"
    return text + "All done.\n", 0


def set_persistence(cards: Sequence[Card], mode: int) -> tuple[str, int]:
    """Set persistence mode of each card; the text and the exit status."""
    text, word = "", "Enabled" if mode else "Disabled"
    for card in cards:
        if card.number("persistence") == mode:
            text += f"Persistence mode is already {word} for GPU {card.bus_id}.\n"
            continue
        try:
            card.nvml.call("nvmlDeviceSetPersistenceMode", card.handle, ctypes.c_uint(mode))
        except NvmlError as failed:
            return text + _refused("persistence mode", card, failed), failed.code
        text += f"{word} persistence mode for GPU {card.bus_id}.\n"
    return text + "All done.\n", 0


def _refused(what: str, card: Card, failed: NvmlError) -> str:
    reason = "Insufficient Permissions" if failed.code == NO_PERMISSION else str(failed)
    return f"Failed to set {what} for GPU {card.bus_id}: {reason}\n{TERMINATING}"
