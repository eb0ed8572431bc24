"""A burn that the guard stopped: what was already too much fails, and names the cause; what was not is an error."""

from __future__ import annotations

import pytest

from rigctl.checks import cooling, load
from rigctl.checks.causes import with_causes
from rigctl.checks.curve import Curve
from rigctl.checks.say import Say
from rigctl.model.verdict import CheckVerdict, Verdict

from . import healthy as h

SAY = Say("thermals.resistance", h.SLOT1, 0.1, "°C/W")
BAD, GOOD = SAY.failed("", 0.2, ""), SAY.passed("", 0.05)


def curve(rise_c):
    return Curve(settled_c=60, hottest_c=66, rise_c=rise_c, seconds=120, steady_after_s=120)


@pytest.mark.parametrize(("rise_c", "said"), [(3.0, BAD), (0.0, BAD), (-0.1, None)])
def test_a_card_that_still_got_warmer_would_have_come_to_more(rise_c, said):
    assert cooling._stopped(curve(rise_c), GOOD, BAD) is said


def test_nothing_failed_is_nothing_known():
    assert cooling._stopped(curve(3.0), GOOD, None) is None


def stopped(**limits):
    readings = h.readings(
        events=h.guard_stop("gpu_burn", 38, reason="temperature", found=66.0, limit=66.0, slot=1, limit_from="history")
    )
    assert load.cut_short(readings, "gpu_burn") is not None
    return {v.subject: v for v in cooling.resistance(h.spec(limits=limits), readings, None)}


def test_too_much_already_fails_and_what_was_not_yet_too_much_is_an_error():
    found = stopped(max_gpu_c_per_w=0.06)
    assert (found[h.SLOT1].verdict, found[h.SLOT2].verdict) == (Verdict.FAIL, Verdict.ERROR)
    assert {v.verdict for v in stopped(max_gpu_c_per_w=0.12).values()} == {Verdict.ERROR}


def verdict(check, subject="rig", verdict=Verdict.FAIL):
    return CheckVerdict(check=check, subject=subject, verdict=verdict, reason="…")


@pytest.mark.parametrize(
    ("cause", "follows"),
    [
        (verdict("thermals.resistance", h.SLOT1), verdict("thermals.guard", h.SLOT1)),
        (verdict("power.limit", h.SLOT2), verdict("thermals.card_spread", h.SLOT1)),
        (verdict("thermals.rest_temp"), verdict("thermals.cpu_temp")),
        (verdict("thermals.guard", verdict=Verdict.ERROR), verdict("thermals.rest_temp", verdict=Verdict.ERROR)),
        (verdict("thermals.guard", verdict=Verdict.ERROR), verdict("power.idle", h.SLOT1, Verdict.ERROR)),
    ],
    ids=lambda one: one.check,
)
def test_what_follows_names_its_cause(cause, follows):
    told = {v.check: v.caused_by for v in with_causes([follows, cause], h.readings())}
    assert told == {cause.check: None, follows.check: cause.key}


def test_a_warm_twin_beside_a_card_with_its_own_limit_stands_for_itself():
    (spread,) = with_causes([verdict("thermals.card_spread", h.SLOT1)], h.readings())
    assert spread.caused_by is None
