"""Comparisons of what ran, for how long and how fast, at their edge."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from rigctl.checks import burn, kernel, load, measure, throughput
from rigctl.checks.burn import Burn
from rigctl.checks.curve import Curve
from rigctl.checks.say import Say
from rigctl.model.reading import KernelMessage, RigEvent
from rigctl.model.verdict import Verdict
from rigctl.parse import gpu_burn

from . import healthy as h
from .test_kernel import xid
from .test_thermals import of

PASS, FAIL, ERROR, WARN = Verdict.PASS, Verdict.FAIL, Verdict.ERROR, Verdict.WARN
SAY = Say("throughput.burn_gflops", expected=1.0)


def exited(step="gpu_burn", kind="gpu", **detail):
    """The healthy events, in which one load ended as `detail` says."""
    return tuple(
        e.model_copy(update={"detail": e.detail | detail})
        if e.event == "load_exited" and e.step == step and e.detail["load"] == kind
        else e
        for e in h.events()
    )


@pytest.mark.parametrize(("seconds", "verdict"), [(29.4, PASS), (29.3, ERROR)])
def test_a_burn_may_end_two_per_cent_early(seconds, verdict):
    whole, *_ = burn.oracle(h.spec(), h.readings(events=exited(seconds=seconds)), h.PROFILE)
    assert whole.verdict is verdict


def test_a_whole_burn_says_how_long_it_ran_and_saved_nothing():
    whole, *_ = burn.oracle(h.spec(), h.readings(), h.PROFILE)
    assert "(32 s + 17 s)" in whole.reason
    assert "saved" not in whole.reason


@pytest.mark.parametrize("steps", [("idle",), ("cpu_burn",), ("gpu_burn",), ("all_burn",)])
def test_a_step_of_no_time_is_not_asked_for(steps):
    profile = h.PROFILE.model_copy(update={f"{step}_seconds": 0 for step in steps})
    assert load.steps_of(profile).isdisjoint(steps)
    assert set(load.gpu_steps(profile)).isdisjoint(steps)
    assert load.steps_of(h.PROFILE).issuperset(steps)


@pytest.mark.parametrize(("pct", "busy"), [(50, True), (49, False), (None, True)])
def test_a_card_is_loaded_from_half_its_utilisation_on(pct, busy):
    samples = h.with_gpu_samples(lambda *_: {"util_pct": pct}, ("gpu_burn",))
    readings = h.readings(samples=samples)
    assert bool(load.loaded(readings, "gpu_burn", h.UUIDS[1])) is busy
    assert bool(load.all_busy(readings, "gpu_burn")) is busy


def test_two_seconds_of_ramp_and_the_last_one_are_left_out():
    times = [one.t_s - 1000 for one in load.loaded(h.readings(), "gpu_burn", h.UUIDS[1], after_ramp=True)]
    assert (times[0], times[-1]) == (11.5, 37.0)


def test_the_last_third_begins_at_two_thirds_of_the_time():
    samples = h.samples()[:4]
    assert [s.seq for s in load.last_third(samples)] == [2, 3]


def test_a_load_that_ended_as_often_as_it_began_was_not_cut():
    assert load.cut_short(h.readings(), "all_burn") is None
    lost = tuple(e for e in h.events() if not (e.event == "load_exited" and e.detail["load"] == "cpu"))
    assert load.cut_short(h.readings(events=lost), "all_burn") is not None


@pytest.mark.parametrize(("hz", "verdict"), [(2.5, PASS), (2.51, ERROR)])
def test_four_fifths_of_the_asked_rate_are_enough(hz, verdict):
    (found,) = measure.telemetry(h.readings(), h.PROFILE.model_copy(update={"sample_hz": hz}))
    assert found.verdict is verdict


@pytest.mark.parametrize(("more", "verdict"), [(0, PASS), (1, ERROR), ("many", PASS), (None, PASS)])
def test_a_guard_may_not_have_taken_more_than_came_home(more, verdict):
    taken = len(h.samples()) + more if isinstance(more, int) else more
    events = tuple(
        e.model_copy(update={"detail": {"samples": taken}}) if e.event == "plan_finished" else e for e in h.events()
    )
    (found,) = measure.telemetry(h.readings(events=events), h.PROFILE)
    assert found.verdict is verdict


def test_samples_of_one_moment_have_no_rate():
    assert measure._rate((h.samples()[0], h.samples()[0])) is None


def judged(*messages, steps=("idle", "cpu_burn", "gpu_burn")):
    lines = tuple(KernelMessage(t_wall_s=h.T0 + t, message=text) for t, text in messages)
    events = tuple(e for e in h.events() if e.step in steps)
    (found,) = kernel.no_xid(h.readings(kernel=lines, events=events))
    return found


@pytest.mark.parametrize(("t", "verdict"), [(6.0, FAIL), (5.9, WARN), (41.9, FAIL), (42.0, WARN)])
def test_a_bad_access_within_two_seconds_of_our_load_is_ours(t, verdict):
    assert judged((t, xid(13))).verdict is verdict


@pytest.mark.parametrize(("t", "verdict"), [(36.0, PASS), (35.9, FAIL), (41.9, PASS), (42.0, WARN)])
def test_a_channel_is_cleared_away_within_two_seconds_of_a_burns_end(t, verdict):
    assert judged((t, xid(45, pid="4242", name="gpu_burn", text="Ch 00000008"))).verdict is verdict


def test_one_message_is_not_counted_and_two_are():
    assert "in all" not in judged((20, xid(79))).reason
    assert "2 Xid messages in all (79)" in judged((20, xid(79)), (21, xid(79))).reason


def test_a_channel_that_was_cleared_away_follows_from_the_other_xid():
    found = judged((20, xid(45, pid="77", name="python")), (21, xid(79)))
    assert found.reason.startswith("Xid 79")


@pytest.mark.parametrize(("least", "verdict"), [(26_700, PASS), (26_701, FAIL)])
def test_a_rate_at_its_floor_is_fast_enough(least, verdict):
    spec = h.spec(limits={"min_burn_gflops": least})
    assert of(throughput.burn_gflops(spec, h.readings(), h.PROFILE)).verdict is verdict


@pytest.mark.parametrize(
    ("asked_s", "first", "found", "falls"),
    [
        (120, [100.0], 75.0, False),
        (120, [100.0], 74.9, True),
        (119.9, [100.0], 74.9, False),
        (120, [0.0], 74.9, False),
        (120, [-1.0], 74.9, False),
        (120, [0.1], 0.0, True),
        (120, [], 74.9, False),
    ],
)
def test_a_rate_may_fall_by_the_declared_share_in_two_minutes(asked_s, first, found, falls):
    spec = h.spec(limits={"max_burn_gflops_drift": 0.25})
    assert (throughput._drift(SAY, spec, asked_s, first, found) is not None) is falls


def metrics(**changes):
    text = h.STRESS_NG.format(seconds=changes.get("seconds", "8.0"))
    text = text.replace("41210", str(changes.get("ops", 41210)))
    (found,) = throughput.cpu_burn(
        h.readings(logs=h.with_logs(cpu_burn__yaml=text)),
        h.PROFILE.model_copy(update={"all_burn_seconds": 0, "cpu_burn_seconds": 8}),
    )
    return found.verdict


@pytest.mark.parametrize(("ops", "verdict"), [(1, PASS), (0, ERROR)])
def test_stress_ng_must_have_worked(ops, verdict):
    assert metrics(ops=ops) is verdict


@pytest.mark.parametrize(("seconds", "verdict"), [("7.6", PASS), ("7.59", ERROR)])
def test_stress_ng_may_end_five_per_cent_early(seconds, verdict):
    assert metrics(seconds=seconds) is verdict


def test_a_step_that_is_not_asked_for_burns_no_processor():
    logs = h.without_logs("cpu_burn.yaml")
    events = tuple(e for e in h.events() if e.step != "cpu_burn")
    profile = h.PROFILE.model_copy(update={"cpu_burn_seconds": 0})
    (found,) = throughput.cpu_burn(h.readings(logs=logs, events=events), profile)
    assert found.verdict is PASS


@pytest.mark.parametrize(("rate", "verdict"), [(6702, PASS), (6701, FAIL), (1e8, ERROR), (0, ERROR), (-5, ERROR)])
def test_training_at_its_floor_is_fast_enough_and_no_rate_is_beyond_belief(rate, verdict):
    text = json.dumps(json.loads(h.logs()["train.json"]) | {"tokens_per_s": rate})
    (found,) = throughput.training(h.spec(), h.readings(logs=h.with_logs(train__json=text)))
    assert found.verdict is verdict


def test_a_share_of_a_whole_burn_is_that_share_of_its_time():
    assert Burn("gpu_burn", 600, None, None, None).percent(0.5) == 50
    assert Burn("gpu_burn", 600, None, None, None, "certain").percent(0.5) == 50


def test_events_of_a_run_are_told_by_step():
    assert {e.step for e in load.events(h.readings(), "load_exited", "train")} == {"train"}
    assert len(load.events(h.readings(), "load_exited")) > 1
    assert isinstance(h.events()[0], RigEvent)


@pytest.mark.parametrize(("status", "words"), [(-9, ", exit status -9"), (None, "summary")])
def test_an_output_that_ends_early_says_how_the_burner_ended(status, words):
    cut = h.burn_log().split("\tSummary")[0]
    readings = h.readings(logs=h.with_logs(gpu_burn__log=cut), events=exited(exit_status=status))
    whole, *_ = burn.oracle(h.spec(), readings, h.PROFILE)
    assert (whole.verdict, whole.reason.endswith(words)) == (ERROR, True)


@pytest.mark.parametrize(
    ("slot", "seconds", "falls"), [(2, 120.0, True), (2, 119.9, False), (1, 120.0, False), (2, 600.0, True)]
)
def test_two_settled_minutes_show_a_cards_own_drift(monkeypatch, slot, seconds, falls):
    monkeypatch.setattr(throughput, "read_curve", lambda *_: Curve(58.0, 58.0, 0.0, seconds, 0.0))
    rows = [h.row(percent, rates=(100, rate)) for percent, rate in ((5.0, 100), (95.0, 50))]
    shown = Burn("gpu_burn", seconds, gpu_burn.parse(h.burn_log(rows)), None, None)
    shown = shown if seconds >= 120 else replace(shown, asked_s=120.0)
    spec = h.spec(limits={"max_burn_gflops_drift": 0.25})
    found = throughput._settled_drift(SAY, spec, h.readings(), h.gpu(slot - 1), shown)
    assert (found is not None) is falls


@pytest.mark.parametrize(
    ("line", "told"),
    [("stress-ng: fail:  [7] wrong sum", True), ("stress-ng: error: [7] x", True), ("stress-ng: info: [7] y", False)],
)
def test_what_stress_ng_complains_of_is_told(line, told):
    logs = h.with_logs(cpu_burn__log=f"stress-ng: info: [7] dispatching hogs\n{line}\n")
    (found,) = throughput.cpu_burn(h.readings(logs=logs, events=exited("cpu_burn", "cpu", exit_status=2)), h.PROFILE)
    assert (found.verdict, found.reason.endswith(line if told else "step cpu_burn")) == (FAIL, True)


@pytest.mark.parametrize(("device", "words"), [("cpu", "quota"), ("cuda", "throttle reasons")])
def test_slow_training_has_a_remedy_of_its_device(device, words):
    asked = h.spec().training.model_copy(update={"device": device, "min_tokens_per_s": 1e6})
    text = json.dumps(json.loads(h.logs()["train.json"]) | {"device": device})
    (found,) = throughput.training(h.spec(training=asked), h.readings(logs=h.with_logs(train__json=text)))
    assert (found.verdict, words in found.fix) == (FAIL, True)


def test_the_xid_that_fails_a_card_is_the_one_that_is_told():
    for messages in (((20, xid(63)), (21, xid(79))), ((20, xid(79)), (21, xid(63)))):
        found = judged(*messages)
        assert (found.verdict, found.reason.startswith("Xid 79")) == (FAIL, True)


def test_messages_are_counted_in_words():
    assert judged((20, "usb 1-2: new device")).reason == "no Xid in 1 kernel message"
    assert judged((20, "usb 1-2: new device"), (21, "x")).reason == "no Xid in 2 kernel messages"


@pytest.mark.parametrize(
    ("later_s", "boot", "lost"), [(0.0, h.BOOT, True), (-1.0, h.BOOT, True), (0.1, h.BOOT, False), (-900.0, "x", False)]
)
def test_samples_of_one_boot_follow_each_other_in_time(later_s, boot, lost):
    one = h.samples()[0]
    two = one.model_copy(update={"seq": 1, "t_mono_s": one.t_mono_s + later_s, "boot_id": boot})
    assert bool(measure._lost((one, two))) is lost
