"""What doctor says: findings in order of cause, and what was left out because it only follows from one of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rigctl.model.rig import Rig

CONTROLLER = "controller"
T = TypeVar("T")


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    subject: str
    """`controller`, or the rig."""
    what: str
    ok: bool
    found: str
    fix: str = ""


@dataclass(frozen=True)
class LeftOut:
    """One thing that is broken too, or could not be looked at, only because something before it is broken."""

    subject: str
    what: str
    because: str
    """The step that is the cause."""


@dataclass(frozen=True)
class RigExamination:
    """Everything that was seen of one rig."""

    rig: Rig
    findings: tuple[Finding, ...]
    left_out: tuple[LeftOut, ...] = ()

    @property
    def fit(self) -> bool:
        """Whether nothing is to be done."""
        return all(finding.ok for finding in self.findings)


@dataclass(frozen=True)
class Seen:
    """What one step of the ladder shows."""

    ok: bool
    found: str
    fix: str = ""


@dataclass(frozen=True)
class Step(Generic[T]):
    """One step of the ladder: how it is read, and which steps before it can break it."""

    what: str
    look: Callable[[T], Seen]
    follows_from: tuple[str, ...] = ()


def climb(subject: str, steps: Iterable[Step[T]], facts: T) -> tuple[tuple[Finding, ...], tuple[LeftOut, ...]]:
    """Look at each step; a broken one that follows from a broken one before it is left out, with that cause."""
    findings: list[Finding] = []
    left_out: list[LeftOut] = []
    causes: dict[str, str] = {}
    for step in steps:
        seen = step.look(facts)
        if seen.ok:
            findings.append(Finding(subject, step.what, ok=True, found=seen.found))
            continue
        cause = next((causes[name] for name in step.follows_from if name in causes), None)
        causes[step.what] = cause or step.what
        if cause is None:
            findings.append(Finding(subject, step.what, ok=False, found=seen.found, fix=seen.fix))
        else:
            left_out.append(LeftOut(subject, step.what, cause))
    return tuple(findings), tuple(left_out)
