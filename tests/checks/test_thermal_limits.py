"""Each limit of the thermal checks from both sides: what is just within passes, what is just beyond does not."""

from __future__ import annotations

import pytest

from rigctl.checks import cooling, early, fans, thermals
from rigctl.checks.curve import Spoilt, read_curve
from rigctl.model.spec import CoolingSpec
from rigctl.model.verdict import Verdict

from . import healthy as h
from .test_fail import under_load
from .test_thermals import baseline, figure, of

PASS, FAIL, ERROR, WARN = Verdict.PASS, Verdict.FAIL, Verdict.ERROR, Verdict.WARN


def loaded(**changes):
    return h.readings(**under_load(**changes))


def at_rest(**changes):
    return h.readings(samples=h.with_gpu_samples(lambda *_: changes, ("idle",)))


@pytest.mark.parametrize(("temp_c", "verdict"), [(65.0, PASS), (65.1, FAIL)])
def test_settled(temp_c, verdict):
    assert (
        of(thermals.settled_gpu_temp(h.spec(limits={"max_gpu_temp_spread_c": None}), loaded(temp_c=temp_c))).verdict
        is verdict
    )


@pytest.mark.parametrize(("slowdown_c", "verdict"), [(54.9, FAIL), (55.0, PASS)])
def test_the_cards_own_slowdown_is_the_tighter_limit(slowdown_c, verdict):
    readings = h.readings(facts=h.facts(gpus=(h.gpu(0), h.gpu(1, slowdown_temp_c=slowdown_c))))
    found = of(thermals.settled_gpu_temp(h.spec(), readings))
    assert (found.verdict, found.expected) == (verdict, slowdown_c)


@pytest.mark.parametrize(("temp_c", "verdict"), [(95.0, PASS), (95.1, FAIL)])
@pytest.mark.parametrize(("asked", "own"), [(95, 110.0), (105, 95.0), (None, 95.0)])
def test_memory_is_held_against_the_tighter_of_spec_and_card(temp_c, verdict, asked, own):
    facts = h.facts(gpus=(h.gpu(0), h.gpu(1, memory_max_temp_c=own)))
    readings = loaded(memory_temp_c=temp_c).model_copy(update={"facts": facts})
    found = of(thermals.memory_temp(h.spec(limits={"max_settled_gpu_memory_temp_c": asked}), readings))
    assert (found.verdict, found.expected) == (verdict, 95)


@pytest.mark.parametrize(("margin_c", "verdict"), [(5.0, PASS), (4.9, FAIL), (-2.0, FAIL)])
def test_hot_spot(margin_c, verdict):
    assert of(thermals.hotspot_temp(h.spec(), loaded(margin_c=margin_c))).verdict is verdict


@pytest.mark.parametrize(("temp_c", "verdict"), [(63.0, PASS), (63.1, FAIL)])
def test_spread(temp_c, verdict):
    assert of(cooling.card_spread(h.spec(), loaded(temp_c=temp_c))).verdict is verdict


@pytest.mark.parametrize(("temp_c", "verdict"), [(35.0, PASS), (35.1, FAIL)])
def test_rest(temp_c, verdict):
    (found,) = cooling.rest_temp(h.spec(), at_rest(temp_c=temp_c), h.PROFILE)
    assert found.verdict is verdict


@pytest.mark.parametrize(("limit", "verdict"), [(0.0572, PASS), (0.0571, FAIL)])
def test_resistance(limit, verdict):
    assert of(cooling.resistance(h.spec(limits={"max_gpu_c_per_w": limit}), h.readings(), None)).verdict is verdict


@pytest.mark.parametrize(("power_w", "verdict"), [(71.0, FAIL), (70.9, ERROR)])
def test_fifty_watts_more_than_at_rest_show_a_resistance(power_w, verdict):
    assert of(cooling.resistance(h.spec(), loaded(power_w=power_w), None)).verdict is verdict


@pytest.mark.parametrize(("lost_c", "verdict"), [(1.5, PASS), (1.6, WARN)])
def test_a_card_that_cools_down_at_rest(lost_c, verdict):
    falling = h.with_gpu_samples(lambda _, s: {"temp_c": 31 - (lost_c if s.t_mono_s >= 1001 else 0)}, ("idle",))
    assert of(cooling.resistance(h.spec(), h.readings(samples=falling), None)).verdict is verdict


@pytest.mark.parametrize(("pct", "verdict"), [(60, PASS), (61, FAIL), (150, FAIL), (151, ERROR), (-1, ERROR)])
def test_noise(pct, verdict):
    assert of(fans.fan_speed(h.spec(), loaded(fan_pct=pct))).verdict is verdict


def pump(rpm):
    samples = tuple(s.model_copy(update={"fans_rpm": {"d5next Pump speed": rpm + s.seq % 2}}) for s in h.samples())
    return h.readings(samples=samples)


@pytest.mark.parametrize(("rpm", "verdict"), [(29_999, PASS), (30_000, ERROR)])
def test_the_fastest_thing_that_turns(rpm, verdict):
    (found,) = fans.fans(h.spec(), pump(rpm), None)
    assert found.verdict is verdict


@pytest.mark.parametrize(("least", "verdict"), [(2000, PASS), (2001, FAIL)])
def test_a_declared_speed(least, verdict):
    (found,) = fans.fans(h.spec(cooling=CoolingSpec(min_rpm={"d5next Pump speed": least})), pump(2000), None)
    assert found.verdict is verdict


@pytest.mark.parametrize(("known", "verdict"), [(2857, PASS), (2859, FAIL)])
def test_a_pump_keeps_seventy_per_cent_of_its_speed(known, verdict):
    (found,) = fans.fans(h.spec(), pump(2000), baseline(figure(known, "d5next Pump speed", "rpm", "thermals.fans")))
    assert found.verdict is verdict


@pytest.mark.parametrize(("swing", "verdict"), [(14, PASS), (15, ERROR)])
def test_a_cards_tachometer_must_follow_what_is_asked(swing, verdict):
    def change(gpu, s):
        return {"fan_rpm": 1500, "fan_pct": 40 + (swing if s.step == "gpu_burn" else 0)} if gpu.slot == 2 else {}

    readings = h.readings(samples=h.with_gpu_samples(change, ("idle", "gpu_burn")))
    assert of(fans.fans(h.spec(), readings, None)).verdict is verdict


@pytest.mark.parametrize(("count", "lies"), [(19, False), (20, True)])
def test_so_many_equal_figures_are_no_tachometer(count, lies):
    one = fans.Tachometer("pump", "pump", [], [2800] * count, [], None)
    assert (fans._lie(one) is not None) is lies


@pytest.mark.parametrize(("temp_c", "spoilt"), [(0.0, True), (0.1, False), (149.9, False), (150.0, True)])
def test_what_is_no_temperature(temp_c, spoilt):
    assert isinstance(read_curve(loaded(temp_c=temp_c), "gpu_burn", h.UUIDS[1]), Spoilt) is spoilt


@pytest.mark.parametrize(("rest_w", "spoilt"), [(341.0, True), (342.0, False)])
def test_a_figure_that_stays_is_stuck_only_where_heat_came(rest_w, spoilt):
    samples = h.with_gpu_samples(
        lambda gpu, s: {"temp_c": 44.0} | ({"power_w": rest_w} if gpu.util_pct == 0 else {}), ("idle", "gpu_burn")
    )
    assert isinstance(read_curve(h.readings(samples=samples), "gpu_burn", h.UUIDS[1]), Spoilt) is spoilt


@pytest.mark.parametrize(
    ("thirds", "ahead"),
    [
        ((50.0, 52.0, 52.4), 0.4),
        ((50.0, 52.0, 53.0), 1.0),  # halves: 0.5 + 0.25 + …
        ((50.0, 51.0, 52.0), None),  # straight on: anywhere
        ((50.0, 50.5, 51.5), None),  # faster and faster
        ((52.0, 50.0, 51.0), None),  # up and down
    ],
)
def test_where_a_curve_goes(thirds, ahead):
    found = early._ahead_c(thirds, 1e6)
    assert found == (None if ahead is None else pytest.approx(ahead, abs=0.01))
