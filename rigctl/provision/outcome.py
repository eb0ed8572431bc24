"""How a provisioning ended, rig by rig."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from rigctl.errors import ExitCode

State = Literal["ok", "changed", "failed", "unreachable", "not_run"]


class RigProvision(BaseModel):
    """What became of one rig."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    state: State
    """`ok`: nothing had to be changed. `not_run`: Ansible ended before it came to the rig."""
    ok: int = 0
    changed: int = 0
    """Number of tasks that changed something: 0 when the rig already was as asked."""
    failed: int = 0
    skipped: int = 0
    role: str = ""
    task: str = ""
    """The task that failed; empty otherwise."""
    message: str = ""
    """What the failed task said, its remedy included."""
    hint: str = ""

    @property
    def complete(self) -> bool:
        """Whether the rig is as asked."""
        return self.state in {"ok", "changed"}


class ProvisionOutcome(BaseModel):
    """What became of the fleet; `provision.json` of the run directory."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: int = 1
    run_id: str
    path: str
    check: bool
    """True: nothing was changed, `changed` counts what would be."""
    seconds: float
    rigs: tuple[RigProvision, ...]

    @property
    def incomplete(self) -> tuple[RigProvision, ...]:
        """The rigs that are not as asked."""
        return tuple(rig for rig in self.rigs if not rig.complete)

    @property
    def exit_code(self) -> ExitCode:
        """0, or 4 where some rig is not as asked."""
        return ExitCode.CHANGE_INCOMPLETE if self.incomplete else ExitCode.OK
