"""Curves, resistances, spread, fans: what they pass, fail, and refuse to judge."""

from __future__ import annotations

import math

import pytest

from rigctl.checks import cooling, fans, thermals
from rigctl.checks.curve import Curve, Spoilt, curve_of, read_curve
from rigctl.model.baseline import Baseline, Figure
from rigctl.model.spec import CoolingSpec
from rigctl.model.verdict import Verdict

from . import healthy as h
from .test_fail import under_load
from .test_healthy import all_verdicts

REST = "°C/W over its own rest"


def baseline(*figures):
    return Baseline(
        run_id="r1", profile="standard", ended_at="2026-11-01T02:00:00Z", facts=h.facts(), figures=figures, runs=3
    )


def figure(found, uuid=h.UUIDS[1], unit=REST, check="thermals.resistance"):
    return Figure(check=check, subject=uuid, found=found, unit=unit)


def of(verdicts, subject=h.SLOT2):
    (found,) = [v for v in verdicts if v.subject == subject]
    return found


@pytest.mark.parametrize("seed", range(3))
def test_a_curve_that_settles_is_steady_and_knows_since_when(seed):
    times = [i / 2 for i in range(1200)]
    temps = [float(round(58 - 33 * math.exp(-t / 60) + ((i + seed) % 3 - 1) * 0.3)) for i, t in enumerate(times)]
    curve = curve_of(times, temps)
    assert curve.steady
    assert curve.settled_c == pytest.approx(58, abs=0.5)
    assert 120 < curve.steady_after_s < 240  # 33 °C fall to 1.5 °C in 3.1 time constants


@pytest.mark.parametrize("per_minute", [-0.6, 0.6])
def test_a_curve_that_still_moves_is_not_steady(per_minute):
    times = [i / 2 for i in range(1200)]
    curve = curve_of(times, [50 + per_minute * t / 60 for t in times])
    assert not curve.steady
    assert curve.rise_c == pytest.approx(per_minute * 10 / 3, abs=0.05)


def test_the_rise_over_the_last_third_is_held_against_one_and_a_half_degrees():
    times = [float(i) for i in range(301)]
    assert curve_of(times, [40 + 1.49 * t / 100 for t in times]).steady
    assert not curve_of(times, [40 + 1.52 * t / 100 for t in times]).steady


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: {"temp_c": 0.0}, "is no temperature"),
        (lambda t: {"temp_c": -3.0}, "is no temperature"),
        (lambda t: {"temp_c": 150.0}, "is no temperature"),
        (lambda t: {"temp_c": None if int(t * 2) % 3 else 58.0}, "loaded samples show it"),
    ],
    ids=["zero", "negative", "absurd", "mostly absent"],
)
def test_spoilt_temperatures_are_errors_in_every_check_of_them(change, words):
    spoilt = h.with_gpu_samples(lambda gpu, s: change(s.t_mono_s) if gpu.slot == 2 and gpu.util_pct == 100 else {})
    verdicts = all_verdicts(readings=h.readings(samples=spoilt))
    for check in ("settled_gpu_temp", "steady_state", "resistance", "card_spread"):
        found = of([v for v in verdicts if v.check == f"thermals.{check}"])
        assert (found.verdict, words in found.reason) == (Verdict.ERROR, True), found


def test_a_sensor_that_says_the_same_at_rest_and_under_load_is_stuck():
    readings = h.readings(samples=h.with_gpu_samples(lambda *_: {"temp_c": 44.0}, ("before", "idle", "gpu_burn")))
    found = read_curve(readings, "gpu_burn", h.UUIDS[0])
    assert isinstance(found, Spoilt)
    assert "44 °C at rest and under load alike" in found.reason


def test_times_out_of_order_are_no_curve():
    samples = [*h.samples()]
    samples[40] = samples[40].model_copy(update={"t_mono_s": samples[39].t_mono_s})
    found = read_curve(h.readings(samples=tuple(samples)), "gpu_burn", h.UUIDS[0])
    assert isinstance(found, Spoilt)
    assert "out of order" in found.reason


def test_the_resistance_of_a_cold_room_is_that_of_a_warm_one():
    found = []
    for room in (-15, 0, 12):
        samples = h.with_gpu_samples(lambda gpu, _, room=room: {"temp_c": gpu.temp_c + room}, tuple(h.STEPS))
        found.append(of(cooling.resistance(h.spec(), h.readings(samples=samples), None)).found)
    assert found == [pytest.approx(24 / 420, abs=5e-4)] * 3


@pytest.mark.parametrize(
    ("sensors", "unit", "expected"),
    [
        ({"coolant_temps_c": {"d5next Coolant temp": 33.0}, "room_temps_c": {"x Ambient": 21.0}}, "coolant", 22 / 441),
        ({"room_temps_c": {"x Ambient": 21.0}}, "room", 34 / 441),
    ],
)
def test_a_sensor_of_water_or_room_is_what_the_resistance_is_measured_against(sensors, unit, expected):
    limits = {"max_gpu_c_per_w": 0.1, "max_gpu_c_per_w_coolant": 0.06}
    readings = h.readings(samples=h.with_samples(tuple(h.STEPS), **sensors))
    found = of(cooling.resistance(h.spec(limits=limits), readings, None))
    assert (found.verdict, found.unit) == (Verdict.PASS, f"°C/W over the {unit}")
    assert found.found == pytest.approx(expected, abs=1e-3)


def test_a_rise_above_the_accepted_run_fails_whatever_the_spec_allows():
    for known, verdict in ((0.0476, Verdict.FAIL), (0.0477, Verdict.PASS), (0.08, Verdict.PASS)):
        found = of(cooling.resistance(h.spec(), h.readings(), baseline(figure(known))))  # 0.0571 now
        assert found.verdict is verdict, (known, found)
    assert "accepted run" in found.reason


def test_an_accepted_run_that_measured_against_something_else_is_not_compared():
    other = baseline(figure(0.02, unit="°C/W over the coolant"))
    assert of(cooling.resistance(h.spec(), h.readings(), other)).verdict is Verdict.PASS


def test_without_any_limit_the_resistance_is_shown_and_not_judged():
    found = of(cooling.resistance(h.spec(limits={"max_gpu_c_per_w": None}), h.readings(), None))
    assert (found.verdict, found.found) == (Verdict.WARN, pytest.approx(0.057, abs=1e-3))


def test_a_card_that_was_still_cooling_down_is_not_judged():
    warm = h.with_gpu_samples(lambda _, s: {"temp_c": 45 - 4 * (s.t_mono_s - 1000)}, ("idle",))
    found = of(cooling.resistance(h.spec(), h.readings(samples=warm), None))
    assert (found.verdict, found.found) == (Verdict.WARN, None)
    assert "cooling down" in found.reason


def test_a_card_that_hardly_draws_more_than_at_rest_shows_no_resistance():
    assert of(cooling.resistance(h.spec(), h.readings(**under_load(power_w=60.0)), None)).verdict is Verdict.ERROR


def test_the_warmer_card_is_named_and_the_colder_one_is_no_fault():
    verdicts = cooling.card_spread(h.spec(), h.readings(**under_load(temp_c=49.0)))
    assert (of(verdicts, h.SLOT1).verdict, of(verdicts).verdict) == (Verdict.FAIL, Verdict.PASS)


@pytest.mark.parametrize(("limits", "parts"), [({"max_gpu_temp_spread_c": None}, {}), ({}, {"gpu_count": 1})])
def test_no_twin_or_no_limit_is_skipped(limits, parts):
    (found,) = cooling.card_spread(h.spec(limits=limits, parts=parts), h.readings())
    assert found.verdict is Verdict.SKIP


def test_the_room_is_its_sensor_or_the_coolest_card():
    (coolest,) = cooling.rest_temp(h.spec(), h.readings(), h.PROFILE)
    warm = h.readings(samples=h.with_samples(("idle",), room_temps_c={"x Ambient": 36.5}))
    (sensor,) = cooling.rest_temp(h.spec(), warm, h.PROFILE)
    assert (coolest.verdict, coolest.found) == (Verdict.PASS, 31)
    assert (sensor.verdict, sensor.found) == (Verdict.FAIL, 36.5)


def test_a_warm_room_is_the_one_cause_of_warm_cards():
    change = {"temp_c": 39.0}
    warm = h.with_gpu_samples(
        lambda gpu, s: change if s.step == "idle" else {"temp_c": gpu.temp_c + 9}, ("idle", "gpu_burn")
    )
    verdicts = all_verdicts(readings=h.readings(samples=warm))
    bad = [v for v in verdicts if v.verdict in (Verdict.FAIL, Verdict.ERROR)]
    assert [v.key for v in bad if v.caused_by is None] == ["thermals.rest_temp[rig]"]
    assert f"thermals.settled_gpu_temp[{h.SLOT1}]" in {v.key for v in bad}


def test_memory_is_blind_where_nvml_shows_none_and_an_error_where_the_spec_counts_on_it():
    assert of(thermals.memory_temp(h.spec(), h.readings())).verdict is Verdict.BLIND
    limits = {"max_settled_gpu_memory_temp_c": 95}
    assert of(thermals.memory_temp(h.spec(limits=limits), h.readings())).verdict is Verdict.ERROR
    shown = h.readings(**under_load(memory_temp_c=90.0))
    assert of(thermals.memory_temp(h.spec(limits=limits), shown)).verdict is Verdict.PASS
    assert of(thermals.memory_temp(h.spec(), shown)).verdict is Verdict.WARN


def tachometer(burn, idle=None, **spec):
    samples = h.with_samples(("gpu_burn",), fans_rpm={"d5next Pump speed": burn})
    if idle is not None:
        samples = tuple(
            s.model_copy(update={"fans_rpm": {"d5next Pump speed": idle}}) if s.step == "idle" else s for s in samples
        )
    return h.readings(samples=samples)


def test_a_pump_is_held_against_its_history_and_a_fan_is_not():
    known = baseline(figure(2800, "d5next Pump speed", "rpm", "thermals.fans"))
    slow = fans.fans(h.spec(), tachometer(1900, 1901), known)
    assert [v.verdict for v in slow] == [Verdict.FAIL]
    fan = baseline(figure(2800, "nct6798 fan1", "rpm", "thermals.fans"))
    turning = h.readings(samples=h.with_samples(("idle", "gpu_burn"), fans_rpm={"nct6798 fan1": 900}))
    one = [s.model_copy(update={"fans_rpm": {"nct6798 fan1": 900 + s.seq % 5}}) for s in turning.samples]
    assert [v.verdict for v in fans.fans(h.spec(), h.readings(samples=tuple(one)), fan)] == [Verdict.PASS]


def test_a_declared_speed_that_is_not_reached_fails_and_one_that_is_not_there_is_an_error():
    cooling_spec = CoolingSpec(min_rpm={"d5next Pump speed": 2900, "d5next Fan speed": 500})
    found = {v.subject: v.verdict for v in fans.fans(h.spec(cooling=cooling_spec), h.readings(), None)}
    assert found == {"d5next Pump speed": Verdict.FAIL, "d5next Fan speed": Verdict.ERROR}


def test_a_tachometer_that_always_says_the_same_tells_nothing():
    (found,) = fans.fans(h.spec(), tachometer(2800, 2800), None)
    assert found.verdict is Verdict.ERROR
    assert "nothing turns so evenly" in found.reason


@pytest.mark.parametrize(
    ("rpm", "pct", "verdict"),
    [
        (lambda s: 1900, lambda s: 30 if s.step == "idle" else 80, Verdict.ERROR),
        (lambda s: 0, lambda s: 0, Verdict.PASS),
        (lambda s: 0, lambda s: 60, Verdict.FAIL),
        (lambda s: 1900 + s.seq % 9, lambda s: 60, Verdict.PASS),
        (lambda s: -5, lambda s: 60, Verdict.ERROR),
    ],
    ids=["does not follow", "rests", "stands still", "turns", "negative"],
)
def test_a_cards_own_fan(rpm, pct, verdict):
    def change(gpu, s):
        return {"fan_rpm": rpm(s), "fan_pct": pct(s)} if gpu.slot == 2 else {}

    readings = h.readings(samples=h.with_gpu_samples(change, ("idle", "gpu_burn")))
    assert of(fans.fans(h.spec(), readings, None)).verdict is verdict


def test_without_tachometers_it_is_blind():
    (found,) = fans.fans(h.spec(), h.readings(samples=h.with_samples(tuple(h.STEPS), fans_rpm={})), None)
    assert found.verdict is Verdict.BLIND


def test_noise_is_blind_without_fans_and_skipped_without_a_limit():
    none = h.readings(samples=h.with_gpu_samples(lambda *_: {"fan_pct": None}))
    assert of(fans.fan_speed(h.spec(), none)).verdict is Verdict.BLIND
    assert of(fans.fan_speed(h.spec(limits={"max_fan_pct": None}), h.readings())).verdict is Verdict.SKIP


def test_each_reason_of_throttling_is_told_with_its_share():
    some = h.with_gpu_samples(
        lambda gpu, s: {"throttle": 0x44 if s.seq % 4 == 0 else 0x4} if gpu.util_pct == 100 else {}
    )
    found = of(thermals.throttle(h.spec(), h.readings(samples=some), h.PROFILE))
    assert (found.verdict, "hardware thermal slowdown in 2" in found.reason) == (Verdict.FAIL, True)
    assert "power cap in 100%" in of(thermals.throttle(h.spec(), h.readings(), h.PROFILE)).reason


def test_a_curve_is_what_a_healthy_card_has():
    found = read_curve(h.readings(), "gpu_burn", h.UUIDS[0])
    assert isinstance(found, Curve)
    assert (found.settled_c, found.hottest_c, found.steady) == (58, 58, True)
