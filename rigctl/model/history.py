"""What earlier runs of a rig have seen, accepted or not."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class PastXid(BaseModel):
    """One Xid message of an earlier run that was a finding there."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    run_id: str
    t_wall_s: float
    """When the kernel said it, seconds since 1970, by the rig's clock."""
    number: int
    uuid: str
    """The card's; empty where nobody knew which card sat at that address."""
    pci_bus_id: str
