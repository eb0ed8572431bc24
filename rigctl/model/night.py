"""What became of the newest night, and where metrics of it go."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

SUFFIX = ".prom"
"""node_exporter reads no other file of its folder."""


def _textfile(value: str) -> str:
    if not value.startswith("/") or not value.endswith(SUFFIX):
        message = f"a whole path that ends in {SUFFIX}: node_exporter reads no other file"
        raise ValueError(message)
    return value


Textfile = Annotated[str, AfterValidator(_textfile)]
"""A file in the folder of node_exporter's textfile collector."""

Outcome = Literal["ok", "failed", "unmeasured", "broken"]
"""Every rig well; some rig failed; none failed, but some rig was left out or not measured; the night itself broke."""
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


class LastNight(BaseModel):
    """`last-night.json` beside the runs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: int = Field(default=1, ge=1, le=1)
    began_at: str
    """ISO 8601, UTC."""
    ended_at: str
    """ISO 8601, UTC."""
    outcome: Outcome
    judged: int = Field(default=0, ge=0)
    """So many rigs got a verdict."""
    left_out: int = Field(default=0, ge=0)
    """So many rigs got none, for whatever reason."""
