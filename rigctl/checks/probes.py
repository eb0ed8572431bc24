"""How long the driver takes to answer, and whether it answers at all: a slow or hanging `nvidia-smi` is a finding."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, ValidationError

from rigctl.checks.cards import FACTS_FIX
from rigctl.checks.say import Say
from rigctl.model.reading import CommandReply, ProbeFacts

if TYPE_CHECKING:
    from rigctl.model.reading import Readings
    from rigctl.model.spec import RigSpec
    from rigctl.model.verdict import CheckVerdict

PROBES = "probes.json"
"""What nvidia-smi was asked after the load, and how long it took."""
_NO_ANSWER = -1
_REBOOT = "look at the kernel log for Xid 79 or 119, then power the rig off and on; a reboot alone may hang"


class _Told(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    probes: tuple[ProbeFacts, ...]


def told(readings: Readings) -> tuple[tuple[ProbeFacts, ...], str]:
    """Return every probe that was made, and why the later ones cannot be read."""
    first = readings.facts.probes if readings.facts is not None else ()
    text = readings.logs.get(PROBES)
    if text is None:
        return first, "nvidia-smi was not asked after the load"
    try:
        return (*first, *_Told.model_validate_json(text).probes), ""
    except ValidationError:
        return first, f"{PROBES} of {readings.rig} cannot be read"


def hung(readings: Readings) -> ProbeFacts | None:
    """Return the probe that had to be ended, or could not be: nobody else should ask."""
    return next((probe for probe in told(readings)[0] if probe.exit_status is None), None)


def not_asked(readings: Readings, command: str) -> CommandReply | None:
    """Return what stands for the reply to `command` on a rig whose driver hangs; None where it may be asked."""
    probe = hung(readings)
    if probe is None:
        return None
    why = f"not asked: {probe.name} hangs ({_how(probe)})"
    return CommandReply(command=command, exit_status=_NO_ANSWER, stdout="", stderr=why)


def _how(probe: ProbeFacts) -> str:
    return probe.stuck or f"ended after {probe.seconds:.0f} s"


def answers(spec: RigSpec, readings: Readings) -> list[CheckVerdict]:
    """Every question to the driver was answered in time; one that hangs is `stuck`, and none is asked after it."""
    limit_s = spec.limits.max_probe_seconds
    source = spec.source("limits.max_probe_seconds") if limit_s is not None else "the agent's own bound"
    say = Say("measure.probes", expected=limit_s, unit="s", source=source)
    probes, trouble = told(readings)
    if readings.facts is None or not probes:
        return [say.error("how long the driver takes was not measured", FACTS_FIX.format(rig=readings.rig))]
    verdicts = [_judge(say.of(probe.name), readings.rig, probe) for probe in probes]
    if trouble and hung(readings) is None:
        verdicts.append(say.of("nvidia-smi").error(trouble, f"run `nvidia-smi topo -m` on {readings.rig}"))
    return verdicts


def _judge(say: Say, rig: str, probe: ProbeFacts) -> CheckVerdict:
    limit_s = say.expected if isinstance(say.expected, float | int) else None
    if probe.exit_status is None:
        say = say.of(say.subject, probe.limit_s if limit_s is None else None)
        word = "stuck" if probe.stuck else "hangs"
        return say.failed(f"{word}: no answer within {probe.limit_s:g} s ({_how(probe)})", probe.seconds, _REBOOT)
    if probe.exit_status != 0:
        fix = f"run `{probe.name}` on {rig}"
        return say.error(f"exit status {probe.exit_status} after {probe.seconds:.1f} s: {probe.said}", fix)
    if limit_s is not None and probe.seconds > limit_s:
        reason = f"{probe.seconds:.1f} s, at most {limit_s:g} s were declared"
        return say.failed(reason, probe.seconds, "is persistence on (nvidia-persistenced)? look at its Xid and AER too")
    return say.passed(f"answered after {probe.seconds:.1f} s", probe.seconds)
