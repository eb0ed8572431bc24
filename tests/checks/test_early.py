"""Ending a burn early: when its verdict is certain, when it never does, and what the checks say of one that did."""

from __future__ import annotations

import re

import pytest

from bench import early_stop
from rigctl.checks import burn, early, load, throughput
from rigctl.checks.early import Figure, why_not
from rigctl.model.verdict import Verdict
from rigctl.sim.burns import Burn, cut


@pytest.fixture(scope="module")
def rig():
    identity = early_stop.identity_of(1)
    whole = Burn(identity, limit_w=480.0, seed=1).run()
    return identity, whole, early_stop.baseline_of(whole)


def test_a_figure_is_certain_when_no_limit_lies_within_what_it_can_be():
    assert Figure("x", 1.0, 2.0, (0.9, 2.1, None)).certain
    assert not Figure("x", 1.0, 2.0, (1.0,)).certain
    assert not Figure("x", 1.0, 2.0, (2.0,)).certain
    assert not Figure("x", 1.0, 2.0, (None, 1.5)).certain


def test_it_never_ends_early_where_it_must_not(rig):
    _, whole, baseline = rig
    facts, profile = whole.facts, early_stop.PROFILE
    other_driver = facts.model_copy(update={"driver": facts.driver.model_copy(update={"loaded": "535.1"})})
    flashed = tuple(gpu.model_copy(update={"vbios": "new"}) for gpu in facts.gpus)
    assert why_not("standard", profile, facts, baseline) is None
    assert "never accepted" in (why_not("standard", profile, facts, None) or "")
    assert "full" in (why_not("full", profile, facts, baseline) or "")
    assert "soak" in (why_not("soak", profile, facts, baseline) or "")
    assert why_not("standard", profile.model_copy(update={"early_stop": False}), facts, baseline)
    assert "driver changed" in (why_not("standard", profile, other_driver, baseline) or "")
    assert "kernel changed" in (why_not("standard", profile, facts.model_copy(update={"kernel": "6"}), baseline) or "")
    assert "cards changed" in (why_not("standard", profile, facts.model_copy(update={"gpus": flashed}), baseline) or "")


def test_a_healthy_burn_ends_early_and_passes_as_the_whole_one_does(rig):
    _, whole, baseline = rig
    short, seconds = early_stop.ended(whole, baseline)
    assert early.LEAST_S <= seconds <= 300
    assert early_stop.same(early_stop.verdicts(whole, baseline), early_stop.verdicts(short, baseline))
    (said, *_) = burn.oracle(early_stop.SPEC, short, early_stop.PROFILE)
    assert said.verdict is Verdict.PASS
    assert f"{600 - seconds:.0f} s saved" in said.reason


@pytest.mark.parametrize("seconds", [60, 100, 140])
def test_nothing_is_certain_while_the_loop_warms_up(rig, seconds):
    _, whole, baseline = rig
    so_far = cut(whole, seconds, "x").model_copy(update={"events": ()})
    assert early.certain(early_stop.SPEC, early_stop.PROFILE, so_far, baseline) is None


def test_a_figure_close_to_its_limit_is_never_certain(rig):
    _, whole, baseline = rig
    settled = max(v.found for v in early_stop.verdicts(whole, None) if v.check == "thermals.settled_gpu_temp")
    tight = early_stop.SPEC.limits.model_copy(update={"max_settled_gpu_temp_c": settled + 0.3})
    spec = early_stop.SPEC.model_copy(update={"limits": tight})
    so_far = cut(whole, 590, "x").model_copy(update={"events": ()})
    assert early.certain(spec, early_stop.PROFILE, so_far, baseline) is None


def test_a_burn_whose_temperatures_cannot_be_read_is_never_certain(rig):
    identity, _, baseline = rig
    broken = Burn(identity, (("sensors_invalid", {"slot": "2"}),), limit_w=480.0).run()
    so_far = cut(broken, 500, "x").model_copy(update={"events": ()})
    assert early.certain(early_stop.SPEC, early_stop.PROFILE, so_far, baseline) is None


def test_errors_of_a_burn_that_ended_early_fail_it_all_the_same(rig):
    _, whole, baseline = rig
    short, _ = early_stop.ended(whole, baseline)
    wrong = short.logs["gpu_burn.log"].replace("errors: 0 - 0 ", "errors: 0 - 7  (WARNING!)", 1)
    bad = short.model_copy(update={"logs": {"gpu_burn.log": wrong}})
    found = burn.oracle(early_stop.SPEC, bad, early_stop.PROFILE)
    assert [v.verdict for v in found if v.subject.startswith("slot2")] == [Verdict.FAIL]


def test_a_worker_that_stood_still_in_a_burn_that_ended_early_fails(rig):
    _, whole, baseline = rig
    short, seconds = early_stop.ended(whole, baseline)
    head, *rows = short.logs["gpu_burn.log"].split("\r")
    third = len(rows) * 2 // 3 - 1
    frozen = rows[third].split("proc'd: ")[1].split(" (")[0]
    still = rows[: third + 1] + [
        row.replace(f"- {row.split(chr(39) + 'd: ')[1].split(' (')[0]} (", f"- {frozen} (") for row in rows[third + 1 :]
    ]
    bad = short.model_copy(update={"logs": {"gpu_burn.log": "\r".join([head, *still])}})
    found = [v for v in burn.oracle(early_stop.SPEC, bad, early_stop.PROFILE) if v.subject.startswith("slot2")]
    assert [(v.verdict, "stood still" in v.reason) for v in found] == [(Verdict.FAIL, True)], seconds


@pytest.mark.parametrize(("share", "verdict"), [(0.971, Verdict.PASS), (0.95, Verdict.FAIL)])
def test_a_rate_that_falls_in_the_last_minute_only_is_a_drift(rig, share, verdict):
    _, whole, _ = rig
    head, *rows = whole.logs["gpu_burn.log"].split("\r")

    def slower(row):
        percent = float(row.partition("%")[0])
        return re.sub(r"\((\d+) Gflop", lambda m: f"({int(m[1]) * share:.0f} Gflop", row) if percent > 90 else row

    logs = {"gpu_burn.log": "\r".join([head, *map(slower, rows)])}
    found = throughput.burn_gflops(early_stop.SPEC, whole.model_copy(update={"logs": logs}), early_stop.PROFILE)
    assert {v.verdict for v in found} == {verdict}


def test_a_log_that_ends_without_the_event_is_no_early_end(rig):
    _, whole, baseline = rig
    short, _ = early_stop.ended(whole, baseline)
    silent = short.model_copy(update={"events": tuple(e for e in short.events if e.event != "ended_early")})
    assert load.ended_early(silent, "gpu_burn") is None
    assert burn.oracle(early_stop.SPEC, silent, early_stop.PROFILE)[0].verdict is Verdict.ERROR


def test_a_dozen_nights_agree():
    agreed, share = early_stop.compare(12)
    assert agreed.value == 100
    assert share.value < 70
