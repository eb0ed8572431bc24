"""Comparisons that decide whether a burn may end early, at their edge."""

from __future__ import annotations

import pytest

from bench import early_stop
from rigctl.checks import cooling, early, thermals
from rigctl.checks.burn import Burn
from rigctl.checks.say import Say
from rigctl.parse import gpu_burn
from rigctl.sim.burns import Burn as Simulated
from rigctl.sim.burns import cut

from . import healthy as h

SPEC = early_stop.SPEC


@pytest.fixture(scope="module")
def night():
    """A burn at the moment when its verdict is certain, and what is known of its rig."""
    whole = Simulated(early_stop.identity_of(1), limit_w=480.0, seed=1).run()
    baseline = early_stop.baseline_of(whole)
    _, seconds = early_stop.ended(whole, baseline)
    return cut(whole, seconds, "x").model_copy(update={"events": ()}), baseline


@pytest.mark.parametrize(("more_s", "certain"), [(0.0, True), (0.001, False)])
def test_a_burn_may_end_at_the_least_time(night, monkeypatch, more_s, certain):
    so_far, baseline = night
    taken = so_far.of_step("gpu_burn")
    monkeypatch.setattr(early, "LEAST_S", taken[-1].t_mono_s - taken[0].t_mono_s + more_s)
    assert (early.certain(SPEC, early_stop.PROFILE, so_far, baseline) is not None) is certain


def test_nothing_is_certain_without_cards(night):
    so_far, baseline = night
    none = so_far.model_copy(update={"facts": None})
    assert early.certain(SPEC, early_stop.PROFILE, none, baseline) is None


@pytest.mark.parametrize(
    ("rise", "shown"), [((0.5, 1.5), (0.5, 1.5)), ((-1.5, 0.5), (-1.5, 0.5)), ((0, 1.51), (-1.5, 1.5))]
)
def test_what_rises_by_the_sensors_step_and_a_half_is_at_rest(night, monkeypatch, rise, shown):
    so_far, baseline = night
    monkeypatch.setattr(early, "_still_rises", lambda *_: rise)
    state = early.SoFar(SPEC, so_far, baseline, 10.0, None, ())
    found = next(f for f in early._of_card(state, so_far.facts.gpus[0]) if f.name == "rise")
    assert (found.low, found.high) == shown


def pointed(monkeypatch, *points):
    monkeypatch.setattr(early, "_points", lambda *_: list(points))


STAIRS = [(float(t), 10.0 * (t // 30)) for t in range(1, 91)]
"""From the 1st second to the 90th; a step up at 30 and 60 s, and one at the end."""


@pytest.mark.parametrize(("first", "known"), [(0.0, True), (0.5, False)])
def test_a_window_is_ninety_seconds(monkeypatch, first, known):
    pointed(monkeypatch, (first, 0.0), *STAIRS)
    assert (early._thirds(h.readings(), "", "temp_c") is not None) is known


def test_thirds_of_the_window_have_no_moment_in_common(monkeypatch):
    pointed(monkeypatch, *((float(t), float(t)) for t in range(0, 91, 10)))
    # (end - t) / 30 is 0 … 3: from 0 to below 1 is the last third, and what is 90 s old is out.
    assert early._thirds(h.readings(), "", "temp_c") == (20.0, 50.0, 80.0)


def test_three_points_make_a_third(monkeypatch):
    pointed(monkeypatch, *((float(t), float(t)) for t in (0, *range(10, 91, 10))))
    assert early._thirds(h.readings(), "", "temp_c") is not None
    pointed(monkeypatch, *((float(t), float(t)) for t in (0, 10, 20, *range(40, 91, 10))))
    assert early._thirds(h.readings(), "", "temp_c") is None


@pytest.mark.parametrize(
    ("thirds", "ahead"),
    [
        ((-1.0, 0.0, 0.4), 0.4),  # flat
        ((-1.0, 0.0, 0.41), pytest.approx(0.41 * 0.41 / 0.59)),
        ((-1.0, 0.0, 0.89), pytest.approx(0.89 * 0.89 / 0.11)),
        ((-1.0, 0.0, 0.9), None),
        ((1.0, 0.0, 0.5), None),
        ((0.0, 0.0, 0.5), None),
    ],
)
def test_where_a_curve_goes_at_its_edges(thirds, ahead):
    assert early._ahead_c(thirds, 1e6) == ahead


def test_what_still_rises_looks_back_for_ninety_seconds(monkeypatch):
    nothing = h.readings(facts=None, samples=())
    rising = [(float(t), t / 90) for t in range(91)]
    pointed(monkeypatch, (-1.0, 100.0), *rising)
    assert early._still_rises(nothing, "", 179.0) == pytest.approx((0.0, (91 + 179) / 3 / 3 / 90))
    pointed(monkeypatch, (0.0, 100.0), *rising[1:])
    assert early._still_rises(nothing, "", 0.0)[0] < 0


def rated(*rates):
    """The figure of a burn whose rows show card 2's rates at these percents."""
    rows = [h.row(percent, rates=(100, rate)) for percent, rate in rates]
    log = gpu_burn.parse(h.burn_log(rows))
    spec = SPEC.model_copy(update={"limits": SPEC.limits.model_copy(update={"max_burn_gflops_drift": 0.25})})
    return early._rate(spec, Burn("gpu_burn", 600, log, None, None), h.gpu(1))


STEADY = ((20.0, 100), (40.0, 100))


@pytest.mark.parametrize(("rows", "known"), [(3, True), (2, False)])
def test_three_rows_make_a_rate(rows, known):
    found = rated(*STEADY, *((70.0 + 10 * i, 100) for i in range(rows - 1)), (100.0, 100))
    assert (found.high < 1e9) is known


def test_a_rate_that_fell_nearly_as_far_as_it_may_is_not_certain(monkeypatch):
    monkeypatch.setattr(early, "DOUBT_SHARE", 0.125)
    for found, known in ((62.5, True), (63.0, False), (87.5, True), (87.0, False)):
        rates = [(p, 2 * found) for p in (70.0, 80.0, 100.0)]
        doubled = [(p, 200) for p in (20.0, 40.0)]
        assert (rated(*doubled, *((p, int(rate)) for p, rate in rates)).high < 1e9) is known


@pytest.mark.parametrize(
    ("most", "share", "doubtful"),
    [
        (0.0, 0.0, False),
        (0.0, 0.001, True),
        (0.0, 0.499, True),
        (0.0, 0.5, False),
        (0.5, 0.99, True),
        (0.5, 1.0, False),
    ],
)
def test_a_share_of_throttling_that_can_still_be_diluted(monkeypatch, most, share, doubtful):
    monkeypatch.setattr(thermals, "throttle", lambda *_: [Say("thermals.throttle").failed("x", share, "y")])
    spec = SPEC.model_copy(update={"limits": SPEC.limits.model_copy(update={"max_bad_throttle_share": most})})
    assert early._throttles_now(spec, early_stop.PROFILE, h.readings()) is doubtful


def walled(watts, count=20):
    limits = SPEC.limits.model_copy(update={"wall_power_gpu_burn_w": 1000.0, "wall_power_tolerance_share": 0.25})
    third = [s.seq for s in h.samples() if s.step == "gpu_burn" and s.gpus[1].util_pct == 100][-20:][:count]
    samples = tuple(s.model_copy(update={"wall_power_w": watts if s.seq in third else None}) for s in h.samples())
    return early._certain_wall(SPEC.model_copy(update={"limits": limits}), h.readings(samples=samples))


@pytest.mark.parametrize(("count", "certain"), [(3, True), (2, False)])
def test_three_readings_of_the_wall_are_enough(count, certain):
    assert walled(1000.0, count) is certain


@pytest.mark.parametrize(
    ("watts", "certain"),
    [
        (1000.0, True),
        (1124.0, True),
        (1125.0, False),
        (1250.0, False),
        (1375.0, False),
        (1376.0, True),
        (625.0, False),
        (624.0, True),
    ],
)
def test_the_wall_near_its_bounds_is_not_certain(monkeypatch, watts, certain):
    monkeypatch.setattr(early, "DOUBT_SHARE", 0.125)
    assert walled(watts) is certain


def of_card(night, compared=(), **limits):
    """The figures of card 1 by name."""
    so_far, baseline = night
    spec = SPEC.model_copy(update={"limits": SPEC.limits.model_copy(update=limits)})
    state = early.SoFar(spec, so_far, baseline, 10.0, None, tuple(compared))
    return {figure.name: figure for figure in early._of_card(state, so_far.facts.gpus[0])}


def test_a_share_of_the_limit_is_a_figure_where_one_is_declared(night):
    assert "power" in of_card(night, min_power_share_of_limit=0.9)
    assert "power" not in of_card(night, min_power_share_of_limit=None)


def test_the_memory_is_a_figure_where_the_card_tells_it(night):
    so_far, baseline = night
    assert "memory" not in of_card(night)
    telling = tuple(
        s.model_copy(update={"gpus": tuple(one.model_copy(update={"memory_temp_c": 70}) for one in s.gpus)})
        for s in so_far.samples
    )
    assert "memory" in of_card((so_far.model_copy(update={"samples": telling}), baseline))


def test_what_compares_is_a_figure_of_its_own_card(night):
    so_far, baseline = night
    one, two = so_far.facts.gpus
    known = cooling.known_resistance(baseline, one.uuid, "°C/W over its own rest")
    said = [
        Say("thermals.resistance", one.subject, 0.2, "°C/W over its own rest").passed("x", 0.1),
        Say("thermals.card_spread", one.subject, 5, "°C").passed("x", 3.0),
    ]
    others = [Say(check, two.subject).passed("x", 9.0) for check in ("thermals.resistance", "thermals.card_spread")]
    found = of_card(night, [*said, *others], max_gpu_temp_spread_c=5.0)
    assert found["resistance"].high == pytest.approx(0.103)
    assert known is not None
    assert found["resistance"].limits == (0.2, pytest.approx(known * (1 + SPEC.limits.max_gpu_c_per_w_rise_share)))
    assert (found["spread"].high, found["spread"].limits) == (3.8, (5.0,))
    assert of_card((so_far, None), said)["resistance"].limits == (0.2, None)
    assert set(of_card(night, others)) & {"resistance", "spread"} == set()
