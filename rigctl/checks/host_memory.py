"""The host's memory: what stress-ng wrote into it came back as it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rigctl.checks import load
from rigctl.checks.say import Say
from rigctl.parse import ParseError, stress_ng

if TYPE_CHECKING:
    from rigctl.model.reading import Readings
    from rigctl.model.spec import RigSpec
    from rigctl.model.verdict import CheckVerdict

STEP = "host_memory"
FOUND = f"{STEP}.json"
_FAILED = 2
"""stress-ng's exit status when what it read was not what it had written."""
_SHORT = 0.9
"""A test that ran for less than this share of its time has not tested what was asked."""
_MODULES = "a memory module, its seat or its settings: undo overclocks (XMP, EXPO), then test the modules one by one"
_GIB = 1024**3


class Tested(BaseModel):
    """What the agent's script tells of its test."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    bytes: int = Field(gt=0)
    exit_status: int
    report: str = ""
    said: tuple[str, ...] = ()


class NotTested(BaseModel):
    """Why it could not test."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    error: str
    hint: str = ""


def host_memory(spec: RigSpec, readings: Readings) -> list[CheckVerdict]:
    """No bit of the host's memory came back other than it was written."""
    say = Say("memory.host", expected="no error", source="stress-ng --vm --verify compares what it wrote")
    asked = spec.host_memory
    if asked is None:
        return [say.skipped("the spec asks for no test of the host's memory")]
    text = readings.logs.get(FOUND)
    if text is None:
        no_load = load.why_no_load(readings, STEP)
        return [say.error(no_load.reason, no_load.fix)]
    try:
        return [_judged(say, _read(text), asked.seconds)]
    except (ValidationError, ParseError) as error:
        why = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        return [say.error(f"{FOUND} cannot be read: {why}", f"look at {FOUND} of {readings.rig} in the run directory")]


def _read(text: str) -> Tested | NotTested:
    try:
        return NotTested.model_validate_json(text)
    except ValidationError:
        return Tested.model_validate_json(text)


def _judged(say: Say, tested: Tested | NotTested, asked_s: float) -> CheckVerdict:
    if isinstance(tested, NotTested):
        return say.error(f"the memory was not tested: {tested.error}", tested.hint or "see host_memory.log")
    said = f": {tested.said[0][:200]}" if tested.said else ""
    if tested.exit_status == _FAILED:
        return say.failed(f"what was read is not what was written{said}", "errors", _MODULES)
    if tested.exit_status != 0:
        return say.error(f"stress-ng ended with status {tested.exit_status}{said}", "see host_memory.log")
    metrics = next((one for one in stress_ng.parse(tested.report) if one.stressor.startswith("vm")), None)
    if metrics is None or metrics.bogo_ops <= 0:
        return say.error(f"stress-ng reported no work{said}", "see host_memory.log; was it ended for memory?")
    if metrics.wall_s < asked_s * _SHORT:
        reason = f"the memory was tested for {metrics.wall_s:.0f} s, asked were {asked_s:.0f} s{said}"
        return say.error(reason, "see host_memory.log")
    return say.passed(f"{tested.bytes / _GIB:.1f} GiB tested for {metrics.wall_s:.0f} s, no error", "no error")
