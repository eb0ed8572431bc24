"""Thermal comparisons at their edge: so many samples are enough, and what is exactly at a limit is within it."""

from __future__ import annotations

import pytest

from rigctl.checks import cooling, fans, guard, thermals
from rigctl.checks.curve import Curve, Spoilt, _near_since, at_rest, curve_of, read_curve, slope
from rigctl.checks.load import NoLoad
from rigctl.checks.say import Say
from rigctl.model.verdict import Verdict

from . import healthy as h
from .edges import burning, idle_but, shown
from .test_thermals import baseline, figure, of

PASS, FAIL, ERROR, WARN = Verdict.PASS, Verdict.FAIL, Verdict.ERROR, Verdict.WARN
SAY = Say("thermals.resistance", expected=0.1, unit="°C/W")


@pytest.mark.parametrize(("count", "enough"), [(3, True), (2, False)])
def test_three_readings_of_power_are_enough(count, enough):
    assert (cooling.settled_power_w(shown(count, power_w=None), h.UUIDS[1]) is not None) is enough


def test_a_resistance_at_its_limit_is_within_it():
    steady = Curve(58.0, 58.0, 0.0, 300.0, 100.0)
    assert cooling._of_spec(SAY, h.readings(), steady, 0.1) is None
    assert cooling._of_spec(SAY, h.readings(), steady, 0.1001) is not None


@pytest.mark.parametrize(("found", "verdict"), [(0.375, PASS), (0.3751, FAIL)])
def test_a_resistance_may_rise_by_the_declared_share(found, verdict):
    history = baseline(figure(0.25, unit="°C/W"))
    assert cooling._of_baseline(SAY, h.gpu(1), found, 0.5, history).verdict is verdict


def test_an_accepted_resistance_of_nothing_is_none():
    assert cooling.known_resistance(baseline(figure(0.0)), h.UUIDS[1], figure(0.0).unit) is None


@pytest.mark.parametrize(
    ("count", "rooms", "mean"), [(6, 3, 20.0), (6, 2, None), (4, 3, 20.0), (4, 2, None), (8, 4, 20.0), (8, 3, None)]
)
def test_half_of_the_samples_and_three_show_the_room(count, rooms, mean):
    samples = [
        s.model_copy(update={"room_temps_c": {"t": 20.0} if i < rooms else {}})
        for i, s in enumerate(h.samples()[:count])
    ]
    assert cooling._mean_of(samples, lambda s: s.room_temps_c) == mean


@pytest.mark.parametrize(("count", "verdict"), [(3, PASS), (2, WARN)])
def test_three_samples_show_a_card_at_rest(count, verdict):
    assert of(cooling.resistance(h.spec(), shown(count, "idle", temp_c=None), None)).verdict is verdict


@pytest.mark.parametrize(("count", "coolest"), [(3, "slot2"), (2, "slot1")])
def test_three_samples_tell_which_card_is_the_coolest(count, coolest):
    cool = {"temp_c": 25.0}
    hidden = {s.seq for s in h.samples() if s.step == "idle"} - {0, 1, 2}
    keep = {0, 1, 2} if count == 3 else {0, 1}

    def change(gpu, s):
        return {} if gpu.slot == 1 else cool if s.seq in keep else {"temp_c": None}

    assert hidden
    (found,) = cooling.rest_temp(h.spec(), h.readings(samples=h.with_gpu_samples(change, ("idle",))), h.PROFILE)
    assert coolest in found.reason


@pytest.mark.parametrize(("room_c", "verdict"), [(0.0, ERROR), (0.1, PASS), (149.9, FAIL), (150.0, ERROR)])
def test_what_is_no_temperature_of_a_room(room_c, verdict):
    assert cooling._judge_rest(SAY, 35.0, "room", room_c).verdict is verdict


def test_two_cards_are_twins_and_one_is_not():
    alone = h.spec(parts={"gpu_count": 1})
    assert cooling.card_spread(alone, h.readings())[0].verdict is Verdict.SKIP


def test_no_time_at_rest_is_no_error():
    none = h.readings(samples=tuple(s for s in h.samples() if s.step != "idle"))
    (asked,) = cooling.rest_temp(h.spec(), none, h.PROFILE)
    (not_asked,) = cooling.rest_temp(h.spec(), none, h.PROFILE.model_copy(update={"idle_seconds": 0}))
    assert (asked.verdict, not_asked.verdict) == (ERROR, Verdict.SKIP)


@pytest.mark.parametrize(("rise_c", "steady"), [(1.5, True), (-1.5, True), (1.51, False), (-1.51, False)])
def test_what_moves_by_the_sensors_step_and_a_half_is_steady(rise_c, steady):
    assert Curve(50, 50, rise_c, 300, 0).steady is steady


def test_the_last_third_begins_at_two_thirds():
    assert curve_of([0.0, 1.0, 2.0, 3.0], [0.0, 0.0, 10.0, 20.0]).settled_c == 15.0


def test_one_moment_has_no_slope():
    assert slope([(1.0, 2.0), (1.0, 3.0)]) == 0.0


@pytest.mark.parametrize(("settled_c", "since"), [(11.5, 0.0), (11.6, 9.0)])
def test_near_is_one_and_a_half_degrees(settled_c, since):
    assert _near_since([float(t) for t in range(10)], [10.0] * 10, settled_c) == since


@pytest.mark.parametrize(("count", "kind"), [(29, Curve), (28, Spoilt)])
def test_half_of_the_loaded_samples_make_a_curve(count, kind):
    assert isinstance(read_curve(shown(count, temp_c=None), "gpu_burn", h.UUIDS[1]), kind)


@pytest.mark.parametrize(("count", "kind"), [(3, Curve), (2, NoLoad)])
def test_three_loaded_samples_make_a_curve(count, kind):
    assert isinstance(read_curve(idle_but(count), "gpu_burn", h.UUIDS[1]), kind)


@pytest.mark.parametrize(("count", "kind"), [(3, Spoilt), (2, NoLoad)])
def test_three_loaded_samples_of_which_few_show_it_are_a_sensors_fault(count, kind):
    samples = idle_but(count).samples
    first = next(s.seq for s in samples if s.step == "gpu_burn" and s.gpus[1].util_pct == 100)
    hidden = tuple(
        s.model_copy(update={"gpus": (s.gpus[0], s.gpus[1].model_copy(update={"temp_c": None}))})
        if s.seq == first
        else s
        for s in samples
    )
    assert isinstance(read_curve(h.readings(samples=hidden), "gpu_burn", h.UUIDS[1]), kind)


def test_two_samples_of_one_moment_are_out_of_order():
    at = next(s for s in h.samples() if s.step == "gpu_burn" and s.gpus[1].util_pct == 100)
    samples = tuple(s.model_copy(update={"t_mono_s": at.t_mono_s}) if s.seq == at.seq + 1 else s for s in h.samples())
    assert isinstance(read_curve(h.readings(samples=samples), "gpu_burn", h.UUIDS[1]), Spoilt)


@pytest.mark.parametrize(("count", "kind"), [(3, Spoilt), (2, Curve)])
def test_three_samples_at_rest_show_a_sensor_that_is_stuck(count, kind):
    keep = {s.seq for s in h.samples() if s.step == "idle"} - set(range(count))

    def change(_gpu, s):
        return {"temp_c": None} if s.seq in keep else {"temp_c": 44.0}

    readings = h.readings(samples=h.with_gpu_samples(change, ("idle", "gpu_burn")))
    assert isinstance(read_curve(readings, "gpu_burn", h.UUIDS[1]), kind)


@pytest.mark.parametrize(("pct", "count"), [(49, 4), (50, 0), (None, 4)])
def test_a_card_at_half_load_is_not_at_rest(pct, count):
    readings = h.readings(samples=h.with_gpu_samples(lambda *_: {"util_pct": pct}, ("idle",)))
    assert len(at_rest(readings, h.UUIDS[1])) == count


@pytest.mark.parametrize(("own", "whose"), [(65.0, "58 and 55"), (64.9, "slowdown")])
def test_the_tighter_limit_is_named(own, whose):
    readings = h.readings(facts=h.facts(gpus=(h.gpu(0), h.gpu(1, slowdown_temp_c=own))))
    assert whose in of(thermals.settled_gpu_temp(h.spec(), readings)).source


@pytest.mark.parametrize(("own", "whose"), [(95.0, "limits."), (94.9, "the card")])
def test_the_tighter_limit_of_the_memory_is_named(own, whose):
    facts = h.facts(gpus=(h.gpu(0), h.gpu(1, memory_max_temp_c=own)))
    readings = burning(memory_temp_c=70).model_copy(update={"facts": facts})
    spec = h.spec(
        limits={"max_settled_gpu_memory_temp_c": 95}, sources={"limits.max_settled_gpu_memory_temp_c": "limits."}
    )
    assert whose in of(thermals.memory_temp(spec, readings)).source


@pytest.mark.parametrize(("seconds", "verdict"), [(300, FAIL), (299, WARN)])
def test_from_five_minutes_on_a_burn_must_settle(seconds, verdict):
    rising = h.with_gpu_samples(lambda gpu, s: {"temp_c": s.t_mono_s - 970} if gpu.util_pct == 100 else {})
    profile = h.PROFILE.model_copy(update={"gpu_burn_seconds": seconds})
    assert of(thermals.steady_state(h.spec(), h.readings(samples=rising), profile)).verdict is verdict


@pytest.mark.parametrize(("count", "verdict"), [(3, PASS), (2, ERROR)])
def test_three_masks_tell_why_a_card_throttles(count, verdict):
    readings = shown(count, throttle=None)
    profile = h.PROFILE.model_copy(update={"all_burn_seconds": 0})
    assert of(thermals.throttle(h.spec(), readings, profile)).verdict is verdict


@pytest.mark.parametrize(("most", "verdict"), [(0.5, PASS), (0.49, FAIL)])
def test_a_share_of_throttling_at_its_limit_is_within_it(most, verdict):
    busy = [s.seq for s in h.samples() if s.step == "gpu_burn" and s.gpus[1].util_pct == 100]
    hot = set(busy[::2])
    assert len(busy) == 2 * len(hot)
    samples = h.with_gpu_samples(lambda _, s: {"throttle": 0x20} if s.seq in hot else {}, ("gpu_burn",))
    profile = h.PROFILE.model_copy(update={"all_burn_seconds": 0})
    spec = h.spec(limits={"max_bad_throttle_share": most})
    assert of(thermals.throttle(spec, h.readings(samples=samples), profile)).verdict is verdict


@pytest.mark.parametrize(("temp_c", "verdict"), [(90.0, PASS), (90.1, FAIL)])
def test_the_processor_at_its_limit_is_within_it(temp_c, verdict):
    readings = h.readings(samples=h.with_samples(("cpu_burn", "all_burn"), cpu_temp_c=temp_c))
    (found,) = thermals.cpu_temp(h.spec(), readings, h.PROFILE)
    assert found.verdict is verdict


@pytest.mark.parametrize(
    ("seen", "temp_c", "verdict"),
    [(0.5, 78.0, PASS), (0.4, 78.0, ERROR), (0.4, 90.0, ERROR), (0.4, 90.1, FAIL), (0.5, 90.0, PASS)],
)
def test_half_of_the_samples_must_show_a_processor_that_passes(seen, temp_c, verdict):
    burnt = [s.seq for s in h.samples() if s.step == "cpu_burn"]
    shown_in = set(burnt[: int(len(burnt) * seen)])
    samples = tuple(
        s.model_copy(update={"cpu_temp_c": temp_c if s.seq in shown_in else None}) if s.step == "cpu_burn" else s
        for s in h.samples()
    )
    profile = h.PROFILE.model_copy(update={"all_burn_seconds": 0})
    (found,) = thermals.cpu_temp(h.spec(), h.readings(samples=samples), profile)
    assert found.verdict is verdict


def test_a_step_that_is_not_asked_for_lacks_no_temperature():
    samples = tuple(s for s in h.samples() if s.step != "cpu_burn")
    profile = h.PROFILE.model_copy(update={"cpu_burn_seconds": 0})
    (found,) = thermals.cpu_temp(h.spec(), h.readings(samples=samples), profile)
    assert found.verdict is PASS


def tachometer(*rpm, expected=None):
    return fans.Tachometer("Pump", "pump", [], list(rpm), [], expected)


@pytest.mark.parametrize(("count", "verdict"), [(3, PASS), (2, ERROR)])
def test_three_samples_of_the_burn_show_a_fan(count, verdict):
    assert fans._judge(SAY, tachometer(*[1500] * count), None, "rig1").verdict is verdict
    spinning = tuple(s.model_copy(update={"fans_rpm": {"fan1": 900 + s.seq}}) for s in idle_but(count).samples)
    (found,) = fans.fans(h.spec(), h.readings(samples=spinning), None)
    assert found.verdict is verdict


@pytest.mark.parametrize(("rpm", "slow"), [(1400, False), (1399, True)])
def test_a_pump_at_seventy_per_cent_is_fast_enough(rpm, slow):
    assert (fans._too_slow(SAY, tachometer(*[rpm] * 3), 2000.0) is not None) is slow
    assert (fans._too_slow(SAY, tachometer(*[rpm] * 3, expected=1400), None) is not None) is slow


@pytest.mark.parametrize(("rpm", "lies"), [(30_000, False), (30_001, True), (0, False), (-1, True)])
def test_what_nothing_in_a_rig_does(rpm, lies):
    assert (fans._lie(tachometer(rpm, 900)) is not None) is lies


@pytest.mark.parametrize(("count", "verdict"), [(3, Verdict.BLIND), (2, ERROR)])
def test_three_loaded_samples_are_a_load_though_its_last_third_shows_no_noise(count, verdict):
    assert of(fans.fan_speed(h.spec(), idle_but(count))).verdict is verdict


@pytest.mark.parametrize(("count", "verdict"), [(3, PASS), (2, Verdict.BLIND)])
def test_three_readings_of_a_fan_are_enough(count, verdict):
    assert of(fans.fan_speed(h.spec(), shown(count, fan_pct=None))).verdict is verdict


@pytest.mark.parametrize(
    ("detail", "source"),
    [
        ({"limit": 85.0}, "limits.guard_max_gpu_temp_c"),
        ({"limit": 80.0}, "the card's own slowdown temperature"),
        ({"limit": 85.0, "limit_from": "card"}, "the card's own slowdown temperature"),
        ({"limit": 80.0, "limit_from": "spec"}, "limits.guard_max_gpu_temp_c"),
    ],
)
def test_whose_limit_the_guard_held_a_card_against(detail, source):
    stop = h.guard_stop("gpu_burn", 25.0, reason="temperature", slot=2, found=86.0, **detail)
    (found,) = guard.guard(h.spec(), h.readings(events=stop))
    assert (found.verdict, source in found.source) == (FAIL, True)
