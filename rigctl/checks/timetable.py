"""What a switched load brought home: the stages that were run, and what each worker did in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rigctl.checks import load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rigctl.model.reading import Readings
    from rigctl.model.switched import Stage

CPU = "cpu"
"""What the processor's worker is called; a card's is called `slot1`."""


class _Told(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True, allow_inf_nan=False)


class Worker(_Told):
    """One worker in one stage."""

    what: str
    done: int = Field(ge=0)
    """Pieces of work."""
    late_ms: float = Field(ge=0)
    """How late it ever began, ms."""
    first_ms: float = Field(ge=0)
    wrong: int = Field(ge=0)
    """What differs from its first piece."""


class StageTold(_Told):
    """One stage, as it was run."""

    name: str
    on_s: float = Field(gt=0)
    off_s: float = Field(ge=0)
    times: int = Field(gt=0)
    workers: tuple[Worker, ...] = Field(strict=False)


class Timetable(_Told):
    """All stages; or why there are none."""

    stages: tuple[StageTold, ...] = Field(default=(), strict=False)
    error: str | None = None
    hint: str = ""
    what: str | None = None
    """The worker that broke."""


def read(readings: Readings, step: str) -> Timetable | load.NoLoad:
    """Return what `step` brought home; in words why there is nothing to read."""
    if cut := load.cut_short(readings, step):
        return cut
    text = readings.logs.get(f"{step}.json")
    if text is None:
        return load.why_no_load(readings, step)
    try:
        return Timetable.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        reason = f"{step}.json cannot be read: {where}: {first['msg']}"
        return load.NoLoad(reason, f"look at {step}.log of {readings.rig} in the run directory")


def last_stage(readings: Readings, step: str) -> str:
    """Return the stage that `step` told of last, before whatever happened; empty where it told of none."""
    lines = [line for line in readings.logs.get(f"{step}.log", "").splitlines() if ": " in line and line[0] != "["]
    return lines[-1].partition(":")[0] if lines else ""


def undone(told: Timetable, asked: Sequence[Stage], workers: Sequence[str]) -> str | None:
    """Return in words what of the asked stages is missing; None where all workers followed all of them."""
    known = {stage.name: stage for stage in told.stages}
    for stage in asked:
        ran = known.get(stage.name)
        if ran is None or ran.times != stage.times:
            return f"stage {stage.name} was not run as asked"
        done = {worker.what: worker.done for worker in ran.workers}
        idle = [what for what in workers if done.get(what, 0) < stage.times]
        if idle:
            return f"{', '.join(idle)} did no work in stage {stage.name}"
    return None
