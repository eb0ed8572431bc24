"""What the cards count of errors in their own memory, and which rows of it they had to replace."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rigctl.checks.cards import each_card
from rigctl.checks.load import steps_of
from rigctl.checks.say import Say
from rigctl.checks.spans import NoCounters, after_load

if TYPE_CHECKING:
    from rigctl.model.baseline import Baseline
    from rigctl.model.reading import CardCounters, EccReading, GpuFacts, Readings, RemappedRows
    from rigctl.model.spec import ProfileSpec, RigSpec
    from rigctl.model.verdict import CheckVerdict

GCM = "the default of facebookresearch/gcm"
MOST_ROWS = 1 << 20
"""No card has as many spare rows: an A100 has 512 (NVIDIA, GPU Memory Error Management)."""
ABSURD = 1 << 60
"""No card counts so far: such a figure is a wrong answer."""
_AGAIN = "look at the kernel log, then accept the rig again"
_REPLACE = "stop its work and reboot the rig; when errors that cannot be corrected come again, replace the card"
_SWITCH_ON = "`nvidia-smi -e 1` and a reboot switch it on; or correct the spec"
_SWITCH_OFF = "`nvidia-smi -e 0` and a reboot switch it off; or correct the spec"
_LOADS = frozenset({"cpu_burn", "gpu_burn", "all_burn", "train"})


class Seen(NamedTuple):
    """One card's memory before and after the load; `after` is `before` where the profile has no load."""

    before: GpuFacts
    after: GpuFacts | CardCounters


class Unread(Exception):
    """The card's counts were not read after the load, and why; `fix` says what to do."""

    def __init__(self, reason: str, fix: str) -> None:
        super().__init__(reason)
        self.fix = fix


def _seen(readings: Readings, profile: ProfileSpec, gpu: GpuFacts) -> Seen:
    """Return what the card said first and last. Raises Unread where it was loaded and not asked again."""
    if not steps_of(profile) & _LOADS:
        return Seen(gpu, gpu)
    try:
        counters = after_load(readings).get(gpu.uuid)
    except NoCounters as why:
        raise Unread(str(why), why.fix) from why
    if counters is None:
        raise Unread("its counters were not read both before and after the load", "see kernel.xid")
    return Seen(gpu, counters)


def ecc_errors(
    spec: RigSpec, readings: Readings, profile: ProfileSpec, baseline: Baseline | None = None
) -> list[CheckVerdict]:
    """Error correction is set as declared, no error stayed uncorrected, and few had to be corrected."""
    source = spec.source("limits.max_ecc_corrected")
    source += "" if "limits.max_ecc_corrected" in spec.sources else f" ({GCM})"
    say = Say("memory.ecc", expected=0, unit="uncorrected errors", source=source)
    earlier = {gpu.uuid: gpu.ecc for gpu in baseline.facts.gpus} if baseline is not None else {}

    def judge(gpu: GpuFacts, say: Say) -> CheckVerdict:
        try:
            seen = _seen(readings, profile, gpu)
        except Unread as why:
            return say.error(str(why), why.fix)
        if seen.before.ecc is None or seen.after.ecc is None:
            return _not_told(say, spec, readings, seen)
        if (as_set := _as_declared(say, spec, on=seen.after.ecc.on)) is not None:
            return as_set
        return _counts(say, spec, seen.before.ecc, seen.after.ecc, earlier.get(gpu.uuid))

    return each_card(say, spec, readings, judge)


NOT_THERE = ("Not Supported", "Function Not Found")
"""NVML's words for what a card does not have, or this driver cannot ask."""


def _why_none(name: str, seen: Seen) -> tuple[str, bool]:
    """Return the card's own reason for telling nothing, and whether that means that it has no such thing."""
    missing = {**seen.before.missing, **seen.after.missing}
    told_once = getattr(seen.before, name) is not None or getattr(seen.after, name) is not None
    return missing.get(name, "no reason given"), missing.get(name) in NOT_THERE and not told_once


def _not_told(say: Say, spec: RigSpec, readings: Readings, seen: Seen) -> CheckVerdict:
    why, not_there = _why_none("ecc", seen)
    if not not_there:
        fix = f"nvidia-smi -q -d ECC on {readings.rig}"
        return say.error(f"NVML does not tell its memory errors: {why}", fix)
    if spec.parts.ecc:
        return say.error(f"the spec declares ECC, and the card shows none: {why}", "correct the spec: parts.ecc")
    if spec.parts.ecc is False:
        return say.skipped("the spec says that these cards correct no memory errors")
    return say.blind(f"this card shows no errors of its memory: {why}")


def _as_declared(say: Say, spec: RigSpec, *, on: bool) -> CheckVerdict | None:
    """Judge whether error correction is on; None where it is, and its counts are to be judged."""
    say = Say(say.check, say.subject, source=spec.source("parts.ecc"))
    declared = spec.parts.ecc
    if declared is not None and declared != on:
        words = ("on", "off") if on else ("off", "on")
        reason = f"error correction (ECC) is {words[0]}, the spec declares it {words[1]}"
        return say.failed(reason, words[0], _SWITCH_OFF if on else _SWITCH_ON)
    if on:
        return None
    if declared is False:
        return say.skipped("the spec declares error correction (ECC) off, so nothing counts errors")
    return say.blind("error correction (ECC) is off, so nothing counts errors of its memory")


def _counts(say: Say, spec: RigSpec, before: EccReading, after: EccReading, earlier: EccReading | None) -> CheckVerdict:
    corrected, uncorrected = after.corrected, after.uncorrected
    if corrected is None or uncorrected is None:
        return say.error("error correction is on, and NVML does not tell the counts", "nvidia-smi -q -d ECC")
    if odd := _odd(corrected, uncorrected, before):
        return say.error(odd, _AGAIN)
    if uncorrected > 0:
        under_load = uncorrected - (before.uncorrected or 0)
        reason = f"{uncorrected} errors could not be corrected since the driver was loaded, {under_load} in this run"
        return say.failed(reason, uncorrected, _REPLACE)
    most = spec.limits.max_ecc_corrected
    if corrected > most:
        reason = f"{corrected} errors were corrected since the driver was loaded, at most {most} are allowed"
        more = Say(say.check, say.subject, most, "corrected errors", say.source)
        return more.failed(reason, corrected, "its memory is wearing out: plan to replace the card")
    return _lifetime(say, corrected, after, earlier)


def _lifetime(say: Say, corrected: int, after: EccReading, earlier: EccReading | None) -> CheckVerdict:
    """Compare what the card remembers with the accepted run: errors between two runs are gone from other counts."""
    now = after.lifetime_uncorrected
    then = earlier.lifetime_uncorrected if earlier is not None else None
    told = f"{corrected} errors corrected, none that could not be, since the driver was loaded"
    if now is not None and then is not None and now > then:
        reason = f"{told}; but {now - then} that could not be since the accepted run"
        return say.warned(reason, 0, "see kernel.xid and memory.remapped_rows; when it comes again, replace the card")
    return say.passed(told, 0)


def _odd(corrected: int, uncorrected: int, before: EccReading) -> str:
    """Say what is wrong with the figures themselves; empty where they can be believed."""
    for name, now, then in (
        ("corrected", corrected, before.corrected),
        ("uncorrected", uncorrected, before.uncorrected),
    ):
        if not 0 <= now < ABSURD:
            return f"{now} {name} errors is no count"
        if then is not None and now < then:
            return f"the count of {name} errors fell from {then} to {now}: was the driver loaded again?"
    return ""


def remapped_rows(spec: RigSpec, readings: Readings, profile: ProfileSpec) -> list[CheckVerdict]:
    """No row of a card's memory waits for a reset or could not be replaced, and there are rows left to replace with."""
    say = Say("memory.remapped_rows", expected="none pending, none failed", source="the card")

    def judge(gpu: GpuFacts, say: Say) -> CheckVerdict:
        try:
            seen = _seen(readings, profile, gpu)
        except Unread as why:
            return say.error(str(why), why.fix)
        rows = seen.after.remapped_rows
        if rows is not None:
            return _rows(say, readings.rig, rows)
        reason, not_there = _why_none("remapped_rows", seen)
        if not_there:
            return say.blind(f"this card shows no remapped rows: {reason}")
        fix = f"nvidia-smi -q -d ROW_REMAPPER on {readings.rig}"
        return say.error(f"NVML does not tell its remapped rows: {reason}", fix)

    return each_card(say, spec, readings, judge)


def _rows(say: Say, rig: str, rows: RemappedRows) -> CheckVerdict:
    if not (0 <= rows.corrected < MOST_ROWS and 0 <= rows.uncorrected < MOST_ROWS):
        return say.error(f"{rows.corrected} and {rows.uncorrected} remapped rows are no counts", _AGAIN)
    told = f"{rows.uncorrected} rows replaced for uncorrected errors, {rows.corrected} for corrected ones"
    if rows.failed:
        reason = f"a row of its memory could not be replaced; {told}"
        return say.failed(reason, "failed", "replace the card: it has no spare row left where it needs one")
    if rows.pending:
        reason = f"a row of its memory waits to be replaced, which takes a reset; {told}"
        return say.failed(reason, "pending", f"reset the card (`nvidia-smi -r`) or reboot {rig}, then accept it again")
    if used_up := (rows.banks or {}).get("none", 0):
        reason = f"{used_up} banks of its memory have no spare row left; {told}"
        return say.warned(reason, "none pending, none failed", "plan to replace the card: the next error stays")
    return say.passed(told, "none pending, none failed")
