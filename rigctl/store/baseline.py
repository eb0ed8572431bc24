"""Find a rig's baseline among the runs of a folder: the newest run in which it was burnt and accepted."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from rigctl.errors import RigctlError, UsageError
from rigctl.model.baseline import Baseline, Figure, Recent
from rigctl.model.reading import Facts
from rigctl.model.verdict import Verdict
from rigctl.store.decisions import newest_decisions
from rigctl.store.ids import list_runs
from rigctl.store.lines import read_model
from rigctl.store.rundir import RunDir

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from rigctl.model.decision import BaselineDecision
    from rigctl.model.verdict import Record, RigRecord
    from rigctl.store.index import Index

log = logging.getLogger(__name__)

ACCEPTED = (Verdict.PASS, Verdict.WARN, Verdict.WAIVED, Verdict.BLIND)
"""Verdicts of a rig that was accepted: nothing failed, and nothing stayed unmeasured."""
_SETTLED = "thermals.settled_gpu_temp"
_RATES = "throughput."
RECENT_RUNS = 20
"""So many accepted runs of a rate are kept: enough to know how far repeats differ."""


def find_baselines(
    root: Path, rigs: tuple[str, ...], decided: Mapping[str, BaselineDecision] | None = None
) -> dict[str, Baseline]:
    """Return the baseline of each rig that was ever burnt and accepted in a run under `root`.

    What people decided (`decided`, by rig; None reads it) says from which run on a rig's runs count.

    A run that cannot be read is left out and named in the log: it takes no other run's place. The index beside the
    runs is asked (whoever else shares another one: a baseline is of runs that can be opened here), so that a year of
    nights costs no more than a week; where it cannot be used, every run is read.

    Raises:
        UsageError: what people decided cannot be read.
    """
    if not root.is_dir():
        return {}
    decided = newest_decisions(root) if decided is None else decided
    from rigctl.store.index import Index, own_url  # noqa: PLC0415 - it reads runs, as this module does

    try:
        with Index.open(root, own_url(root)) as index:
            index.update()
            found = {rig: _indexed(index, root, rig, decided.get(rig)) for rig in rigs}
    except (RigctlError, OSError) as error:
        log.warning("the index of %s cannot be used, so every run is read: %s", root, error)
        return read_baselines(root, rigs, decided)
    return {rig: baseline for rig, baseline in found.items() if baseline is not None}


def _indexed(index: Index, root: Path, rig: str, decision: BaselineDecision | None) -> Baseline | None:
    """A rig's baseline from the index, and from the newest run itself. Raises UsageError where that is damaged."""
    runs = index.baseline_runs(rig, decision)
    if not runs:
        return None
    run = RunDir(root / runs[-1])
    record, facts = run.read_record(), read_model(run.path / rig / "facts.json", Facts)
    newest = next(one for one in record.rigs if one.name == rig)
    hottest: dict[str, float] = {}
    rates: dict[tuple[str, str], tuple[float, ...]] = {}
    for point in index.baseline_points(rig, runs):
        subject = point.uuid or point.subject
        if point.check == _SETTLED:
            hottest[subject] = max(point.found, hottest.get(subject, point.found))
        if point.check.startswith(_RATES):
            rates[point.check, subject] = (*rates.get((point.check, subject), ()), point.found)[-RECENT_RUNS:]
    return Baseline(
        run_id=record.run_id,
        profile=record.profile,
        ended_at=record.ended_at,
        facts=facts,
        figures=_figures(newest, facts),
        runs=len(runs),
        settled_max_c=hottest,
        recent=tuple(Recent(check=check, subject=subject, found=seen) for (check, subject), seen in rates.items()),
    )


def read_baselines(
    root: Path, rigs: tuple[str, ...], decided: Mapping[str, BaselineDecision] | None = None
) -> dict[str, Baseline]:
    """Return the same without an index: every run is read."""
    decided = newest_decisions(root) if decided is None else decided
    found: dict[str, Baseline] = {}
    for run, record in judged_runs(root):
        for rig in record.rigs:
            if rig.name not in rigs or not _counts(record, rig, decided.get(rig.name)) or not burnt(run, rig.name):
                continue
            facts = facts_of(run, rig.name)
            if facts is not None:
                found[rig.name] = grown(found.get(rig.name), record, rig, facts)
    return found


def grown(before: Baseline | None, record: Record, rig: RigRecord, facts: Facts) -> Baseline:
    """Return the baseline of a rig after one more accepted run, which becomes the newest."""
    figures = _figures(rig, facts)
    hottest = dict(before.settled_max_c) if before is not None else {}
    for figure in figures:
        if figure.check == _SETTLED:
            hottest[figure.subject] = max(figure.found, hottest.get(figure.subject, figure.found))
    return Baseline(
        run_id=record.run_id,
        profile=record.profile,
        ended_at=record.ended_at,
        facts=facts,
        figures=figures,
        runs=1 + (before.runs if before is not None else 0),
        settled_max_c=hottest,
        recent=_recent(before.recent if before is not None else (), figures),
    )


def _recent(before: tuple[Recent, ...], figures: tuple[Figure, ...]) -> tuple[Recent, ...]:
    """Return the rates of the last runs with the newest ones behind them; what was not measured stays as it was."""
    found = {(one.check, one.subject): one.found for one in before}
    for figure in figures:
        if figure.check.startswith(_RATES):
            key = (figure.check, figure.subject)
            found[key] = (*found.get(key, ()), figure.found)[-RECENT_RUNS:]
    return tuple(Recent(check=check, subject=subject, found=seen) for (check, subject), seen in found.items())


def judged_runs(
    root: Path, since_day: str = "", *, names: Iterable[str] | None = None
) -> Iterator[tuple[RunDir, Record]]:
    """Every acceptance that was judged, oldest first, or those in the folders `names` alone.

    Those that began before `since_day` (ISO 8601) are left out.
    """
    found = []
    for run_id in list_runs(root) if names is None else names:
        if run_id < since_day:
            continue
        run = RunDir(root / run_id)
        try:
            if run.read_info().kind == "accept" and run.has_record:
                found.append((run, run.read_record()))
        except UsageError as error:
            log.warning("%s is left out of the baseline: %s", run_id, error.message)
    yield from sorted(found, key=lambda one: (one[1].ended_at, one[1].run_id, one[0].path.name))


def _counts(record: Record, rig: RigRecord, decision: BaselineDecision | None) -> bool:
    """Whether a run counts for a rig's baseline: accepted by its verdict or by people, and of the time that counts."""
    if decision is None:
        return rig.verdict in ACCEPTED
    accepted = rig.verdict in ACCEPTED or decision.accepts(record.run_id)
    return accepted and decision.covers(record.run_id, record.started_at, record.ended_at)


def burnt(run: RunDir, rig: str) -> bool:
    """Whether a run's profile asked for a burn of the rig's cards."""
    profiles = [one.profile for one in run.read_info().rigs if one.name == rig]
    return any(profile is not None and profile.gpu_burn_seconds > 0 for profile in profiles)


def facts_of(run: RunDir, rig: str) -> Facts | None:
    """Return what the rig consisted of; None where that did not come home or cannot be read, as the log says."""
    path = run.path / rig / "facts.json"
    if not path.exists():
        log.warning("%s has no facts of %s and is left out of its baseline", run.path.name, rig)
        return None
    try:
        return read_model(path, Facts)
    except UsageError as error:
        log.warning("%s is left out of the baseline of %s: %s", run.path.name, rig, error.message)
        return None


def _figures(rig: RigRecord, facts: Facts) -> tuple[Figure, ...]:
    uuids = {gpu.subject: gpu.uuid for gpu in facts.gpus}
    return tuple(
        Figure(
            check=verdict.check,
            subject=uuids.get(verdict.subject, verdict.subject),
            found=float(verdict.found),
            unit=verdict.unit,
        )
        for verdict in rig.verdicts
        if isinstance(verdict.found, int | float)
    )
