"""A run that was finished by another plan: numbers begin anew, the time between does not count, counters span both."""

from __future__ import annotations

import json

import pytest

from rigctl.checks import counters, measure
from rigctl.model.verdict import Verdict

from . import healthy as h

CUT = 40
PAUSE_S = 500.0


def two_parts(**later):
    """The healthy samples, those from number 40 on by a second plan, which began 500 s later."""
    return tuple(
        s
        if s.seq < CUT
        else s.model_copy(update={"part": 2, "seq": s.seq - CUT, "t_mono_s": s.t_mono_s + PAUSE_S, **later})
        for s in h.samples()
    )


def judged(samples, events=None):
    readings = h.readings(samples=samples) if events is None else h.readings(samples=samples, events=events)
    (found,) = measure.telemetry(readings, h.PROFILE)
    return found


def ended(part, samples):
    events = [e.model_copy(update={"detail": {}}) if e.event == "plan_finished" else e for e in h.events()]
    last = events[-1]
    return (*events, last.model_copy(update={"event": "plan_finished", "part": part, "detail": {"samples": samples}}))


def test_two_plans_are_whole_telemetry_at_their_own_rate():
    found = judged(two_parts(), ended(2, len(h.samples()) - CUT))
    assert found.verdict is Verdict.PASS
    assert found.found == pytest.approx(judged(h.samples()).found, rel=0.02)


def test_a_gap_within_a_plan_is_one():
    samples = two_parts()
    assert "number 9 is followed by 11" in judged(samples[: CUT + 10] + samples[CUT + 11 :]).reason
    assert "the first one has number 1" in judged(samples[:CUT] + samples[CUT + 1 :]).reason


def test_a_plan_whose_end_is_missing_is_told():
    assert "the guard took 999" in judged(two_parts(), ended(2, 999)).reason
    assert "none of the run's last plan came home" in judged(h.samples(), ended(2, 12)).reason


def test_parts_out_of_order_are_no_telemetry():
    samples = two_parts()
    assert judged((*samples[CUT:], *samples[:CUT])).verdict is Verdict.ERROR


def lines(*which):
    before, after = h.counters().splitlines()
    words = {"before": json.loads(before), "after": json.loads(after)}
    return "".join(json.dumps(words[one] | {"t_mono_s": 1000.0 + 10 * n}) + "\n" for n, one in enumerate(which))


@pytest.mark.parametrize(
    ("which", "whole"),
    [
        (("before", "after"), True),
        (("before", "after", "before", "after"), True),
        (("before", "after", "after"), False),
        (("before", "before", "after"), False),
        (("before", "after", "before"), False),
        (("after", "before"), False),
    ],
)
def test_counters_span_all_plans_of_a_run_and_nothing_else(which, whole):
    logs = {**h.readings().logs, "counters.jsonl": lines(*which)}
    found = counters.pcie_replays(h.spec(), h.readings(logs=logs))
    assert all((one.verdict is not Verdict.ERROR) is whole for one in found)


def test_what_rose_in_either_plan_counts():
    replays = []
    for place in (1, 3):
        rows = [json.loads(line) for line in lines("before", "after", "before", "after").splitlines()]
        for row in rows[place:]:
            row["cards"][0]["pcie_replays"] = 50_000
        text = "".join(json.dumps(row) + "\n" for row in rows)
        found = counters.pcie_replays(h.spec(), h.readings(logs={**h.readings().logs, "counters.jsonl": text}))
        replays += [one.verdict for one in found if one.verdict is Verdict.FAIL]
    assert len(replays) == 2
