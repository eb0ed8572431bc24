"""Waivers applied to a rig's verdicts: an accepted deviation is `waived` until its last day, and fails afterwards.

Applied before causes are looked for: a consequence of a waived deviation stands for itself, because accepting heat
does not accept the rate that is lost to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rigctl.checks.say import Say
from rigctl.model.verdict import CheckVerdict, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from rigctl.model.waiver import Waiver

CHECK = "spec.waivers"
WAIVABLE = (Verdict.FAIL, Verdict.WARN)


def with_waivers(verdicts: Sequence[CheckVerdict], waivers: Sequence[Waiver], today: date) -> list[CheckVerdict]:
    """Return the verdicts with the waivers applied, and one verdict of `spec.waivers` on each waiver.

    Args:
        verdicts: what the checks say of one rig.
        waivers: those of this rig.
        today: the day (UTC) on which the run ended, so that a replay says the same.
    """
    own = [_of_waiver(verdicts, waiver, today) for waiver in waivers]
    return [*(_judged(verdict, waivers, today) for verdict in verdicts), *own]


def _judged(verdict: CheckVerdict, waivers: Sequence[Waiver], today: date) -> CheckVerdict:
    """Return one verdict as its waivers leave it."""
    if verdict.verdict not in WAIVABLE:
        return verdict
    own = [waiver for waiver in waivers if waiver.covers(verdict.check, verdict.subject)]
    holding = [waiver for waiver in own if not waiver.expired(today)]
    if holding:
        latest = max(holding, key=lambda waiver: waiver.until)
        words = f"{verdict.reason}; waived until {said(latest.until)}: {latest.reason}"
        update = {"verdict": Verdict.WAIVED, "reason": words, "waived_until": latest.until}
        return verdict.model_copy(update=update)
    if own:
        latest = max(own, key=lambda waiver: waiver.until)
        words = f"{verdict.reason}; its waiver ended on {said(latest.until)}: {latest.reason}"
        fix = f"{verdict.fix}; or renew the waiver in {latest.origin}".removeprefix("; ")
        return verdict.model_copy(update={"verdict": Verdict.FAIL, "reason": words, "fix": fix})
    return verdict


def _of_waiver(verdicts: Sequence[CheckVerdict], waiver: Waiver, today: date) -> CheckVerdict:
    """Say whether a waiver still holds, and whether anything needs it."""
    say = Say(CHECK, waiver.about, said(waiver.until), source=f"{waiver.origin} ({waiver.reason})")
    covered = [verdict for verdict in verdicts if waiver.covers(verdict.check, verdict.subject)]
    needed = any(verdict.verdict in WAIVABLE for verdict in covered)
    if waiver.expired(today):
        if needed:
            fix = f"see {waiver.check}; once it is mended, remove the waiver from {waiver.origin}"
            return say.failed(f"ended on {said(waiver.until)}, and the deviation is still there", said(today), fix)
        unseen = not any(verdict.verdict is Verdict.PASS for verdict in covered)
        state = "whether it is still needed was not seen" if unseen else "nothing needs it any more"
        fix = f"remove it from {waiver.origin}, or give it a new date"
        return say.failed(f"ended on {said(waiver.until)}; {state}", said(today), fix)
    if needed:
        return say.passed(f"holds until {said(waiver.until)}: {waiver.reason}", said(today))
    if covered and all(verdict.verdict is Verdict.PASS for verdict in covered):
        return say.warned("nothing needs it any more", said(today), f"remove it from {waiver.origin}")
    if not covered and any(verdict.check == waiver.check for verdict in verdicts):
        fix = f"correct the subject in {waiver.origin}, or remove it"
        return say.warned(f"{waiver.check} speaks of no {waiver.subject}", said(today), fix)
    return say.passed(f"holds until {said(waiver.until)}; this run did not see whether it is needed", said(today))


def said(day: date) -> str:
    """Return a day as people write it: `3 Dec 2026`."""
    return f"{day.day} {day:%b %Y}"
