"""Loads that are switched: what goes off, what is held back, what does not wake, and what was not switched at all."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from rigctl.checks.brake import brake
from rigctl.checks.causes import with_causes
from rigctl.checks.kernel import same_boot
from rigctl.checks.switched import idle_to_load, step_load
from rigctl.model.switched import step_load_asked, step_load_stages, wake_stages
from rigctl.model.verdict import Verdict

from . import healthy as h
from .test_healthy import all_verdicts

STAGES, WAKES = step_load_stages(h.PROFILE), wake_stages(h.PROFILE)


def stepped(spec=None, profile=h.PROFILE, baseline=None, **changes):
    (found,) = step_load(spec or h.spec(), h.readings(**changes), profile, baseline)
    return found


def told(stages=STAGES, **changes):
    return {"logs": h.with_logs(step_load__json=h.switched(stages, **changes))}


def woken(text=None, **changes):
    logs = h.with_logs(idle_to_load__json=text) if text is not None else h.logs()
    found = idle_to_load(h.spec(), h.readings(**({"logs": logs} | changes)), h.PROFILE)
    return {verdict.subject: verdict for verdict in found}


def switched_power(low_w, high_w):
    """The second card's power in the step load: low and high in turns."""

    def change(gpu, sample):
        return {"power_w": high_w if sample.seq % 2 else low_w} if gpu.slot == 2 else {}

    return h.with_gpu_samples(change, ("step_load",))


def test_the_healthy_rig_says_how_often_and_by_how_much_it_was_switched():
    found = stepped()
    assert found.verdict is Verdict.PASS
    assert found.reason.startswith("switched 19 times at 0.1 Hz to 5 Hz, 843 W of the cards each time")
    assert (found.found, found.unit) == (843.0, "W")


def test_a_profile_that_asks_at_first_is_done_where_the_rig_was_accepted():
    first = h.PROFILE.model_copy(update={"step_load_only_first": True})
    assert stepped(profile=first).verdict is Verdict.PASS
    later = stepped(profile=first, baseline=h.baseline())
    assert (later.verdict, "2026-11-29T2300Z-0001" in later.reason) == (Verdict.SKIP, True)
    assert stepped(baseline=h.baseline()).verdict is Verdict.PASS


def test_without_leave_it_is_blind_and_says_how_to_give_it():
    found = stepped(h.spec(allow_step_load=False))
    assert found.verdict is Verdict.BLIND
    assert "allow_step_load: true in rig_spec (group_vars/class_dual_3090ti/spec.yml)" in found.reason


def gone_off():
    """The rig goes off at the step load's first pace, and is back in another boot."""
    at = h.STEPS["step_load"][0] + 2
    return h.readings(
        samples=tuple(s for s in h.samples() if s.t_wall_s - h.T0 <= at),
        events=tuple(e for e in h.events() if e.t_wall_s - h.T0 <= at),
        logs=h.without_logs("step_load.json", "restored.json") | {"step_load.log": "0.1 Hz: 1 x 5 s on, 5 s off\n"},
        boot_id_after="another",
    )


def test_a_rig_that_goes_off_fails_and_the_reboot_follows():
    verdicts = all_verdicts(readings=gone_off())
    found = {v.key: v for v in verdicts}
    cause = found["power.step_load[rig]"]
    assert (cause.verdict, cause.found, cause.caused_by) == (Verdict.FAIL, "rebooted", None)
    assert cause.reason == "the rig rebooted while cards and CPU were switched together at 0.1 Hz"
    assert found["kernel.same_boot[rig]"].verdict is Verdict.FAIL
    assert found["kernel.same_boot[rig]"].caused_by == "power.step_load[rig]"
    bad = [v for v in verdicts if v.verdict in (Verdict.FAIL, Verdict.ERROR) and v.caused_by is None]
    assert bad == [cause]


def test_a_reboot_elsewhere_is_no_step_load_that_was_not_borne():
    readings = h.readings(boot_id_after="another")
    (boot,) = same_boot(readings)
    (found,) = step_load(h.spec(), readings, h.PROFILE, None)
    assert (boot.verdict, found.verdict) == (Verdict.FAIL, Verdict.PASS)
    assert all(v.caused_by is None for v in with_causes([boot, found], readings))


def test_power_brake_while_switched_fails_and_has_a_check_of_its_own_as_its_cause():
    samples = h.with_gpu_samples(lambda gpu, _: {"throttle": 0x84} if gpu.slot == 2 else {}, ("step_load",))
    verdicts = {v.key: v for v in all_verdicts(readings=h.readings(samples=samples))}
    assert verdicts["power.step_load[rig]"].found == "power brake"
    assert verdicts["power.step_load[rig]"].caused_by == f"power.brake[{h.SLOT2}]"
    assert "in step step_load" in verdicts[f"power.brake[{h.SLOT2}]"].reason
    assert f"power.brake[{h.SLOT1}]" in {key for key, v in verdicts.items() if v.verdict is Verdict.PASS}


def test_power_brake_that_stopped_the_load_is_told_by_its_own_check_first():
    stop = h.guard_stop("step_load", 80.0, reason="power_brake", slot=1, found="the power-brake signal")
    logs = h.without_logs("step_load.json")
    verdicts = {v.key: v for v in all_verdicts(readings=h.readings(events=stop, logs=logs))}
    own = verdicts[f"power.brake[{h.SLOT1}]"]
    assert (own.verdict, own.caused_by) == (Verdict.FAIL, None)
    assert "and the guard stopped the load" in own.reason
    assert verdicts[f"thermals.guard[{h.SLOT1}]"].caused_by == own.key
    assert verdicts["power.step_load[rig]"].caused_by == own.key


@pytest.mark.parametrize(
    ("throttle", "verdict"),
    [(0x4, "PASS"), (0x7F, "PASS"), (0x80, "FAIL"), (0xFF, "FAIL"), (None, "BLIND"), (-1, "ERROR")],
)
def test_power_brake_is_one_bit(throttle, verdict):
    every = (*h.STEPS, "after")
    samples = h.with_gpu_samples(lambda gpu, _: {"throttle": throttle} if gpu.slot == 2 else {}, every)
    found = {v.subject: v.verdict for v in brake(h.spec(), h.readings(samples=samples))}
    assert found == {h.SLOT1: Verdict.PASS, h.SLOT2: Verdict[verdict]}


@pytest.mark.parametrize(("count", "verdict"), [(2, "ERROR"), (3, "PASS")])
def test_fewer_than_three_samples_tell_nothing(count, verdict):
    found = brake(h.spec(), h.readings(samples=h.samples()[:count]))
    assert {v.verdict for v in found} == {Verdict[verdict]}
    assert {v.verdict for v in brake(h.spec(), h.readings(samples=()))} == {Verdict.ERROR}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"logs": h.without_logs("step_load.json")}, "left no readings"),
        ({"logs": h.with_logs(step_load__json="[Unknown Error]")}, "cannot be read"),
        ({"logs": h.with_logs(step_load__json='{"error": "cuBLAS cannot be loaded", "hint": "x"}')}, "cuBLAS"),
        ({"logs": h.with_logs(step_load__json='{"error": "somebody is logged in: bob pts/0"}')}, "bob pts/0"),
        (told(STAGES[:-1]), "stage 5 Hz was not run as asked"),
        (told((*STAGES[:-1], replace(STAGES[-1], times=11))), "stage 5 Hz was not run as asked"),
        (told(done=0), "slot2 did no work in stage 5 Hz"),
        (told(done=STAGES[-1].times - 1), "slot2 did no work"),
        (told(what="slot3"), "slot2 did no work"),
        (told(late_ms=-1.0), "cannot be read"),
        (told(late_ms="N/A"), "cannot be read"),
        ({"samples": h.with_gpu_samples(lambda *_: {"power_w": None}, ("step_load",))}, "was read 0 times"),
        ({"samples": switched_power(0.0, 2001.0)}, "no power of a card"),
        ({"samples": switched_power(-1.0, 440.0)}, "no power of a card"),
        ({"samples": switched_power(300.0, 400.0)}, "not seen to be switched"),
        ({"facts": h.facts(gpus=())}, "NVML shows no card"),
    ],
)
def test_what_was_not_switched_is_an_error(changes, words):
    found = stepped(**changes)
    assert found.verdict is Verdict.ERROR
    assert words in found.reason
    assert found.fix


@pytest.mark.parametrize(
    ("low_w", "high_w", "verdict"),
    [(280.0, 400.0, "PASS"), (281.0, 400.0, "ERROR"), (0.0, 2000.0, "PASS")],
)
def test_a_card_is_seen_to_be_switched_from_three_tenths_on(low_w, high_w, verdict):
    assert stepped(samples=switched_power(low_w, high_w)).verdict is Verdict[verdict]


def test_exactly_as_many_pieces_as_turns_are_work():
    assert stepped(**told(done=STAGES[-1].times)).verdict is Verdict.PASS


@pytest.mark.parametrize(("late_ms", "verdict"), [(50.0, "PASS"), (50.1, "WARN")])
def test_a_pace_at_which_a_worker_came_late_is_named(late_ms, verdict):
    found = stepped(**told(late_ms=late_ms))
    assert found.verdict is Verdict[verdict]
    assert ("not together at 5 Hz" in found.reason) is (verdict == "WARN")


def test_workers_that_came_late_at_every_pace_were_never_switched_together():
    text = json.loads(h.switched(STAGES))
    for stage in text["stages"]:
        stage["workers"][2]["late_ms"] = 501 * stage["on_s"]
    assert stepped(logs=h.with_logs(step_load__json=json.dumps(text))).verdict is Verdict.ERROR


def test_three_readings_of_power_are_enough_and_two_are_not():
    def seen(count):
        return tuple(s for s in h.samples() if s.step != "step_load" or s.seq in kept[:count])

    busy, rest = (
        next(s.seq for s in h.samples() if s.step == "step_load" and s.gpus[0].util_pct == pct) for pct in (100, 0)
    )
    kept = (busy, rest, busy + 1)
    assert stepped(samples=seen(2)).verdict is Verdict.ERROR
    assert stepped(samples=seen(3)).verdict is Verdict.PASS


def test_wrong_bytes_fail():
    found = stepped(**told(wrong=1))
    assert (found.verdict, "slot2 computed wrongly when it was switched at 5 Hz" in found.reason) == (
        Verdict.FAIL,
        True,
    )


def test_each_card_wakes():
    found = woken()
    assert {v.verdict for v in found.values()} == {Verdict.PASS}
    assert "2 wakes after 2 s of rest each, the slowest did 100 % of the best" in found[h.SLOT1].reason.replace(
        "100%", "100 %"
    )


@pytest.mark.parametrize(("done", "verdict"), [(126, "PASS"), (125, "FAIL")])
def test_a_wake_that_does_less_than_seven_tenths_of_the_best_fails(done, verdict):
    found = woken(h.switched(WAKES, done=done))
    assert (found[h.SLOT1].verdict, found[h.SLOT2].verdict) == (Verdict.PASS, Verdict[verdict])


def test_wrong_bytes_after_a_wake_fail():
    assert woken(h.switched(WAKES, wrong=3))[h.SLOT2].found == "wrong bytes"


def test_a_card_that_breaks_off_at_its_wake_fails_and_the_other_was_not_measured_to_the_end():
    text = json.dumps(
        {"error": "slot2: cuCtxSynchronize: unspecified launch failure (719)", "hint": "x", "what": "slot2"}
    )
    logs = {"logs": h.with_logs(idle_to_load__json=text, idle_to_load__log="wake 1: rests\n[]\nwake 2: 1 x\n")}
    found = woken(**logs)
    assert (found[h.SLOT1].verdict, found[h.SLOT2].verdict) == (Verdict.ERROR, Verdict.FAIL)
    assert "broke off at wake 2" in found[h.SLOT2].reason


def test_a_card_that_cannot_be_read_at_its_wake_fails():
    stop = h.guard_stop("idle_to_load", 70.0, reason="no_valid_sample", slot=2, found=5.1, limit=5)
    found = woken(events=stop, logs=h.without_logs("idle_to_load.json"))
    assert (found[h.SLOT1].verdict, found[h.SLOT2].verdict) == (Verdict.ERROR, Verdict.FAIL)
    assert "could not be read any more when it was to wake" in found[h.SLOT2].reason
    stale = h.guard_stop("idle_to_load", 70.0, reason="controller_lost", slot=2, found=61, limit=60)
    assert woken(events=stale, logs=h.without_logs("idle_to_load.json"))[h.SLOT2].verdict is Verdict.ERROR


@pytest.mark.parametrize("text", ["", "N/A", '{"stages": []}', h.switched(WAKES[:1]), h.switched(WAKES, done=0)])
def test_wakes_without_readings_are_errors(text):
    assert woken(text)[h.SLOT2].verdict is Verdict.ERROR


def test_the_step_load_is_asked_for_due_and_allowed():
    spec = h.spec()
    once = h.PROFILE.model_copy(update={"step_load_only_first": True})
    assert step_load_asked(spec, h.PROFILE, first=False)
    assert step_load_asked(spec, once, first=True)
    assert not step_load_asked(spec, once, first=False)
    assert not step_load_asked(h.spec(allow_step_load=False), h.PROFILE, first=True)
    assert not step_load_asked(spec, h.PROFILE.model_copy(update={"step_load_seconds": 0}), first=True)


def test_each_pace_gets_its_share_of_the_time_and_one_turn_at_least():
    long = step_load_stages(h.PROFILE.model_copy(update={"step_load_seconds": 300}))
    assert [(one.name, one.times) for one in long] == [
        ("0.1 Hz", 5),
        ("0.2 Hz", 10),
        ("0.5 Hz", 25),
        ("1 Hz", 50),
        ("2 Hz", 100),
        ("5 Hz", 250),
    ]
    assert sum(one.seconds for one in long) == pytest.approx(300)
    assert [one.times for one in STAGES] == [1, 1, 1, 2, 4, 10]
