"""What the index knows of a rig's runs: one `Past` a run and rig, one `Point` a figure that a check found."""

from __future__ import annotations

from datetime import date

from pydantic import BaseModel, ConfigDict, Field

from rigctl.model.verdict import Verdict


class Cause(BaseModel):
    """A failed or unmeasured verdict that follows from no other."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    check: str
    subject: str
    verdict: Verdict
    reason: str
    fix: str = ""


class CardPart(BaseModel):
    """One card as it was in a run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    uuid: str
    subject: str
    """`slot2 (…a91f)`, as verdicts name it."""
    slot: str
    """`slot2`, without the card's end."""
    model: str
    vbios: str | None = None
    power_limit_w: float | None = None


class Parts(BaseModel):
    """What a rig consisted of in a run, as far as its facts told; compared to say what changed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    driver: str | None = None
    kernel: str | None = None
    bios: str | None = None
    cards: tuple[CardPart, ...] = ()
    spec: str = ""
    """Digest of the spec that was asked for."""
    ambient_c: float | None = None
    """Median of the room's or coolant's sensor during the run, °C; None where there is none."""


class WaiverSaid(BaseModel):
    """A waiver that was in use."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    check: str
    subject: str
    until: date


class Past(BaseModel):
    """One rig in one run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    run_id: str
    kind: str
    profile: str
    started_at: str
    """ISO 8601, UTC."""
    ended_at: str
    """ISO 8601, UTC; of the run's last measured event."""
    rigctl_version: str
    rig: str
    rig_class: str
    verdict: Verdict | None
    """None: the rig was busy and not judged."""
    counts: dict[str, int] = Field(default_factory=dict)
    causes: tuple[Cause, ...] = ()
    busy: str | None = None
    """Who used it, where it was left out for that."""
    simulated: bool | None = None
    asked: str = ""
    """Digest of the profile that was asked for: its name stays where an inventory changes what it says."""
    burnt: bool = False
    """Whether its profile asked for a burn of the cards."""
    known: bool = False
    """Whether its facts came home and can be read: what a baseline is compared with."""
    left: str = ""
    xids: tuple[str, ...] = ()
    """The numbers of the Xid messages that were a finding."""
    parts: Parts = Field(default_factory=Parts)
    waivers: tuple[WaiverSaid, ...] = ()
    seconds: dict[str, float] = Field(default_factory=dict)
    """How long each step took, seconds, from the journal; empty where its controller was gone in the meantime."""

    @property
    def accepted(self) -> bool:
        """Whether it was measured, nothing failed and nothing stayed unmeasured."""
        return self.verdict in (Verdict.PASS, Verdict.WARN, Verdict.WAIVED, Verdict.BLIND)


class Point(BaseModel):
    """One figure that a check found."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    run_id: str
    ended_at: str
    """ISO 8601, UTC."""
    profile: str
    check: str
    subject: str
    """As in the verdict."""
    slot: str | None = None
    """The card's slot, where the subject is a card."""
    uuid: str | None = None
    """The card's UUID, where the subject is a card."""
    found: float
    unit: str | None = None
    verdict: Verdict
    limit: float | None = None
    """What was expected, where that is a number."""
