"""How one temperature sensor moves: how fast it rises, and where it will be soon. Pure."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

AHEAD_S = 2.0
"""A limit that will be crossed within this time stops a burn already, seconds."""
STEP_S = 1.0
"""The rise of this last time is compared with the one before it, seconds."""
FAST_C = 2.0
"""A rise of less than this in the last second is left to the limit itself, °C: sensors speak in whole degrees, and four
samples a second follow a slower rise to within half a degree."""
RISING_S = 10.0
RISING_C = 1.0
"""A temperature rises while it is so much above what it was so long ago, °C and seconds."""


@dataclass
class Trend:
    """The last ten seconds of one sensor."""

    _seen: deque[tuple[float, float]] = field(default_factory=deque)
    """Time on CLOCK_MONOTONIC, seconds, and temperature, °C; oldest first."""

    def add(self, t_s: float, temp_c: float) -> None:
        """Take in one reading; one that is not newer than the last is left out."""
        if self._seen and t_s <= self._seen[-1][0]:
            return
        self._seen.append((t_s, temp_c))
        while len(self._seen) > 2 and t_s - self._seen[1][0] >= RISING_S:  # noqa: PLR2004 - one entry must reach back
            self._seen.popleft()

    def soon_c(self) -> float | None:
        """Temperature in two seconds, °C, where it rises fast; None where it does not, or too little was seen.

        A rise that slows down, as that of a die when its load begins, is carried on slowing down in the same way; one
        that does not is carried on as it is.
        """
        if not self._seen:
            return None
        t_s, now_c = self._seen[-1]
        before_c, earlier_c = self._at(t_s - STEP_S), self._at(t_s - 2 * STEP_S)
        if before_c is None or earlier_c is None or now_c - before_c < FAST_C:
            return None
        last, previous = now_c - before_c, before_c - earlier_c
        kept = min(1.0, last / previous) if previous > 0 else 1.0
        steps = round(AHEAD_S / STEP_S)
        return now_c + last * sum(kept**step for step in range(1, steps + 1))

    def rises(self) -> bool:
        """Whether the sensor is warmer than it was ten seconds ago, or than at the first reading since."""
        return bool(self._seen) and self._seen[-1][1] - self._seen[0][1] >= RISING_C

    def _at(self, t_s: float) -> float | None:
        """Temperature at a moment between two readings, °C; None before the first one."""
        later = None
        for at_s, temp_c in reversed(self._seen):
            if at_s <= t_s:
                if later is None or later[0] == at_s:
                    return temp_c
                return temp_c + (later[1] - temp_c) * (t_s - at_s) / (later[0] - at_s)
            later = (at_s, temp_c)
        return None
