"""What the guard goes by: the plan's limits, and what it sees at one moment. Pure data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Limits:
    """What the plan allows."""

    max_gpu_temp_c: float
    stale_sample_s: float
    controller_lost_s: float | None
    """A burn stops after so long without a word from the controller, seconds; None: it was told to do without."""
    expected_gpus: tuple[str, ...]
    history_max_gpu_temp_c: Mapping[str, float] = field(default_factory=dict)
    """By UUID: the settled maximum of the rig's history and a margin, °C."""
    max_gpu_memory_temp_c: float | None = None
    max_cpu_temp_c: float | None = None


@dataclass(frozen=True)
class CardSeen:
    """The newest valid reading of one card."""

    slot: int
    temp_c: float
    t_mono_s: float
    slowdown_temp_c: float | None = None
    soon_c: float | None = None
    """Where the core will be in two seconds, °C; None where it does not rise fast."""
    memory_temp_c: float | None = None
    memory_soon_c: float | None = None
    memory_max_temp_c: float | None = None
    """The highest temperature that the card allows its memory, °C."""
    margin_c: float | None = None
    """How far its hottest spot is from slowing the card down, °C, as newer cards say it."""
    power_brake: bool = False
    """Whether supply or board hold the card back by its power-brake signal."""


@dataclass(frozen=True)
class ProcessorSeen:
    """The newest reading of the processor's package."""

    temp_c: float
    t_mono_s: float
    critical_temp_c: float | None = None
    """What the sensor itself calls critical, °C."""


@dataclass(frozen=True)
class FanStill:
    """A fan or pump whose tachometer says zero although it has turned before, or is asked to turn."""

    name: str
    since_s: float
    slot: int | None = None
    """The card whose fan it is; None: it is the rig's."""


@dataclass(frozen=True)
class OthersWork:
    """Processes on the cards that are none of the run's own."""

    words: str
    """`PID NAME (USER) on slotN`, several joined by commas."""
    first_s: float
    last_s: float
    """When it was seen first and last."""


@dataclass(frozen=True)
class Situation:
    """What the guard sees at one moment; all times on CLOCK_MONOTONIC, seconds."""

    now_s: float
    watched_since_s: float
    """The first valid sample is due from here on."""
    heard_s: float
    """The controller's last word."""
    cards: Mapping[str, CardSeen] = field(default_factory=dict)
    """Newest valid reading by UUID."""
    processor: ProcessorSeen | None = None
    fans_still: tuple[FanStill, ...] = ()
    others: OthersWork | None = None
    spooled_s: float | None = None
    """Since when a reading waits to be written to the disk; None when none waits."""
    spool_error: str | None = None
    asked: str | None = None
    """Why somebody asked the run to stop; None when nobody did."""
