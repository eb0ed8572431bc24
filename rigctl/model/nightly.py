"""How a park wants its nights: `rig_nightly` and `rig_circuits` of the inventory."""

from __future__ import annotations

from datetime import time
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from rigctl.model.night import Textfile


def _clock(value: object) -> object:
    """`22:30`; YAML reads an unquoted 22:30 as the number 1350 (minutes in base 60)."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 24 * 60:
        return time(value // 60, value % 60)
    return value


def _minutes(value: time) -> time:
    if value.second or value.microsecond or value.tzinfo:
        message = "hours and minutes only, such as 22:30"
        raise ValueError(message)
    return value


Clock = Annotated[time, BeforeValidator(_clock), AfterValidator(_minutes)]


class _Spec(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Hours(_Spec):
    """From one time of the day to another, over midnight where the second is the earlier one; the controller's zone."""

    begin: Clock
    end: Clock

    @model_validator(mode="after")
    def _not_empty(self) -> Hours:
        if self.begin == self.end:
            message = "begin and end are the same time"
            raise ValueError(message)
        return self

    @property
    def seconds(self) -> float:
        """How long it is, seconds."""
        begin, end = (one.hour * 3600 + one.minute * 60 for one in (self.begin, self.end))
        return (end - begin) % 86_400

    def holds(self, moment: time) -> bool:
        """Whether a time of the day is inside."""
        if self.begin < self.end:
            return self.begin <= moment < self.end
        return moment >= self.begin or moment < self.end


class Secret(_Spec):
    """Where an address with a secret in it is kept: never in the inventory itself."""

    env: str | None = None
    """The name of an environment variable."""
    keyring: str | None = None
    """`SERVICE/USER` in the keyring of whoever runs the night."""

    @model_validator(mode="after")
    def _one_place(self) -> Secret:
        if (self.env is None) == (self.keyring is None):
            message = "name either env or keyring"
            raise ValueError(message)
        if self.keyring is not None and self.keyring.count("/") != 1:
            message = "keyring is SERVICE/USER"
            raise ValueError(message)
        return self

    @property
    def name(self) -> str:
        """The place in words, without what it holds."""
        return f"variable {self.env}" if self.env is not None else f"keyring entry {self.keyring}"


class NightlySpec(_Spec):
    """`rig_nightly`."""

    window: Hours
    """When rigs may be put to work."""
    profile: str = "standard"
    deep_profile: str | None = "full"
    """What each rig gets once in `deep_every_days` instead; null: never."""
    deep_every_days: int = Field(default=7, ge=2, le=60)
    busy: Literal["skip", "wait", "drain"] = "wait"
    """Rigs that somebody uses: leave them out, try again while there is time, or drain them in Slurm (`rig_drain`) and
    wait for their jobs."""
    notify: tuple[Secret, ...] = ()
    """Apprise URLs: https://github.com/caronc/apprise/wiki names every service."""
    heartbeat: Secret | None = None
    """A URL that is asked after each night, and that alarms when it is not."""
    quiet_hours: Hours | None = None
    """No reminders then; changes are told at once."""
    reminder_hours: float = Field(default=12, gt=0)
    """A rig that stays bad is told again after so long."""
    digest_weekday: int | None = Field(default=None, ge=0, le=6)
    """On this day (0 is Monday) the morning line is sent even where nothing changed."""
    link: str | None = None
    """Where the site is to be found; its pages are linked in messages."""
    stale_after_hours: float = Field(default=36, gt=0)
    """A last verdict that is older is a finding of `nightly status`."""
    left_out_nights: int = Field(default=3, ge=1, le=60)
    """A rig that so many nights in a row left out is told as a rig that needs somebody."""
    metrics_file: Textfile | None = None
    """Where metrics for node_exporter's textfile collector are written after each night."""


class CircuitSpec(_Spec):
    """One entry of `rig_circuits`."""

    max_w: float = Field(gt=0)
    """What all rigs on it may draw together, W."""
