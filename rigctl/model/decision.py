"""What people decided about a rig's baseline: a line of `baselines.jsonl` among the runs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator


class BaselineDecision(BaseModel):
    """From where a rig's baseline counts, by whose word and why; the newest one of a rig holds.

    It moves what a rig is compared with, and no limit of its spec.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: int = Field(default=1, ge=1, le=1)
    action: Literal["accept", "reset"]
    """`accept`: the rig is compared with `run` and what came after it; `reset`: with runs that began afterwards."""
    rig: str = Field(min_length=1)
    at: str
    """When it was decided, ISO 8601, UTC."""
    who: str
    """The user's name on the controller."""
    reason: str = Field(min_length=1)
    run: str | None = None
    """Id of the run that was accepted."""
    run_ended_at: str | None = None
    """When that run ended, ISO 8601, UTC: what ended later counts too, even where the run itself is gone."""

    @model_validator(mode="after")
    def _whole(self) -> BaselineDecision:
        named = {self.run is not None, self.run_ended_at is not None}
        if named != {self.action == "accept"}:
            raise ValueError("`run` and `run_ended_at` belong to `accept`, and to nothing else")
        for when in (self.at, self.run_ended_at):
            if when is not None:
                datetime.fromisoformat(when)
        return self

    @property
    def since(self) -> str:
        """From when on runs count, ISO 8601, UTC."""
        return self.run_ended_at or self.at

    @property
    def sentence(self) -> str:
        """In words."""
        day = _time(self.at).date().isoformat()
        if self.action == "accept":
            return (
                f"compared from run {self.run} on, which {self.who} accepted as its reference on {day}: {self.reason}"
            )
        return f"its runs before {day} are not compared with: {self.who} reset its baseline: {self.reason}"

    @property
    def words(self) -> str:
        """In a few words, beside the time and the run."""
        what = "accepted as the reference" if self.action == "accept" else "reset"
        return f"{what} by {self.who}: {self.reason}"

    def accepts(self, run_id: str) -> bool:
        """Whether this is the run that people accepted, whatever its verdict."""
        return self.run == run_id

    def covers(self, run_id: str, started_at: str, ended_at: str) -> bool:
        """Whether a run is of the time that counts."""
        if self.run_ended_at is not None:
            return self.accepts(run_id) or _time(ended_at) > _time(self.run_ended_at)
        return _time(started_at) > _time(self.at)


def _time(iso: str) -> datetime:
    when = datetime.fromisoformat(iso)
    return when.astimezone(UTC) if when.tzinfo else when.replace(tzinfo=UTC)
