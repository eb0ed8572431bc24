"""Ramp-up: a burn begins at the cards' lowest power limit, which is raised to its own in steps.

Supply and cooling see the load come over seconds, not at once, and what is wrong shows at a fraction of the power. The
limits as they were found are in a file by then, and the rig itself puts them back whatever happens in between.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any

import pynvml

from .errors import NvmlUnavailable
from .nvml import NVML_ERRORS, Nvml, words_of
from .settings import POWER_LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

STEPS = 4
"""In so many equal steps the limit rises from the lowest to its own."""
LONGEST_SHARE = 0.1
"""A ramp takes this share of its step at most: what is measured is the whole load."""
RAMP = "ramp"
"""The step of samples that are taken while the limits rise."""

log = logging.getLogger(__name__)


class Ramp(threading.Thread):
    """Raises the power limits of all cards; a thread of its own, as NVML's calls can hang."""

    def __init__(
        self,
        limits_mw: Mapping[str, int],
        seconds: float,
        say: Callable[..., None],
        open_nvml: Callable[[], Nvml] = Nvml,
    ) -> None:
        """`limits_mw`: each card's own limit by UUID, mW; `say(event, **detail)` writes an event of the step."""
        super().__init__(name="ramp", daemon=True)
        self._limits_mw = limits_mw
        self._seconds = seconds
        self._say = say
        self._open = open_nvml
        self._ending = threading.Event()

    def run(self) -> None:
        """Lower the limits, then raise them to where they were; at once when told to end."""
        try:
            opened = self._open()
        except NvmlUnavailable as error:
            self._say("ramp_skipped", because=error.message)
            return
        cards = [
            (card.handle, low, self._limits_mw[card.uuid])
            for card in opened.cards
            if card.uuid in self._limits_mw and (low := self._lowest_mw(card.handle)) is not None
        ]
        for step in range(STEPS):
            if not self._set(cards, step / STEPS) or self._ending.wait(self._seconds / STEPS):
                break
        if self._set(cards, 1.0):
            self._say("ramp_finished", cards=len(cards))
        opened.close()

    def hurry(self) -> None:
        """Put the limits back now, without being waited for."""
        self._ending.set()

    def end(self, timeout_s: float) -> bool:
        """Put the limits back now; False when the driver does not answer in this time."""
        self.hurry()
        self.join(timeout_s)
        return not self.is_alive()

    def _lowest_mw(self, handle: Any) -> int | None:
        """The lowest limit that the board takes, mW; None where it lets nobody set one."""
        try:
            low, _high = pynvml.nvmlDeviceGetPowerManagementLimitConstraints(handle)
        except NVML_ERRORS as error:
            self._say("ramp_skipped", because=words_of(error))
            return None
        return int(low)

    def _set(self, cards: list[tuple[Any, int, int]], share: float) -> bool:
        """Set each card's limit at `share` of the way from its lowest to its own; False where a card refuses."""
        try:
            for handle, low, own in cards:
                POWER_LIMIT.write(handle, own if share >= 1 else min(own, round(low + (own - low) * share)))
        except NVML_ERRORS as error:
            self._say("ramp_skipped", because=words_of(error))
            return False
        return True
