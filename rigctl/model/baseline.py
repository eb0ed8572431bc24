"""What a rig's accepted runs have shown: what a new run is compared with."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from rigctl.model.reading import Facts


class Figure(BaseModel):
    """What one check found in an accepted run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    check: str
    """Id in the catalogue."""
    subject: str
    """As in the verdict; for a card its UUID, which stays when slots are counted anew."""
    found: float
    unit: str | None = None


class Recent(BaseModel):
    """What one check found in the rig's last accepted runs, oldest first."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    check: str
    subject: str
    """As in `Figure`."""
    found: tuple[float, ...] = Field(min_length=1)


class Baseline(BaseModel):
    """The newest accepted run of a rig, and the extremes of all of them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    run_id: str
    """The newest accepted run."""
    profile: str
    ended_at: str
    """ISO 8601, UTC."""
    facts: Facts
    figures: tuple[Figure, ...] = ()
    """What that run found, as far as it is a number."""
    runs: int = Field(ge=1)
    """How many accepted runs there are."""
    settled_max_c: dict[str, float] = Field(default_factory=dict)
    """The highest settled core temperature of all accepted runs by card UUID, °C."""
    recent: tuple[Recent, ...] = ()
    """Rates (checks `throughput.…`) of the last accepted runs in which each was measured."""

    def figure(self, check: str, subject: str = "rig") -> float | None:
        """What `check` found on `subject` (for a card: its UUID); None where it found no number."""
        return next((one.found for one in self.figures if one.check == check and one.subject == subject), None)

    def recent_of(self, check: str, subject: str = "rig") -> tuple[float, ...]:
        """What `check` found on `subject` in the last accepted runs that measured it; empty where none did."""
        return next((one.found for one in self.recent if one.check == check and one.subject == subject), ())
