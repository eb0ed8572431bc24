"""What retention does to a run's telemetry: how long it is kept, and `pruned.json`, which says what was done."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

SCHEMA_VERSION = 1

TelemetryState = Literal["whole", "thinned", "dropped"]


class Retention(BaseModel):
    """How long runs keep what takes room; ages count from a run's last measurement."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    whole_days: int = Field(default=30, ge=1)
    """Telemetry is kept whole for so many days."""
    thin_days: int = Field(default=365, ge=1)
    """It is thinned then, and dropped when the run is so many days old."""
    pages: bool = False
    """Whether `report.html` goes together with the whole telemetry; it can be made again at will."""

    @model_validator(mode="after")
    def _in_order(self) -> Retention:
        if self.thin_days < self.whole_days:
            message = f"thin_days ({self.thin_days}) is less than whole_days ({self.whole_days})"
            raise ValueError(message)
        return self


class PrunedFile(BaseModel):
    """What became of one file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    state: TelemetryState
    """`whole`: thinning it would free nothing, so it was left as it is."""
    at: str
    """When, ISO 8601, UTC."""
    bytes_before: int = Field(ge=0)
    """On the disk, as it was whole."""
    bytes_after: int = Field(ge=0)
    samples_before: int | None = Field(default=None, ge=0)
    """As it was whole; None where nobody counted them."""
    samples_after: int | None = Field(default=None, ge=0)


class Pruned(BaseModel):
    """`pruned.json` of a run directory; absent where nothing was ever done."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: int = Field(default=SCHEMA_VERSION, ge=SCHEMA_VERSION, le=SCHEMA_VERSION)
    rigctl_version: str
    """Of the rigctl that did the last of it."""
    telemetry: dict[str, PrunedFile] = Field(default_factory=dict)
    """By the folder in the run directory, such as `rig1`."""
    page: PrunedFile | None = None
    """`report.html`, where it was taken away."""
