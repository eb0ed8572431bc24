"""Waivers: deviations of one rig that people have accepted, each with its reason and its end.

`host_vars/RIG/waivers.yml` holds one key, `rig_waivers`, a list. A waiver turns a `fail` (or a `warn`) of its check
into `waived`; it never touches an `error`, because what was not measured cannot have been accepted.
"""

from __future__ import annotations

from datetime import date

from pydantic import BaseModel, ConfigDict, Field


class WrittenWaiver(BaseModel):
    """One waiver as it is written in a file."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    check: str
    """Id of the check, such as `thermals.settled_gpu_temp`."""
    subject: str | None = Field(default=None, min_length=1)
    """`rig`, `slot2`, `slot2 (…a91f)` or `slot1-slot2`; None: every subject of the check."""
    reason: str = Field(pattern=r"\S")
    until: date
    """The last day (UTC) on which it holds."""


class Waiver(WrittenWaiver):
    """One waiver with the place where it stands."""

    origin: str
    """The file as people know it, relative to the inventory: `host_vars/rig1/waivers.yml`."""

    def covers(self, check: str, subject: str) -> bool:
        """Whether it speaks of this verdict. A slot without a UUID's end means whatever card sits there."""
        slot = subject.partition(" ")[0]
        return check == self.check and self.subject in (None, subject, slot)

    def expired(self, today: date) -> bool:
        """Whether its last day is over."""
        return today > self.until

    @property
    def about(self) -> str:
        """What it speaks of: `thermals.settled_gpu_temp[slot2]`, or the check alone."""
        return self.check if self.subject is None else f"{self.check}[{self.subject}]"
