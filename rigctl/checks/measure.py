"""Measuring itself: was the rig reached, and did its samples come without a gap and often enough."""

from __future__ import annotations

import json
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

from rigctl.checks.cards import why_no_card
from rigctl.checks.say import Say

if TYPE_CHECKING:
    from rigctl.model.reading import Readings, Sample
    from rigctl.model.spec import ProfileSpec
    from rigctl.model.verdict import CheckVerdict

RESTORED = "restored.json"
"""What the rig put back when the run's unit had ended."""
LEAST_RATE_SHARE = 0.8
"""Samples must come at this share of the asked rate or more: a guard that looks rarely guards badly."""


def reached(readings: Readings) -> list[CheckVerdict]:
    """The rig was reached and measured to the end."""
    say = Say("measure.reached")
    if readings.unreached is not None:
        fix = readings.unreached_fix or f"rigctl doctor {readings.rig}"
        return [say.error(readings.unreached, fix)]
    return [say.passed("reached, and measured to the end")]


def left_as_found(readings: Readings) -> list[CheckVerdict]:
    """Power limits, clocks, fans and services that the run changed are as they were: the rig puts them back itself."""
    say = Say("measure.left_as_found", expected="as found", source="what the rig noted before the run")
    rig, text = readings.rig, readings.logs.get(RESTORED)
    look = f"on {rig}: nvidia-smi -q -d POWER,CLOCK and systemctl --failed; a reboot puts the cards back"
    if text is None:
        if readings.facts is None or not readings.facts.gpus:
            return [say.error(*why_no_card(readings))]
        return [say.error("the rig did not say whether what was changed has been put back", look)]
    try:
        told = json.loads(text)
        restored, failed = [str(one) for one in told["restored"]], [str(one) for one in told["failed"]]
    except (ValueError, KeyError, TypeError):
        return [say.error(f"{RESTORED} of {rig} cannot be read", look)]
    if failed:
        return [say.failed(f"not put back: {'; '.join(failed)}", f"{len(failed)} not put back", look)]
    return [say.passed(f"put back: {'; '.join(restored)}" if restored else "nothing had to be put back", "as found")]


def telemetry(readings: Readings, profile: ProfileSpec) -> list[CheckVerdict]:
    """No sample is missing, and the rate was kept."""
    source = "profile: sample_hz"
    least = round(profile.sample_hz * LEAST_RATE_SHARE, 3)
    say = Say("measure.telemetry", expected=least, unit="Hz", source=source)
    samples, rig = readings.samples, readings.rig
    cuts = "".join(f"; {cut}" for cut in readings.cuts)
    if not samples:
        if readings.facts is None or not readings.facts.gpus:
            return [say.error(*why_no_card(readings))]
        return [say.error(f"no sample came home{cuts}", f"see guard.log of {rig} in the run directory")]
    if lost := _lost(samples) or _lost_at_the_end(readings):
        return [say.error(f"samples are missing: {lost}{cuts}", f"rigctl accept {rig} again; look at its disk")]
    rate = _rate(samples)
    if rate is None:
        return [say.error("one sample is no telemetry", f"see guard.log of {rig} in the run directory")]
    if rate < least:
        reason = f"{rate:.2f} samples/s, asked were {profile.sample_hz:g}{cuts}"
        return [say.error(reason, f"is {rig} too busy to sample? a lower sample_hz in rig_profiles is a choice too")]
    return [say.passed(f"{len(samples)} samples without a gap, {rate:.2f} a second{cuts}", rate)]


def _lost(samples: tuple[Sample, ...]) -> str:
    """Say which sequence numbers are missing, or come twice or out of order, also in time."""
    for part in _parts(samples):
        if part[0].seq != 0:
            return f"the first one has number {part[0].seq}"
    for before, after in pairwise(samples):
        if after.part > before.part:
            continue
        if after.seq != before.seq + 1:
            return f"number {before.seq} is followed by {after.seq}"
        if after.boot_id == before.boot_id and after.t_mono_s <= before.t_mono_s:
            return f"number {after.seq} was not taken after number {before.seq}, by the rig's own clock"
    return ""


def _lost_at_the_end(readings: Readings) -> str:
    """Say that the guard took more samples than came home; a sampler that hung has perhaps not written its last."""
    # What an earlier plan of the run took after its cut is set aside, and its "plan_finished" with it.
    ended = next((e for e in reversed(readings.events) if e.event == "plan_finished"), None)
    taken = ended.detail.get("samples") if ended and not ended.detail.get("sampler_hangs") else None
    newest = readings.samples[-1]
    last = newest.seq if ended is None or newest.part == ended.part else -1
    if not isinstance(taken, int) or taken <= last + 1:
        return ""
    if last < 0:
        return f"none of the run's last plan came home, the guard took {taken}"
    return f"number {last} is the last one, the guard took {taken}"


def _rate(samples: tuple[Sample, ...]) -> float | None:
    """Samples a second, by the rig's monotonic clock; the time between two plans of a run does not count."""
    parts = _parts(samples)
    seconds = sum(part[-1].t_mono_s - part[0].t_mono_s for part in parts)
    return (len(samples) - len(parts)) / seconds if seconds > 0 else None


def _parts(samples: tuple[Sample, ...]) -> list[list[Sample]]:
    """The samples of each plan of the run, one after another."""
    return [list(part) for _, part in groupby(samples, key=lambda sample: sample.part)]
