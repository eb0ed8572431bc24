"""Baselines as people see and move them: what accepted runs have shown of a rig, and from which run on that counts."""

from __future__ import annotations

import fnmatch
import re
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rigctl.errors import UsageError
from rigctl.measure.claim import somebody
from rigctl.model.decision import BaselineDecision
from rigctl.model.verdict import Verdict
from rigctl.store import RunDir
from rigctl.store.baseline import burnt, facts_of
from rigctl.store.decisions import append_decisions, newest_decisions
from rigctl.store.index import Index, own_url
from rigctl.trends import all_series

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from rigctl.model.past import Past
    from rigctl.model.verdict import Record, RigRecord
    from rigctl.trends import Series


@dataclass(frozen=True)
class Shown:
    """A rig's baseline."""

    rig: str
    rig_class: str
    """Of its newest run."""
    runs: tuple[Past, ...]
    """The accepted runs that make it up, oldest first; none: the next accepted run is the first."""
    figures: tuple[Series, ...]
    """What they found, by check and subject."""
    decision: BaselineDecision | None
    """What people decided last; None: it counts from the rig's first accepted run on."""

    @property
    def since(self) -> str | None:
        """From when on it counts, ISO 8601, UTC; None where nobody decided and no run was accepted."""
        if self.decision is not None:
            return self.decision.since
        return self.runs[0].ended_at if self.runs else None


@dataclass(frozen=True)
class Accepted:
    """A run became the reference of rigs."""

    run_id: str
    decisions: tuple[BaselineDecision, ...]
    failed: dict[str, tuple[str, ...]]
    """By rig: what failed in that run all the same (`check[subject]`), causes only."""


def show(runs: Path, pattern: str) -> tuple[Shown, ...]:
    """Return the baselines of rigs that runs know. Raises UsageError where none does, RigctlError as the index."""
    decided = newest_decisions(runs)
    with _own_index(runs) as index:
        return tuple(_shown(index, rig, decided.get(rig)) for rig in _matching(pattern, _classes(index), runs))


def _shown(index: Index, rig: str, decision: BaselineDecision | None) -> Shown:
    counted = index.baseline_runs(rig, decision)
    newest = index.newest(rig, judged=False)
    series = all_series(index.baseline_points(rig, counted))
    return Shown(
        rig=rig,
        rig_class=newest.rig_class if newest is not None else "",
        runs=index.own_pasts(rig, counted),
        figures=tuple(sorted(series, key=lambda one: (one.check, one.subject))),
        decision=decision,
    )


def accept(runs: Path, name: str, pattern: str, reason: str, now: datetime | None = None) -> Accepted:
    """Take a run as the new reference of rigs: from now on they are compared with it and what comes after it.

    Nothing is written unless it holds for every rig that was asked for.

    Raises:
        UsageError: no such run, no reason, a rig that the run does not know, did not measure whole, or is of another
            class now.
        RigctlError: the index or the disk failed.
    """
    said = _reason(reason)
    run = RunDir.open(runs, name, kind="accept")
    record = run.read_record()
    if run.path.resolve().parent != runs.resolve():
        raise UsageError(
            f"run {record.run_id} does not lie in {runs}",
            "a baseline is made of the runs of one folder: name it with --runs",
        )
    asked = {one.name: one.rig_class for one in record.rigs} | {one.name: one.rig_class for one in record.busy}
    rigs = _matching(pattern, asked, f"run {record.run_id}")
    with _own_index(runs) as index:
        now_of = _classes(index)
    if refused := [why for rig in rigs if (why := _unfit(run, record, rig, now_of))]:
        raise UsageError(
            "; ".join(refused), "name a run that burnt and measured it whole, or only the rigs that it did"
        )
    at, who = _stamp(now), somebody()
    decisions = tuple(
        BaselineDecision(
            action="accept", rig=rig, at=at, who=who, reason=said, run=record.run_id, run_ended_at=record.ended_at
        )
        for rig in rigs
    )
    append_decisions(runs, decisions)
    failed = {one.name: tuple(cause.key for cause in one.causes) for one in record.rigs if one.name in rigs}
    return Accepted(record.run_id, decisions, {rig: causes for rig, causes in failed.items() if causes})


def reset(runs: Path, rig: str, reason: str, now: datetime | None = None) -> BaselineDecision:
    """Forget a rig's past: the next run to begin that accepts it is the first.

    Raises:
        UsageError: no reason, a rig that no run knows, or one that has no baseline.
        RigctlError: the index or the disk failed.
    """
    said = _reason(reason)
    decided = newest_decisions(runs)
    with _own_index(runs) as index:
        if rig not in (known := _classes(index)):
            raise UsageError(f"no run under {runs} knows {rig!r}", _those(known))
        if not index.baseline_runs(rig, decided.get(rig)):
            raise UsageError(f"{rig} has no baseline: there is nothing to forget", "its next accepted run is the first")
    decision = BaselineDecision(action="reset", rig=rig, at=_stamp(now), who=somebody(), reason=said)
    append_decisions(runs, (decision,))
    return decision


def _unfit(run: RunDir, record: Record, rig: str, classes: Mapping[str, str]) -> str | None:
    """Say why a run cannot be a rig's reference; None where it can."""
    found = next((one for one in record.rigs if one.name == rig), None)
    if found is None:
        return f"{rig} was busy in run {record.run_id}, which measured nothing of it"
    if errors := _errors(found):
        more = f" and {len(errors) - 1} more" if len(errors) > 1 else ""
        return f"{rig} was not measured whole in run {record.run_id}: {errors[0]}{more}"
    if not burnt(run, rig):
        return (
            f"run {record.run_id} burnt no card of {rig} (profile {record.profile}): it shows nothing to compare with"
        )
    if facts_of(run, rig) is None:
        return f"run {record.run_id} has no facts of {rig}: nobody knows which parts it measured"
    if classes.get(rig, found.rig_class) != found.rig_class:
        return f"{rig} was a {found.rig_class} in run {record.run_id} and is a {classes[rig]} now"
    return None


def _errors(found: RigRecord) -> list[str]:
    """What could not be measured, causes first."""
    errors = [one for one in found.verdicts if one.verdict is Verdict.ERROR]
    if not found.verdicts:
        return ["no check was judged"]
    return [f"{one.key}: {one.reason}" for one in sorted(errors, key=lambda one: one.caused_by is not None)]


@contextmanager
def _own_index(runs: Path) -> Iterator[Index]:
    """The index beside the runs, up to date; a baseline is of runs that can be opened here."""
    if not runs.is_dir():
        raise UsageError(f"there is no folder of runs {runs}", "name it with --runs, or start with `rigctl accept`")
    with Index.open(runs, own_url(runs)) as index:
        index.update()
        yield index


def _classes(index: Index) -> dict[str, str]:
    """Each rig that was ever judged or busy, with the class of its newest run."""
    found = ((rig, index.newest(rig, judged=False)) for rig in index.rigs())
    return {rig: newest.rig_class for rig, newest in found if newest is not None}


def _matching(pattern: str, known: Mapping[str, str], where: object) -> tuple[str, ...]:
    """The rigs that a pattern names, as Ansible writes it, in the order of their names: of runs, not of the inventory.

    Raises:
        UsageError: a part of it names no rig and no class that is known.
    """
    wanted: set[str] = set()
    for part in (one.strip() for one in re.split("[,:]", pattern)):
        word = part.removeprefix("!").removeprefix("&")
        found = {rig for rig, rig_class in known.items() if _named(word, rig, rig_class)}
        if not found:
            raise UsageError(f"{where} knows no rig {word!r}", _those(known))
        wanted = wanted - found if part.startswith("!") else wanted & found if part.startswith("&") else wanted | found
    if not wanted:
        raise UsageError(f"{pattern!r} leaves no rig", _those(known))
    return tuple(sorted(wanted))


def _named(word: str, rig: str, rig_class: str) -> bool:
    return word == "all" or any(fnmatch.fnmatchcase(name, word) for name in (rig, f"class_{rig_class}"))


def _those(known: Mapping[str, str]) -> str:
    return f"there are runs of: {', '.join(sorted(known)) or 'no rig'}"


def _reason(text: str) -> str:
    said = " ".join(text.split())
    if not said:
        raise UsageError("--reason is empty", "say in a few words why: who looks at this rig next year will ask")
    return said


def _stamp(now: datetime | None) -> str:
    moment = (now or datetime.now(UTC)).astimezone(UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
