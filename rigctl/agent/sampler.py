"""The sampling thread: NVML calls can hang, so nothing waits for it; the guard sees how old the newest reading is."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Any, Protocol

from .decide import CardSeen

if TYPE_CHECKING:
    from collections.abc import Callable

log = logging.getLogger(__name__)


class Source(Protocol):
    """Where samples come from."""

    def read(self, seq: int, step: str) -> dict[str, Any]:
        """One sample now."""

    def slowdown_temps_c(self) -> dict[str, float]:
        """The temperature at which each card slows itself down, °C, by UUID."""


class Sampler(threading.Thread):
    """Reads all sensors at a fixed rate, passes each sample on and keeps the newest valid reading of each card."""

    def __init__(self, source: Source, sample_hz: float, write: Callable[[dict[str, Any]], None]) -> None:
        super().__init__(name="sampler", daemon=True)
        self._source = source
        self._period_s = 1 / sample_hz
        self._write = write
        self._lock = threading.Lock()
        self._cards: dict[str, CardSeen] = {}
        self._steps_sampled: set[str] = set()
        self._seq = 0
        self._ending = threading.Event()
        self.step = ""

    def run(self) -> None:
        """Sample until told to end; a sample that is late is not made up for."""
        due = time.monotonic()
        while not self._ending.is_set():
            try:
                self._sample()
            except Exception:
                # The thread's boundary: whatever went wrong, there is no valid sample, and the guard sees that.
                log.exception("a sample could not be taken")
            due = max(due + self._period_s, time.monotonic())
            self._ending.wait(due - time.monotonic())

    def _sample(self) -> None:
        step = self.step
        sample = self._source.read(self._seq, step)
        self._seq += 1
        self._see(sample, self._source.slowdown_temps_c())
        self._write(sample)
        self._steps_sampled.add(step)

    def _see(self, sample: dict[str, Any], slowdown: dict[str, float]) -> None:
        seen = {
            card["uuid"]: CardSeen(card["slot"], card["temp_c"], sample["t_mono_s"], slowdown.get(card["uuid"]))
            for card in sample["gpus"]
            if card.get("error") is None and card.get("temp_c") is not None
        }
        with self._lock:
            self._cards.update(seen)

    def cards(self) -> dict[str, CardSeen]:
        """Newest valid reading of each card, by UUID."""
        with self._lock:
            return dict(self._cards)

    def has_sampled(self, step: str) -> bool:
        """Whether a sample of that step was taken."""
        return step in self._steps_sampled

    @property
    def count(self) -> int:
        """Samples taken."""
        return self._seq

    def end(self, timeout_s: float) -> bool:
        """Take no further sample; False when the thread hangs in a call and does not end."""
        self._ending.set()
        self.join(timeout_s)
        return not self.is_alive()
