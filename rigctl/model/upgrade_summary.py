"""What became of an upgrade, rig by rig, as people and programs read it afterwards. No I/O."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from rigctl.model.upgrade import RigEnd, Step


class _Plain(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class StepTime(_Plain):
    """One step as it was done, or tried."""

    step: Step
    state: Literal["done", "failed", "cut", "under_way"]
    """`cut`: the controller died or was stopped in it; it was done again, or is yet to be."""
    seconds: float | None = None
    """None where it did not end."""


class FigureChange(_Plain):
    """One figure of the acceptances before and after."""

    name: str
    """`check[subject]`."""
    unit: str = ""
    before: float | None = None
    after: float | None = None


class PackageChange(_Plain):
    """One package that is not as it was; empty: it was, or is, not there."""

    name: str
    before: str = ""
    after: str = ""


class RigSummary(_Plain):
    """One rig: how it ended, what was measured before and after, what changed, how long each step took."""

    end: RigEnd
    rig_class: str
    simulated: bool = False
    before_run: str = ""
    """The acceptance before; empty where there was none."""
    after_run: str = ""
    figures: tuple[FigureChange, ...] = ()
    """Temperatures, power, rates: everything that both acceptances, or one of them, gave a figure for."""
    packages: tuple[PackageChange, ...] = ()
    """Compared whole, with what the rig had before it was touched."""
    other_changes: tuple[str, ...] = ()
    """Holds, files, kernel, loaded driver, cards, links, in sentences."""
    steps: tuple[StepTime, ...] = ()
    seconds: float | None = None
    """From its first step to its end; None where it has none."""
    own_seconds: float | None = None
    """Of these, what is neither change, acceptance nor waiting for users; of a rig upgraded in one go."""


class UpgradeSummary(_Plain):
    """One upgrade."""

    run_id: str
    wishes: str
    started_at: str
    ended_at: str
    """Of the last thing in the journal."""
    rigs: tuple[RigSummary, ...]
    to_do: str = ""
    """What a person does once every rig has it."""
