"""Make the summary of an upgrade from its run directory alone: now, later, on another machine."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rigctl.model.upgrade import Capture, End, Step, Wishes
from rigctl.model.upgrade_summary import FigureChange, PackageChange, RigSummary, StepTime, UpgradeSummary
from rigctl.store.lines import read_model
from rigctl.upgrade import journal
from rigctl.upgrade.compare import all_differences, package_differences
from rigctl.upgrade.inventory_file import as_the_class_s_own
from rigctl.upgrade.journal import RigHistory, end_of, read_history

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rigctl.model.run import RunRig
    from rigctl.store import JournalEntry, RunDir

_COMPLETE = (End.UPGRADED, End.AS_ASKED)
_OTHERS = {Step.DRAIN, Step.BEFORE, Step.CHANGE, Step.RESTORE, Step.CHECK_RESTORED}
"""Steps that are not the upgrade's own work: waiting, acceptance, apt and restart, the way back."""


def upgrade_summary(run: RunDir) -> UpgradeSummary:
    """Read a run of kind `upgrade`, whether it has ended or not.

    Raises:
        UsageError: a file of the run is damaged.
    """
    info, entries = run.read_info(), run.journal_entries()
    known = read_history(entries)
    rigs = tuple(
        _rig(run, rig, known.get(rig.name, RigHistory()), [one for one in entries if one.detail.get("rig") == rig.name])
        for rig in info.rigs
    )
    wishes = Wishes(**info.asked["wishes"])
    complete = rigs and all(rig.end.end in _COMPLETE for rig in rigs)
    ended = datetime.fromtimestamp(entries[-1].t_wall_s, UTC) if entries else None
    return UpgradeSummary(
        run_id=info.run_id,
        wishes=wishes.words,
        started_at=info.started_at,
        ended_at=ended.isoformat(timespec="milliseconds").replace("+00:00", "Z") if ended else info.started_at,
        rigs=rigs,
        to_do=as_the_class_s_own(wishes, rigs[0].rig_class) if complete else "",
    )


def _rig(run: RunDir, rig: RunRig, history: RigHistory, entries: list[JournalEntry]) -> RigSummary:
    end = end_of(rig.name, history, run.run_id)
    measured = {one.detail["label"]: one.detail for one in entries if one.event == journal.MEASURED}
    before, after = (measured.get(label, {}) for label in ("before", "after"))
    packages, others = _changes(run, rig.name, end.end)
    steps = tuple(step_times(entries))
    seconds = _whole(entries) if history.end is not None else None
    in_one_go = end.end == End.UPGRADED and all(one.state == "done" for one in steps)
    return RigSummary(
        end=end,
        rig_class=rig.spec.rig_class,
        simulated=bool(before.get("simulated")),
        before_run=before.get("run_id", ""),
        after_run=after.get("run_id", ""),
        figures=_figures(before, after),
        packages=packages,
        other_changes=others,
        steps=steps,
        seconds=seconds,
        own_seconds=_own(steps, history.found(Step.VERIFY), seconds) if in_one_go and seconds is not None else None,
    )


def step_times(entries: Iterable[JournalEntry]) -> list[StepTime]:
    """Each step of one rig with its seconds; of one that failed by the wall clock, as nobody else took its time."""
    found: list[StepTime] = []
    under_way: tuple[Step, float] | None = None
    for entry in entries:
        if entry.event == journal.STARTED:
            if under_way is not None:
                found.append(StepTime(step=under_way[0], state="cut"))
            under_way = (Step(entry.detail["step"]), entry.t_wall_s)
        elif entry.event == journal.FINISHED:
            found.append(StepTime(step=Step(entry.detail["step"]), state="done", seconds=entry.detail["seconds"]))
            under_way = None
        elif under_way is not None and entry.event in (journal.TURNED, journal.ENDED):
            failed = entry.event == journal.ENDED or entry.detail.get("step") == under_way[0].value
            seconds = max(0.0, round(entry.t_wall_s - under_way[1], 3)) if failed else None
            found.append(StepTime(step=under_way[0], state="failed" if failed else "cut", seconds=seconds))
            under_way = None
    if under_way is not None:
        found.append(StepTime(step=under_way[0], state="under_way"))
    return found


def _whole(entries: list[JournalEntry]) -> float:
    first = next(one.t_wall_s for one in entries if one.event in (journal.STARTED, journal.TURNED, journal.ENDED))
    last = next(one.t_wall_s for one in reversed(entries) if one.event == journal.ENDED)
    return max(0.0, round(last - first, 3))


def _own(steps: Iterable[StepTime], verified: dict[str, Any], seconds: float) -> float:
    others = sum(one.seconds or 0.0 for one in steps if one.step in _OTHERS)
    return max(0.0, round(seconds - others - float(verified.get("smoke_seconds", 0.0)), 3))


def _figures(before: dict[str, Any], after: dict[str, Any]) -> tuple[FigureChange, ...]:
    had, has = before.get("figures", {}), after.get("figures", {})
    units = {**before.get("units", {}), **after.get("units", {})}
    return tuple(
        FigureChange(name=name, unit=units.get(name, ""), before=had.get(name), after=has.get(name))
        for name in sorted({*had, *has})
    )


def _changes(run: RunDir, rig: str, end: End) -> tuple[tuple[PackageChange, ...], tuple[str, ...]]:
    """What the last look at the rig showed against the first one; after a rollback, what it is left with."""
    folder = run.path / rig
    names = ("restored", "after") if end not in (End.UPGRADED, End.UNFINISHED) else ("after",)
    last = next((folder / f"{name}.json" for name in names if (folder / f"{name}.json").is_file()), None)
    if last is None or not (folder / "before.json").is_file():
        return (), ()
    before, after = read_model(folder / "before.json", Capture), read_model(last, Capture)
    had, has = ({one.name: one.version for one in capture.packages} for capture in (before, after))
    packages = tuple(
        PackageChange(name=name, before=had.get(name, ""), after=has.get(name, ""))
        for name in sorted({*had, *has})
        if had.get(name) != has.get(name)
    )
    versions = {f"{name} {version} is gone" for name, version in had.items() if name not in has}
    versions |= {f"{name} {version} is new" for name, version in has.items() if name not in had}
    versions |= {f"{name} was {had[name]}, is {has[name]}" for name in had.keys() & has.keys()}
    marks = set(package_differences(before, after)) - versions
    told = [one for one in all_differences(before, after) if one not in versions]
    return packages, tuple(sorted(told, key=lambda one: one in marks))
