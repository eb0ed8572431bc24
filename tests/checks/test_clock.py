"""The rig's clock: near the controller's, not set in the middle, and kept by somebody."""

from __future__ import annotations

import json

import pytest

from rigctl.checks import clock
from rigctl.model.reading import TimeSyncFacts
from rigctl.model.spec import SettingsSpec
from rigctl.model.verdict import Verdict

from . import healthy as h


def judged(ahead_s=0.0, took_s=0.0, samples=None, **changes):
    """What is said of a rig so far ahead, whose answer took so long."""
    told = {"before_s": 1000.0 - took_s, "rig_s": 1000.0 + ahead_s, "after_s": 1000.0} | changes
    logs = h.with_logs(clock__json=json.dumps(told))
    (found,) = clock.offset(h.spec(), h.readings(logs=logs, samples=samples if samples is not None else h.samples()))
    return found


@pytest.mark.parametrize(
    ("ahead_s", "took_s", "verdict"),
    [
        (0.0, 0.0, Verdict.PASS),
        (2.0, 0.0, Verdict.PASS),
        (2.001, 0.0, Verdict.FAIL),
        (2.001, 9.0, Verdict.FAIL),
        (-2.0, 0.0, Verdict.PASS),
        (-2.001, 0.0, Verdict.FAIL),
        (-2.001, 1.0, Verdict.ERROR),
        (-12.0, 10.0, Verdict.ERROR),
        (-12.001, 10.0, Verdict.FAIL),
        (-1.9, 10.0, Verdict.PASS),
    ],
)
def test_the_answers_way_home_is_no_fault_of_the_clock(ahead_s, took_s, verdict):
    found = judged(ahead_s, took_s)
    assert found.verdict is verdict
    assert bool(found.fix) == (verdict is not Verdict.PASS)
    assert found.source


@pytest.mark.parametrize(("ahead_s", "word"), [(0.5, "ahead of"), (0.0, "behind"), (-0.5, "behind")])
def test_it_says_which_way(ahead_s, word):
    assert f"{word} the controller's" in judged(ahead_s).reason


@pytest.mark.parametrize(
    "changes",
    [
        {"rig_s": 0.0},
        {"rig_s": -5.0},
        {"before_s": 0.0},
        {"after_s": 0.0},
        {"before_s": 1000.001},
        {"rig_s": "soon"},
        {"rig_s": None},
        {"rig_s": float("nan")},
        {"after_s": float("inf")},
    ],
)
def test_times_that_cannot_be_are_an_error(changes):
    found = judged(**changes)
    assert found.verdict is Verdict.ERROR
    assert found.fix


def moved(by_s, boot=None):
    """The healthy samples; the wall clock moves by `by_s` in the middle."""
    half = len(h.samples()) // 2
    changes = {"boot_id": boot} if boot else {}
    later = [one.model_copy(update={"t_wall_s": one.t_wall_s + by_s, **changes}) for one in h.samples()[half:]]
    return (*h.samples()[:half], *later)


@pytest.mark.parametrize(
    ("by_s", "verdict"), [(2.0, Verdict.PASS), (2.5, Verdict.FAIL), (-2.0, Verdict.PASS), (-2.5, Verdict.FAIL)]
)
def test_a_clock_that_is_set_in_the_middle_of_the_run(by_s, verdict):
    found = judged(samples=moved(by_s))
    assert found.verdict is verdict
    if verdict is Verdict.FAIL:
        assert found.found == by_s
        assert "step all_burn" in found.reason


def test_another_boot_may_have_another_time():
    assert judged(samples=moved(3600, boot="another")).verdict is Verdict.PASS
    assert judged(samples=()).verdict is Verdict.PASS
    assert judged(samples=h.samples()[:1]).verdict is Verdict.PASS


def test_samples_that_come_out_of_order_are_put_in_order():
    assert judged(samples=tuple(reversed(h.samples()))).verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("service", "synchronised", "found"),
    [
        (True, True, "synchronised"),
        (True, False, "not synchronised"),
        (False, True, "no service"),
        (False, False, "no service"),
    ],
)
@pytest.mark.parametrize("asked", [None, True])
def test_who_keeps_the_clock(service, synchronised, found, asked):
    kept = TimeSyncFacts(service=service, synchronised=synchronised)
    spec = h.spec(settings=SettingsSpec(time_sync=asked))
    (said,) = clock.time_sync(spec, h.readings(facts=h.facts(time_sync=kept)))
    assert said.found == found
    assert said.verdict is (Verdict.PASS if service and synchronised else Verdict.FAIL)


@pytest.mark.parametrize(("asked", "verdict"), [(None, Verdict.BLIND), (True, Verdict.ERROR), (False, Verdict.SKIP)])
@pytest.mark.parametrize("known", [{}, {"service": True}, {"synchronised": True}])
def test_where_nobody_can_tell(asked, verdict, known):
    kept = TimeSyncFacts(reason="timedatectl: no such file", **known)
    spec = h.spec(settings=SettingsSpec(time_sync=asked))
    (said,) = clock.time_sync(spec, h.readings(facts=h.facts(time_sync=kept)))
    assert said.verdict is verdict
    assert (clock.time_sync(h.spec(), h.readings(facts=None))[0].verdict) is Verdict.ERROR
