"""The rig's clocks: monotonic for decisions, wall for people, the boot id to tell one boot from another."""

from __future__ import annotations

import time
from pathlib import Path

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def boot_id() -> str:
    """Identity of this boot, as the kernel says it."""
    return BOOT_ID.read_text(encoding="ascii").strip()


def stamp() -> dict[str, float]:
    """CLOCK_MONOTONIC and CLOCK_REALTIME now, seconds."""
    return {"t_mono_s": round(time.monotonic(), 4), "t_wall_s": round(time.time(), 4)}
