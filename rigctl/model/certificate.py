"""An acceptance certificate: what was tested on one rig, by which version, with which parts; what is signed."""

from __future__ import annotations

from datetime import date

from pydantic import BaseModel, ConfigDict, Field

from rigctl.model.verdict import Verdict

SCHEMA_VERSION = 1


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class CertifiedCheck(_Part):
    """One verdict of the run."""

    check: str
    subject: str
    verdict: Verdict
    reason: str
    found: str | float | int | None = None
    expected: str | float | int | None = None
    unit: str | None = None
    waived_until: date | None = None


class CertifiedCard(_Part):
    """One card that was in the rig."""

    slot: int
    model: str
    uuid: str
    serial: str | None = None
    vbios: str | None = None
    power_limit_w: float | None = None


class Statement(_Part):
    """What a certificate states; its JSON is what the signature covers."""

    schema_version: int = Field(default=SCHEMA_VERSION, ge=SCHEMA_VERSION, le=SCHEMA_VERSION)
    rig: str
    rig_class: str
    simulated: bool | None = None
    """What the machine says of itself; None where it said nothing."""
    verdict: Verdict
    counts: dict[str, int]
    run_id: str
    profile: str
    started_at: str
    """ISO 8601, UTC."""
    ended_at: str
    """ISO 8601, UTC."""
    measured_by: str
    """The version of rigctl that measured."""
    certified_by: str
    """The version of rigctl that wrote the certificate."""
    certified_at: str
    """ISO 8601, UTC."""
    machine: tuple[tuple[str, str], ...]
    """What the rig consists of: name and value."""
    cards: tuple[CertifiedCard, ...]
    checks: tuple[CertifiedCheck, ...]
    evidence: dict[str, str]
    """Files of the run by their path in it, with their SHA-256."""
    documents: dict[str, str] = Field(default_factory=dict)
    """Forms of this certificate for people by file name, with their SHA-256."""

    @property
    def not_tested(self) -> tuple[CertifiedCheck, ...]:
        """What this hardware does not show, or the rig does not have."""
        return tuple(one for one in self.checks if one.verdict in (Verdict.BLIND, Verdict.SKIP))

    @property
    def tested(self) -> tuple[CertifiedCheck, ...]:
        """What was measured and judged."""
        return tuple(one for one in self.checks if one.verdict not in (Verdict.BLIND, Verdict.SKIP))
