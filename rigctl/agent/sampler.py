"""The sampling thread: NVML calls can hang, so nothing waits for it; the guard sees how old the newest reading is."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Any, Protocol

from .ramp import RAMP
from .seeing import Seeing

if TYPE_CHECKING:
    from collections.abc import Callable

    from .seeing import Thresholds

HEATING_HZ = 4.0
"""While temperatures rise, samples are taken at least so often a second, however few the profile asks for."""
AFTER_START_S = 10.0
"""So long after a load began temperatures are taken as rising, seconds."""
OTHERS_EVERY_S = 1.0
"""The processes on the cards are looked at so often, seconds."""

log = logging.getLogger(__name__)


class Source(Protocol):
    """Where samples come from."""

    def read(self, seq: int, step: str) -> dict[str, Any]:
        """One sample now."""

    def thresholds(self) -> dict[str, Thresholds]:
        """What each card says of its own limits, by UUID."""

    def others_work(self) -> dict[int, str]:
        """Processes on the cards that are not the run's own: words by process id."""


class Sampler(threading.Thread):
    """Reads all sensors at a fixed rate, passes each sample on and keeps what the guard decides on."""

    def __init__(
        self,
        source: Source,
        sample_hz: float,
        write: Callable[[dict[str, Any]], None],
        seeing: Seeing | None = None,
    ) -> None:
        super().__init__(name="sampler", daemon=True)
        self._source = source
        self._hz = sample_hz
        self._write = write
        self._steps_sampled: set[str] = set()
        self._seq = 0
        self._others_due_s = 0.0
        self._loaded_s: float | None = None
        self._ending = threading.Event()
        self._sooner = threading.Event()
        self.seeing = seeing or Seeing()
        self.step = ""

    def run(self) -> None:
        """Sample until told to end; a sample that is late is not made up for."""
        due = time.monotonic()
        while not self._ending.is_set():
            try:
                self._sample()
                self._look_for_others()
            except Exception:
                # The thread's boundary: whatever went wrong, there is no valid sample, and the guard sees that.
                log.exception("a sample could not be taken")
            due = max(due + 1 / self.hz(time.monotonic()), time.monotonic())
            self._wait(due)

    def load_begins(self) -> None:
        """A load begins: temperatures will rise."""
        self._loaded_s = time.monotonic()
        self._sooner.set()

    def hz(self, now_s: float) -> float:
        """Samples a second now: as the plan asks, and at least four while temperatures rise."""
        begun = self._loaded_s is not None and now_s - self._loaded_s < AFTER_START_S
        return max(self._hz, HEATING_HZ) if begun or self.seeing.heats() else self._hz

    def _wait(self, due_s: float) -> None:
        """Wait for the next sample's time; a load that begins meanwhile is looked at from its beginning on."""
        if self._sooner.wait(max(0.0, due_s - time.monotonic())):
            self._sooner.clear()

    def _sample(self) -> None:
        step = self.step
        sample = self._source.read(self._seq, step)
        if RAMP in (step, self.step):
            # The limits moved while the cards were read one after another.
            sample["step"] = step = RAMP
        self._seq += 1
        self.seeing.take(sample, self._source.thresholds())
        self._write(sample)
        self._steps_sampled.add(step)

    def _look_for_others(self) -> None:
        now_s = time.monotonic()
        if now_s >= self._others_due_s:
            self._others_due_s = now_s + OTHERS_EVERY_S
            self.seeing.take_others(self._source.others_work(), now_s)

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
        self._sooner.set()
        self.join(timeout_s)
        return not self.is_alive()
