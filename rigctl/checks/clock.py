"""The rig's clock: how far it is from the controller's, whether it jumped, and who keeps it."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from rigctl.checks.say import Say

if TYPE_CHECKING:
    from rigctl.model.reading import Readings
    from rigctl.model.spec import RigSpec
    from rigctl.model.verdict import CheckVerdict

CLOCK = "clock.json"
"""What the controller noted of the last answer of the run."""
OURS = "ours: what kernel log, samples and controller say is put in order to that"
_SET = "`timedatectl set-ntp true` on {rig}, or its time server; and look at the controller's own clock"


class Answer(BaseModel):
    """One answer of the rig that tells its time: the controller's clock when it was asked for and when it had come."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    before_s: float
    rig_s: float
    """The rig's clock as the last thing before the answer went on its way."""
    after_s: float


class Jump(NamedTuple):
    """By how much the rig's clock was set while it was measured, and in which step."""

    seconds: float
    step: str


def offset(spec: RigSpec, readings: Readings) -> list[CheckVerdict]:
    """The rig's clock is near the controller's, and was not set in the middle of the run."""
    most = spec.limits.max_clock_offset_s
    source = spec.source("limits.max_clock_offset_s")
    source += "" if "limits.max_clock_offset_s" in spec.sources else f" ({OURS})"
    say = Say("kernel.clock", expected=most, unit="s", source=source)
    text, fix = readings.logs.get(CLOCK), _SET.format(rig=readings.rig)
    again = f"accept {readings.rig} again"
    if text is None:
        return [say.error("the rig was not asked for its time at the run's end", again)]
    try:
        answer = Answer.model_validate_json(text)
    except ValidationError as error:
        return [say.error(f"{CLOCK} cannot be read: {error.errors()[0]['msg']}", again)]
    if not _possible(answer):
        return [say.error(f"{CLOCK} holds times that cannot be", again)]
    jump = _largest_jump(readings)
    if jump is not None and abs(jump.seconds) > most:
        reason = f"the rig's clock was set by {jump.seconds:+.1f} s in the middle of the run (step {jump.step})"
        return [say.failed(reason, jump.seconds, fix)]
    return [_judged(say, answer, most, fix)]


def _judged(say: Say, answer: Answer, most: float, fix: str) -> CheckVerdict:
    """Judge by the time at which the answer had come: the rig's word is as old as its way home, and never younger."""
    ahead_s = answer.rig_s - answer.after_s
    word = "ahead of" if ahead_s > 0 else "behind"
    told = f"the rig's clock is {abs(ahead_s):.1f} s {word} the controller's"
    if ahead_s > most or answer.rig_s - answer.before_s < -most:
        return say.failed(told, ahead_s, fix)
    if ahead_s < -most:
        took_s = answer.after_s - answer.before_s
        return say.error(f"the rig took {took_s:.1f} s to tell its time, which tells nothing of its clock", "try again")
    return say.passed(told, ahead_s)


def _possible(answer: Answer) -> bool:
    times = (answer.before_s, answer.rig_s, answer.after_s)
    return all(math.isfinite(one) and one > 0 for one in times) and answer.before_s <= answer.after_s


def _largest_jump(readings: Readings) -> Jump | None:
    """Return the largest step of the rig's wall clock against its monotonic one within one boot; None without two."""
    largest: Jump | None = None
    samples = sorted(readings.samples, key=lambda sample: (sample.part, sample.seq))
    for before, after in itertools.pairwise(samples):
        if before.boot_id != after.boot_id:
            continue
        seconds = (after.t_wall_s - before.t_wall_s) - (after.t_mono_s - before.t_mono_s)
        if largest is None or abs(seconds) > abs(largest.seconds):
            largest = Jump(seconds, after.step)
    return largest


def time_sync(spec: RigSpec, readings: Readings) -> list[CheckVerdict]:
    """A service keeps the rig's clock, and the kernel takes it for right."""
    say = Say("kernel.time_sync", expected="synchronised", source=spec.source("settings.time_sync"))
    asked = spec.settings.time_sync if spec.settings is not None else None
    if asked is False:
        return [say.skipped("the spec says that nothing keeps this rig's clock")]
    rig, facts = readings.rig, readings.facts
    if facts is None or facts.time_sync is None:
        return [say.error("the rig did not say who keeps its clock", f"`timedatectl` on {rig}")]
    kept = facts.time_sync
    if kept.service is None or kept.synchronised is None:
        why = kept.reason or "no reason given"
        if asked:
            return [say.error(f"nobody can tell who keeps the rig's clock: {why}", f"`timedatectl` on {rig}")]
        return [say.blind(f"nobody can tell who keeps the rig's clock: {why}")]
    if kept.service and kept.synchronised:
        return [say.passed("a time service runs, and the clock is synchronised", "synchronised")]
    if kept.synchronised:
        reason, found = "the clock was synchronised, and no time service is on that would keep it so", "no service"
    elif kept.service:
        reason, found = "a time service is on, and reaches no time server", "not synchronised"
    else:
        reason, found = "no time service is on: the clock drifts as its crystal does", "no service"
    fix = f"on {rig}: `timedatectl set-ntp true`, and `timedatectl timesync-status` for its server"
    return [say.failed(reason, found, fix)]
