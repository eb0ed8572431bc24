"""What is sent, and what each service knows already; kept as `nightly.json` beside the runs. Data only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime

VERSION = 2


class _Kept(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RigTold(_Kept):
    """What people know of a rig."""

    bad: str = ""
    """What is wrong, as a key that stays while the same thing stays wrong; empty: it is well."""
    lines: str = ""
    """The lines that told it, for the reminder."""
    told_at: str = ""
    """ISO 8601; when it was last said."""
    trends: tuple[str, ...] = ()
    """Slow trends that were said, by check and card."""
    trends_seen: dict[str, str] = Field(default_factory=dict)
    """ISO day on which each of them was seen last: one that drops out for some nights is not told anew."""
    left_out: bool = False
    """Whether it was said that its last night was without it."""


class Absence(_Kept):
    """A rig that nights left out, the last one included."""

    nights: int
    """In a row."""
    day: str
    """Of the last one's morning, so that a night that is carried out twice counts once."""
    why: str

    def line(self, rig: str) -> str:
        """In words."""
        return f"left out {rig}: {self.why}" + (f" ({self.nights} nights in a row)" if self.nights > 1 else "")


class Told(_Kept):
    """What was told of each rig; so nothing is told twice."""

    rigs: dict[str, RigTold] = Field(default_factory=dict)
    digest_at: str = ""

    def knowing(self, then: Told, rigs: tuple[str, ...]) -> Told:
        """What is known where only the messages about these rigs were taken, of those that lead to `then`."""
        return self.model_copy(update={"rigs": self.rigs | {rig: then.rigs[rig] for rig in rigs}})


class Message(_Kept):
    """What is sent."""

    kind: Literal["change", "reminder", "clear", "left_out", "digest"]
    title: str
    body: str
    rigs: tuple[str, ...] = ()
    """The rigs of which somebody who got it knows more than before."""


class Waiting(_Kept):
    """Messages that a service did not take, and what it knows once it has them."""

    messages: tuple[Message, ...]
    then: Told


class Service(_Kept):
    """One service that is told."""

    told: Told = Field(default_factory=Told)
    waiting: Waiting | None = None
    """Tried again with the reminders, until a night makes new messages of what the service does not know."""


class Kept(_Kept):
    """`nightly.json`."""

    schema_version: int = Field(default=VERSION, ge=VERSION, le=VERSION)
    services: dict[str, Service] = Field(default_factory=dict)
    """By the name under which the inventory has the address: the address itself holds a secret."""
    absences: dict[str, Absence] = Field(default_factory=dict)
    """By rig; what was found, whoever was told."""

    def after(self, left_out: Mapping[str, str], measured: Collection[str], now: datetime) -> Kept:
        """Count a night: rigs that it left out, with why, and rigs that it measured."""
        day = now.date().isoformat()
        absences = {rig: one for rig, one in self.absences.items() if rig not in measured}
        for rig, why in left_out.items():
            before = absences.get(rig)
            nights = 1 if before is None else before.nights + (before.day != day)
            absences[rig] = Absence(nights=nights, day=day, why=why)
        return self.model_copy(update={"absences": absences})

    @model_validator(mode="before")
    @classmethod
    def _version_1_did_not_say_who_was_told(cls, value: object) -> object:
        """Everything is told once more then: a service that had refused a message gets it at last."""
        return {} if isinstance(value, dict) and value.get("schema_version") == 1 else value
