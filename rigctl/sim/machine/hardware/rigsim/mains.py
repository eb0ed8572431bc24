"""A power supply that does not bear steps of its load, and what becomes of the rig then."""

from __future__ import annotations

import ctypes
import os
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .faults import Applied
    from .paths import Paths

STEP_S = 0.5
"""A rise within this time is a step to a supply, real seconds; a burn's ramp takes longer."""
_RESTART = 0x01234567
"""reboot(2): LINUX_REBOOT_CMD_RESTART."""
_REAL = Path("/run/rigsim")


class Supply:
    """The power at the wall in the last moments."""

    def __init__(self) -> None:
        self._now_s = 0.0
        self._seen: deque[tuple[float, float]] = deque()

    def trips(self, dt_s: float, wall_w: float, active: Sequence[Applied]) -> bool:
        """Whether the supply goes off at this moment: its load rose at once by more than it bears."""
        self._now_s += dt_s
        self._seen.append((self._now_s, wall_w))
        while self._seen[0][0] < self._now_s - STEP_S:
            self._seen.popleft()
        most_w = next((one.values["watts"] for one in active if one.name == "psu_trip"), None)
        lowest_w = min(watts for _, watts in self._seen)
        return most_w is not None and wall_w - lowest_w > most_w


def go_off(paths: Paths) -> None:
    """Lose power in the middle of everything, and come back as a board does that is set to. Returns only on refusal.

    Nothing is written out, nobody is asked. Raises RuntimeError outside of a simulated rig: there it would be the host
    that restarts.
    """
    if paths.run != _REAL or not (_REAL / "boot_id").exists():
        raise RuntimeError("only a simulated rig goes off")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.reboot(_RESTART) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
