"""Verdicts: what a check says of one subject, and what a whole record adds up to."""

from __future__ import annotations

from collections import Counter
from datetime import date
from enum import StrEnum
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field

from rigctl.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterable


class Verdict(StrEnum):
    """What a check can say."""

    PASS = "pass"  # noqa: S105 - a verdict, no secret
    WARN = "warn"
    FAIL = "fail"
    WAIVED = "waived"
    SKIP = "skip"
    BLIND = "blind"
    ERROR = "error"


WORST_FIRST: tuple[Verdict, ...] = (
    Verdict.FAIL,
    Verdict.ERROR,
    Verdict.WARN,
    Verdict.WAIVED,
    Verdict.BLIND,
    Verdict.PASS,
    Verdict.SKIP,
)


class CheckVerdict(BaseModel):
    """One check's verdict on one subject, with everything a person needs to act on it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    check: str
    """Id in the catalogue, such as `thermals.settled_gpu_temp`."""
    subject: str
    """`rig`, a GPU as `slot2 (…a91f)`, or a pair as `slot1-slot2`."""
    verdict: Verdict
    reason: str
    """One sentence: what was seen, with its figure."""
    expected: str | float | int | None = None
    found: str | float | int | None = None
    unit: str | None = None
    source: str = ""
    """Where the limit comes from: the spec's file and key and the origin of its figure, or the card itself."""
    fix: str = ""
    """What to do; empty only for verdicts that ask for nothing."""
    caused_by: str | None = None
    """`check[subject]` of the verdict that this one follows from."""
    waived_until: date | None = None
    """The last day of the waiver, where the verdict is `waived`."""

    @property
    def key(self) -> str:
        """The name under which other verdicts refer to this one."""
        return f"{self.check}[{self.subject}]"


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict that decides; `error` when there is none at all."""
    present = set(verdicts)
    return next((v for v in WORST_FIRST if v in present), Verdict.ERROR)


def exit_code(verdicts: Iterable[Verdict]) -> ExitCode:
    """Exit code for a set of verdicts: 1 when any failed, else 3 when any is an error, else 0."""
    present = set(verdicts)
    if Verdict.FAIL in present:
        return ExitCode.FAILED
    if Verdict.ERROR in present or not present:
        return ExitCode.UNMEASURED
    return ExitCode.OK


class RigRecord(BaseModel):
    """What a run says of one rig."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    rig_class: str
    simulated: bool | None = None
    """Read from the rig's DMI product name; None where the rig was never reached."""
    verdicts: tuple[CheckVerdict, ...] = ()
    notes: tuple[str, ...] = ()
    """What happened and is no verdict: a cut that was survived, for example."""
    left: str = ""
    """The state in which the rig was left: `idle, limits as found`, for example."""

    @property
    def verdict(self) -> Verdict:
        """The verdict that decides for this rig."""
        return worst(v.verdict for v in self.verdicts)

    @property
    def counts(self) -> dict[str, int]:
        """How many verdicts of each kind, zeros left out, worst first."""
        counted = Counter(v.verdict for v in self.verdicts)
        return {v.value: counted[v] for v in WORST_FIRST if counted[v]}

    @property
    def causes(self) -> tuple[CheckVerdict, ...]:
        """Failed and unmeasured verdicts that follow from no other, worst first."""
        bad = [v for v in self.verdicts if v.verdict in (Verdict.FAIL, Verdict.ERROR) and v.caused_by is None]
        return tuple(sorted(bad, key=lambda v: WORST_FIRST.index(v.verdict)))


class BusyRig(BaseModel):
    """A rig that was left out because somebody uses it: said, and never counted."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    rig_class: str
    users: str
    """Who uses it, what for, since when."""
    fix: str = ""


class Record(BaseModel):
    """`record.json`: every verdict of a run; written atomically, judged again byte for byte."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: int = Field(default=1, ge=1, le=1)
    run_id: str
    kind: str
    profile: str
    started_at: str
    """ISO 8601, UTC, from run.json."""
    ended_at: str
    """ISO 8601, UTC, of the last event that was measured; never the time of judging."""
    rigctl_version: str
    """The version that measured."""
    rigs: tuple[RigRecord, ...]
    busy: tuple[BusyRig, ...] = ()
    """Rigs that were left out because somebody uses them."""

    @property
    def exit_code(self) -> ExitCode:
        """Exit code of the run: that of all verdicts of all rigs; 3 when every rig was busy, and none was judged."""
        return exit_code(r.verdict for r in self.rigs)
