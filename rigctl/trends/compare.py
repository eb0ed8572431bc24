"""Two runs side by side: what is not the same on each rig that both have."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rigctl.errors import UsageError
from rigctl.store.index.scan import scan
from rigctl.trends.changes import Change, changes
from rigctl.trends.series import FALSE_SHARE, PRIOR_WEIGHT, sigma_of, student

if TYPE_CHECKING:
    from rigctl.model.past import Point
    from rigctl.model.verdict import Verdict
    from rigctl.store import RunDir


@dataclass(frozen=True)
class VerdictChange:
    """A check that says something else."""

    check: str
    subject: str
    before: Verdict | None
    """None: it said nothing of this subject."""
    after: Verdict | None
    reason: str
    """Of the later run, else of the earlier one."""


@dataclass(frozen=True)
class FigureChange:
    """A figure that differs by more than repeats do."""

    check: str
    subject: str
    before: float
    after: float
    unit: str | None

    @property
    def share(self) -> float | None:
        """By which share it changed; None from zero."""
        return self.after / self.before - 1 if self.before else None


@dataclass(frozen=True)
class Compared:
    """One rig in both runs."""

    rig: str
    parts: tuple[Change, ...]
    verdicts: tuple[VerdictChange, ...]
    figures: tuple[FigureChange, ...]

    @property
    def same(self) -> bool:
        """Whether nothing differs."""
        return not (self.parts or self.verdicts or self.figures)

    def as_json(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "rig": self.rig,
            "parts": [{"what": c.what, "where": c.where, "before": c.before, "after": c.after} for c in self.parts],
            "verdicts": [
                {
                    "check": v.check,
                    "subject": v.subject,
                    "before": v.before and v.before.value,
                    "after": v.after and v.after.value,
                    "reason": v.reason,
                }
                for v in self.verdicts
            ],
            "figures": [
                {
                    "check": f.check,
                    "subject": f.subject,
                    "before": f.before,
                    "after": f.after,
                    "unit": f.unit,
                    "share": f.share,
                }
                for f in self.figures
            ],
        }


def compare(before: RunDir, after: RunDir) -> tuple[Compared, ...]:
    """Compare the rigs that both runs judged.

    Raises:
        UsageError: a run is damaged or was not judged, or they have no rig in common.
    """
    one, other = scan(before), scan(after)
    old = {past.rig: past for past in one.pasts if past.verdict is not None}
    new = {past.rig: past for past in other.pasts if past.verdict is not None}
    names = [name for name in old if name in new]
    if not names:
        raise UsageError(
            f"runs {before.run_id} and {after.run_id} judged no rig in common",
            f"{before.run_id} judged {', '.join(old) or 'none'}; {after.run_id} judged {', '.join(new) or 'none'}",
        )
    return tuple(
        Compared(
            name,
            changes(old[name], new[name]),
            _verdicts(before, after, name),
            _figures(one.points.get(name, ()), other.points.get(name, ())),
        )
        for name in names
    )


def _verdicts(before: RunDir, after: RunDir, rig: str) -> tuple[VerdictChange, ...]:
    old, new = (
        {(v.check, v.subject): v for one in run.read_record().rigs if one.name == rig for v in one.verdicts}
        for run in (before, after)
    )
    found = []
    for key in [*new, *(key for key in old if key not in new)]:
        was, now = old.get(key), new.get(key)
        if was is not None and now is not None and was.verdict is now.verdict:
            continue
        reason = now.reason if now is not None else was.reason if was is not None else ""
        found.append(VerdictChange(*key, was.verdict if was else None, now.verdict if now else None, reason))
    return tuple(found)


def _figures(old: tuple[Point, ...], new: tuple[Point, ...]) -> tuple[FigureChange, ...]:
    known = {(point.check, point.uuid or point.subject): point for point in old}
    found = []
    for point in new:
        was = known.get((point.check, point.uuid or point.subject))
        if was is not None and abs(point.found - was.found) > _repeats(was.found, point.found, point.unit):
            found.append(FigureChange(point.check, point.subject, was.found, point.found, point.unit))
    return tuple(found)


def _repeats(one: float, other: float, unit: str | None) -> float:
    """By how much two repeats of a figure differ by chance at most, as far as is known before a rig's own repeats."""
    sigma = max(sigma_of([value], unit) for value in (one, other))
    return student(1 - FALSE_SHARE, PRIOR_WEIGHT) * sigma * math.sqrt(2)
