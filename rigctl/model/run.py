"""A run: one acceptance, provisioning or upgrade of a fleet; `run.json` of its directory."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from rigctl.model.baseline import Baseline
from rigctl.model.decision import BaselineDecision
from rigctl.model.history import PastXid
from rigctl.model.spec import ProfileSpec, RigSpec
from rigctl.model.waiver import Waiver


class RunRig(BaseModel):
    """One rig of a run, as it was asked for: enough to judge the run again without the inventory."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    spec: RigSpec
    profile: ProfileSpec | None = None
    waivers: tuple[Waiver, ...] = ()
    baseline: Baseline | None = None
    """What the rig's accepted runs had shown when this one began; None: it was never burnt and accepted."""
    decision: BaselineDecision | None = None
    """What people had decided about its baseline when this one began; None: nothing."""
    past_xids: tuple[PastXid, ...] = ()
    """The Xid messages of its runs in the week before this one, accepted or not."""


class RunInfo(BaseModel):
    """`run.json`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: int = Field(default=1, ge=1, le=1)
    run_id: str
    """`2026-11-30T2300Z-7f3a`."""
    kind: Literal["accept", "check", "provision", "upgrade"]
    profile: str = ""
    started_at: str
    rigctl_version: str
    asked: dict[str, Any] = Field(default_factory=dict)
    """The command's own words: pattern, inventory, options."""
    rigs: tuple[RunRig, ...]
