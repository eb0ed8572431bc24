"""Runs of a healthy rig → the draft of a class: parts exactly as seen, limits with margins and their reasons."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from rigctl.errors import UsageError
from rigctl.judge import judge_run
from rigctl.model.spec import SpecFile
from rigctl.model.verdict import Verdict
from rigctl.report.text import figure
from rigctl.spec.parts import MixedCards, parts_of
from rigctl.spec.rows import NOT_LEARNED, ROWS, Seen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic import BaseModel

    from rigctl.model.run import RunRig
    from rigctl.model.spec import ProfileSpec, RigSpec
    from rigctl.model.verdict import CheckVerdict
    from rigctl.spec.rows import Row
    from rigctl.store import RunDir

_BAD = (Verdict.FAIL, Verdict.ERROR)


class Unfit(Exception):
    """The rig was not healthy in a run: what failed or stayed unmeasured there."""

    def __init__(self, run_id: str, verdicts: Sequence[CheckVerdict]) -> None:
        super().__init__(f"{len(verdicts)} verdicts against it in run {run_id}")
        self.run_id = run_id
        self.verdicts = tuple(verdicts)


@dataclass
class Draft:
    """A class as it could be; `spec` is what would stand under `rig_spec`, without its sources."""

    rig: str
    rig_class: str
    runs: tuple[str, ...]
    spec: dict[str, Any]
    sources: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    """Dotted key → why the runs give no figure for it."""
    despite: tuple[str, ...] = ()
    """Checks against which the rig stood, and which a person accepted."""


def learn(runs: Sequence[RunDir], rig: str, *, despite: Sequence[str] = ()) -> Draft:
    """Draft a class from one rig's runs; the figures are the extremes of all of them.

    Args:
        runs: acceptances in which the rig was measured, at least one.
        rig: its name.
        despite: checks whose `fail` or `error` a person accepts as what this class is like.

    Raises:
        UsageError: the rig is in no such run, its cards are not alike, or what it showed is absurd.
        Unfit: some check failed or stayed unmeasured, and is not named in `despite`.
    """
    seen: list[tuple[RunDir, Seen]] = []
    accepted: set[str] = set()
    for run in runs:
        asked, profile = _asked(run, rig)
        against = [v for v in _judge(run, rig, asked.spec) if v.verdict in _BAD]
        if left := [v for v in against if v.check not in despite]:
            raise Unfit(run.run_id, left)
        accepted |= {v.check for v in against}
        seen.append((run, _look(run, asked, profile)))
    newest = _asked(runs[-1], rig)[0].spec
    names = tuple(run.run_id for run, _ in seen)
    draft = Draft(rig, newest.rig_class, names, _kept(newest), _kept_sources(newest), despite=tuple(sorted(accepted)))
    _draw_parts(draft, seen, newest)
    for row in ROWS:
        _draw(draft, row, seen, newest)
    _require_a_spec(draft)
    return draft


def _require_a_spec(draft: Draft) -> None:
    """Refuse a draft that no inventory would take: some figure was absurd, and no check said so."""
    try:
        SpecFile.model_validate(draft.spec | {"sources": draft.sources})
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise UsageError(
            f"what {draft.rig} showed makes no spec: {key}: {first['input']!r}: {first['msg']}",
            f"{draft.sources.get(key, 'see the report of the run')}",
        ) from error


def _asked(run: RunDir, rig: str) -> tuple[RunRig, ProfileSpec]:
    info = run.read_info()
    own = next((one for one in info.rigs if one.name == rig), None)
    if own is None or own.profile is None:
        raise UsageError(
            f"{rig} was not measured in run {info.run_id}",
            f"measured there: {', '.join(one.name for one in info.rigs if one.profile) or 'none'}",
        )
    return own, own.profile


def _judge(run: RunDir, rig: str, spec: RigSpec) -> tuple[CheckVerdict, ...]:
    (judged,) = judge_run(run, instead={rig: spec}).rigs
    return judged.verdicts


def _look(run: RunDir, asked: RunRig, profile: ProfileSpec) -> Seen:
    """Judge the rig once more with an open figure for every limit that its class does not set yet.

    What stays unmeasured only then is no word against the rig: nothing was asked of it. Waived deviations are no
    figures of a healthy rig.
    """
    readings, spec = run.readings(asked.name), asked.spec
    for row in ROWS:
        if row.opened and _value(spec, row.key) is None and row.when(readings):
            spec = _with(spec, row.opened)
    kept = tuple(v for v in _judge(run, asked.name, spec) if v.verdict is not Verdict.WAIVED)
    return Seen(kept, readings, profile)


def _draw_parts(draft: Draft, seen: Sequence[tuple[RunDir, Seen]], known: RigSpec) -> None:
    run, shown = seen[-1]
    facts = shown.readings.facts
    if facts is None:
        raise UsageError(f"run {run.run_id} has no facts of {draft.rig}", f"rigctl accept {draft.rig}")
    try:
        parts = parts_of(facts)
    except MixedCards as error:
        raise UsageError(
            f"the cards of {draft.rig} are not alike: {error}", "a class has one model: describe such a rig by hand"
        ) from None
    draft.spec["parts"] = parts
    for key in parts:
        draft.sources[f"parts.{key}"] = f"{draft.rig} in run {run.run_id}, exactly as seen"
    if "min_gpu_memory_mib" not in parts:
        parts["min_gpu_memory_mib"] = known.parts.min_gpu_memory_mib
        draft.sources["parts.min_gpu_memory_mib"] = _old_source(known, "parts.min_gpu_memory_mib")


def _draw(draft: Draft, row: Row, seen: Sequence[tuple[RunDir, Seen]], known: RigSpec) -> None:
    """Draw one figure; where the runs show none, the class's own figure stays."""
    part, name = row.key.split(".")
    if getattr(known, part) is None:
        return
    figures = [(value, subject, run) for run, shown in seen for subject, value in row.figures(shown).items()]
    if not figures:
        draft.missing[row.key] = _why_not(row, seen[-1][1])
        if (old := _set_value(known, row.key)) is not None:
            draft.missing[row.key] += "; the class's own figure is kept"
            draft.spec[part][name] = old
            draft.sources[row.key] = _old_source(known, row.key)
        return
    value, subject, run = (max if row.sense == "at most" else min)(figures, key=lambda one: one[0])
    if row.sense == "around":
        value = sum(one[0] for one in figures) / len(figures)
    limit, words = row.limit(value, seen[-1][1].readings.facts)
    draft.spec[part][name] = int(limit) if limit.is_integer() else limit
    margin = f"; {words}, because of" if words else ";"
    where = "" if subject == "rig" else f" on {subject}" if subject.startswith("slot") else f" in step {subject}"
    unit = None if row.unit in ("", "share") else row.unit
    draft.sources[row.key] = (
        f"{draft.rig} in run {run.run_id} showed {figure(value, unit)}{where}{margin} {row.margin.why}"
    )
    if row.key == "training.min_tokens_per_s":
        draft.spec[part]["provisional"] = False


def _why_not(row: Row, shown: Seen) -> str:
    own = [v for v in shown.verdicts if v.check == row.check]
    if not own:
        return f"the run's profile has no step for {row.check}"
    unsaid = f"this run shows no such figure{f'; it takes {row.needs}' if row.needs else ''}"
    return next((v.reason for v in own if v.verdict in (Verdict.SKIP, Verdict.BLIND, Verdict.ERROR)), unsaid)


def _kept(spec: RigSpec) -> dict[str, Any]:
    """Return what no reading gives: the meter's form, the workload, limits that are a choice."""
    chosen = {key: value for key in NOT_LEARNED if (value := _set_value(spec, key)) is not None}
    kept: dict[str, Any] = {"parts": {}, "limits": {key.partition(".")[2]: value for key, value in chosen.items()}}
    if spec.settings is not None:
        kept["settings"] = spec.settings.model_dump(exclude_none=True, mode="json")
    if spec.wall_meter is not None:
        kept["wall_meter"] = spec.wall_meter.model_dump(exclude={"url", "ups"}, exclude_defaults=True) | {
            "required": spec.wall_meter.required
        }
    if spec.training is not None:
        kept["training"] = _workload(spec.training)
    if spec.compute is not None:
        kept["compute"] = _workload(spec.compute)
    return kept


def _workload(part: BaseModel) -> dict[str, Any]:
    """Return what a workload is, without the floors that are learned anew."""
    floors = {row.key.partition(".")[2] for row in ROWS}
    return part.model_dump(exclude_none=True, exclude=floors, mode="json")


def _kept_sources(spec: RigSpec) -> dict[str, str]:
    settings = spec.settings.model_dump(exclude_none=True) if spec.settings is not None else {}
    keys = [key for key in NOT_LEARNED if _set_value(spec, key) is not None]
    return {key: _old_source(spec, key) for key in [*keys, *(f"settings.{name}" for name in settings)]}


def _old_source(spec: RigSpec, key: str) -> str:
    return spec.sources.get(key) or f"as in {spec.origin}"


def _value(spec: RigSpec, key: str) -> Any:
    part, name = key.split(".")
    return getattr(getattr(spec, part), name, None)


def _set_value(spec: RigSpec, key: str) -> Any:
    """Return what the class itself sets; None for a default."""
    part, name = key.split(".")
    model: BaseModel | None = getattr(spec, part)
    return getattr(model, name) if model is not None and name in model.model_fields_set else None


def _with(spec: RigSpec, figures: Any) -> RigSpec:
    for key, value in figures.items():
        part, name = key.split(".")
        model = getattr(spec, part)
        if model is not None:
            spec = spec.model_copy(update={part: model.model_copy(update={name: value})})
    return spec
