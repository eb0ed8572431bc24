"""What a run directory holds besides readings: how measuring a rig ended, and the journal's lines."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class RigOutcome(BaseModel):
    """`<rig>/outcome.json`: how measuring one rig ended, as the controller saw it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    unreached: str | None = None
    """Why the rig could not be reached or measured; None when it was."""
    unreached_fix: str = ""
    busy: str | None = None
    """Who uses the rig, which was left out for that; None when nobody did."""
    busy_fix: str = ""
    boot_id_after: str | None = None
    """Boot id after the last step; None when nobody could ask."""
    cuts: tuple[str, ...] = ()
    """Connection cuts that were survived, in words."""
    left: str = ""
    """The state in which the rig was left: `idle, limits as found`."""
    kernel_read: bool = False
    """Whether the kernel log could be read: nothing found is not the same as nothing read."""


class JournalEntry(BaseModel):
    """One line of `journal.jsonl`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    seq: int
    t_wall_s: float
    """Seconds since 1970, UTC, by the controller's clock."""
    t_mono_s: float
    """The controller's CLOCK_MONOTONIC: for differences within one boot of the controller."""
    event: str
    detail: dict[str, Any] = Field(default_factory=dict)
