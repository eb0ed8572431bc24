"""A second opinion: what NVIDIA's DCGM says of the cards, and whether it agrees with our own checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import ConfigDict

from rigctl.checks import load
from rigctl.checks.cards import each_card
from rigctl.checks.say import Say
from rigctl.checks.told import Told, read
from rigctl.model.verdict import Verdict
from rigctl.parse import ParseError, dcgm

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rigctl.model.reading import GpuFacts, Readings
    from rigctl.model.spec import RigSpec
    from rigctl.model.verdict import CheckVerdict

CHECK, STEP = "measure.second_opinion", "dcgm"
NO_CARD = "beside the cards"
"""Subject of what DCGM tests of no card in particular: software, libraries, the bus."""
_SUBJECTS = ("kernel.", "memory.", "power.", "thermals.", "throughput.", "topology.")
"""Our checks that speak of the same things."""
_DISAGREE = "look at both: DCGM's tests are shorter, and judge by NVIDIA's own limits instead of this rig's spec"


class _Asked(Told):
    """`dcgm.json`."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    installed: bool
    output: str = ""


def second_opinion(spec: RigSpec, readings: Readings) -> list[CheckVerdict]:
    """DCGM's diagnosis of each card, and of what belongs to none; a rig without DCGM has no second opinion."""
    say = Say(CHECK, expected="pass", source="dcgmi diag, NVIDIA's own limits")
    look = f"look at {STEP}.json of {readings.rig} in the run directory"
    told = read(readings, STEP, _Asked)
    if isinstance(told, load.NoLoad):
        return [say.error(*told)]
    if not told.installed:
        return [say.skipped("DCGM is not installed on the rig")]
    try:
        diagnosis = dcgm.parse(told.output)
    except ParseError as error:
        return [say.error(f"{error}", f"{look}; does nv-hostengine run? `systemctl status nvidia-dcgm`")]
    if diagnosis.runtime_error is not None:
        return [say.error(f"DCGM gave up: {diagnosis.runtime_error}", look)]
    if not diagnosis.ran:
        return [say.blind("DCGM skipped every test on these cards")]

    def judge(gpu: GpuFacts, say: Say) -> CheckVerdict:
        own = [one for one in diagnosis.ran if gpu.index in one.gpus]
        if not own:
            return say.blind("DCGM ran no test on this card")
        return _of(say, own)

    others = [one for one in diagnosis.ran if not one.gpus]
    return [*([_of(say.of(NO_CARD), others)] if others else []), *each_card(say, spec, readings, judge)]


def _of(say: Say, outcomes: Sequence[dcgm.TestOutcome]) -> CheckVerdict:
    """Say what some tests add up to."""
    for status in ("fail", "warn"):
        bad = [one for one in outcomes if one.status == status]
        if bad:
            said = "; ".join(": ".join([one.test, *one.warnings[:1]]) for one in bad)
            fix = "`dcgmi diag -r 3` for more; NVIDIA's words for each test are in the DCGM user guide"
            reason = f"DCGM: {said}"[:300]
            return say.failed(reason, status, fix) if status == "fail" else say.warned(reason, status, fix)
    return say.passed(f"{len(outcomes)} tests of DCGM passed", "pass")


def with_disagreement(verdicts: Sequence[CheckVerdict]) -> list[CheckVerdict]:
    """Return the verdicts, DCGM's saying where our own checks see it otherwise."""
    return [_compared(one, verdicts) if one.check == CHECK else one for one in verdicts]


def _compared(opinion: CheckVerdict, verdicts: Sequence[CheckVerdict]) -> CheckVerdict:
    about = {NO_CARD: "rig"}.get(opinion.subject, opinion.subject)
    bad = [
        one.check
        for one in verdicts
        if one.verdict is Verdict.FAIL and one.subject == about and one.check.startswith(_SUBJECTS)
    ]
    if opinion.verdict is Verdict.PASS and bad:
        reason = f"{opinion.reason}, and ours do not: {', '.join(dict.fromkeys(bad))}"
        return opinion.model_copy(update={"verdict": Verdict.WARN, "reason": reason, "fix": _DISAGREE})
    if opinion.verdict is Verdict.FAIL and not bad:
        return opinion.model_copy(update={"reason": f"{opinion.reason}; none of our own checks fails here"})
    return opinion
