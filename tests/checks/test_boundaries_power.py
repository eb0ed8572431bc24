"""Comparisons of power at their edge: cards, wall, energy."""

from __future__ import annotations

import pytest

from rigctl.checks import energy, power, wall
from rigctl.checks.wall import State
from rigctl.model.spec import WallMeterSpec
from rigctl.model.verdict import Verdict

from . import healthy as h
from .edges import burning, sampled, shown
from .test_power import slot2

PASS, FAIL, ERROR, WARN = Verdict.PASS, Verdict.FAIL, Verdict.ERROR, Verdict.WARN
GPU_BURN_ONLY = h.PROFILE.model_copy(update={"all_burn_seconds": 0})


def set_to(watts, own=480.0, most=480.0):
    """The verdict on card 2, whose limit is `own`, the board's most `most`, where `watts` are asked."""
    card = h.gpu(1, power_limit_w=own, power_max_w=most)
    samples = h.with_gpu_samples(lambda gpu, _: {"limit_w": own} if gpu.slot == 2 else {}, tuple(h.STEPS))
    spec = h.spec(software={"power_limit_w": watts})
    return slot2(power.limit(spec, h.readings(facts=h.facts(gpus=(h.gpu(0), card)), samples=samples)))


@pytest.mark.parametrize(("most", "words"), [(479.0, None), (478.9, "allows")])
def test_a_board_that_rounds_its_most_is_no_other_board(most, words):
    found = set_to(480.0, most=most)
    assert (found.verdict, words is None) == (PASS if words is None else FAIL, "allows" not in found.reason)


@pytest.mark.parametrize(
    ("own", "verdict"),
    [(479.0, PASS), (478.9, FAIL), (481.0, PASS), (481.1, FAIL), (0.0, ERROR), (2000.0, FAIL), (2000.1, ERROR)],
)
def test_limits_are_whole_watts_and_possible(own, verdict):
    found = set_to(480.0, own)
    assert found.verdict is verdict
    assert "during the run" not in found.reason


def test_a_limit_that_moved_in_the_run_is_told_so():
    samples = h.with_gpu_samples(lambda gpu, _: {"limit_w": 400.0} if gpu.slot == 2 else {}, ("gpu_burn",))
    found = slot2(power.limit(h.spec(), h.readings(samples=samples)))
    assert (found.verdict, "400 W during the run" in found.reason) == (FAIL, True)


def test_limits_while_the_guard_raises_them_are_not_the_cards_own():
    samples = (
        *h.samples(),
        h.samples()[-1].model_copy(
            update={
                "step": "ramp",
                "gpus": (h.gpu_sample(0, 20), h.gpu_sample(1, 20).model_copy(update={"limit_w": 300.0})),
            }
        ),
    )
    assert slot2(power.limit(h.spec(), h.readings(samples=samples))).verdict is PASS


def at_rest(**changes):
    samples = h.with_gpu_samples(lambda gpu, _: changes if gpu.slot == 2 else {}, ("idle",))
    return slot2(power.idle(h.spec(), h.readings(samples=samples), None))


@pytest.mark.parametrize(("count", "verdict"), [(3, PASS), (2, ERROR)])
def test_three_readings_show_power_at_rest(count, verdict):
    assert slot2(power.idle(h.spec(), shown(count, "idle", power_w=None), None)).verdict is verdict


@pytest.mark.parametrize(
    ("watts", "verdict"), [(0.0, ERROR), (0.1, PASS), (40.0, PASS), (40.1, FAIL), (2000.0, FAIL), (2000.1, ERROR)]
)
def test_power_at_rest(watts, verdict):
    assert at_rest(power_w=watts).verdict is verdict


@pytest.mark.parametrize(("util", "works"), [(0, False), (1, True), (None, False)])
def test_a_card_that_works_at_rest_is_told_so(util, works):
    assert ("at work in" in at_rest(power_w=90.0, util_pct=util).reason) is works


@pytest.mark.parametrize(("count", "verdict"), [(3, PASS), (2, ERROR)])
def test_three_readings_show_the_share_of_the_limit(count, verdict):
    assert slot2(power.share_of_limit(h.spec(), shown(count, power_w=None))).verdict is verdict


def share(power_w, least=0.9, most=1.0, **changes):
    readings = burning(power_w=power_w, **changes)
    limits = {"min_power_share_of_limit": least, "max_power_share_of_limit": most}
    return slot2(power.share_of_limit(h.spec(limits=limits), readings)).verdict


@pytest.mark.parametrize(
    ("power_w", "verdict"),
    [(432.0, PASS), (431.9, FAIL), (480.0, PASS), (480.1, FAIL), (0.0, FAIL), (2000.0, FAIL), (2000.1, ERROR)],
)
def test_a_share_at_its_limits_is_within_them(power_w, verdict):
    assert share(power_w, throttle=0) is verdict


@pytest.mark.parametrize(("power_w", "verdict"), [(480.0, WARN), (480.1, FAIL)])
def test_a_share_that_nobody_declared_is_held_against_the_limit_itself(power_w, verdict):
    assert share(power_w, None) is verdict


@pytest.mark.parametrize(("power_w", "verdict"), [(384.0, PASS), (383.9, FAIL)])
def test_a_capped_card_may_stay_a_tenth_below(power_w, verdict):
    assert share(power_w, throttle=4) is verdict


@pytest.mark.parametrize(("capped", "verdict"), [(18, PASS), (17, FAIL)])
def test_nine_of_ten_samples_are_nearly_all(capped, verdict):
    third = [s.seq for s in h.samples() if s.step == "gpu_burn" and s.gpus[1].util_pct == 100][-20:]
    samples = h.with_gpu_samples(
        lambda _, s: {"power_w": 400.0, "throttle": 4 if s.seq in third[:capped] else 0}, ("gpu_burn",)
    )
    assert slot2(power.share_of_limit(h.spec(), h.readings(samples=samples))).verdict is verdict


def walled(readings, nominal=1000.0, **limits):
    limits = {"wall_power_gpu_burn_w": nominal, "wall_power_tolerance_share": 0.25, **limits}
    return power._wall(h.spec(limits=limits), readings, "gpu_burn", nominal)


@pytest.mark.parametrize(("watts", "verdict"), [(750.0, PASS), (749.0, FAIL), (1250.0, PASS), (1251.0, FAIL)])
def test_wall_power_at_its_bounds_is_within_them(watts, verdict):
    cards = h.with_gpu_samples(lambda *_: {"power_w": 200.0}, tuple(h.STEPS))
    samples = tuple(
        s.model_copy(update={"wall_power_w": watts if s.step == "gpu_burn" else None, "cpu_power_w": None})
        for s in cards
    )
    found = walled(h.readings(samples=samples))
    assert found.verdict is verdict
    if verdict is FAIL:
        assert found.fix.startswith("something draws less" if watts < 1000 else "compare the cards' own")


@pytest.mark.parametrize(("count", "reason"), [(10, "at the wall"), (9, "was read in 9 of 20")])
def test_half_of_the_settled_samples_must_show_the_wall(count, reason):
    assert reason in walled(sampled(count, wall_power_w=None)).reason
    (found,) = energy.residual(h.spec(), sampled(count, wall_power_w=None), GPU_BURN_ONLY)
    assert reason in found.reason


def whole(count):
    """Only `count` samples of the burn, all of them settled: a step whose load is told by no utilisation."""
    burnt = [s.seq for s in h.samples() if s.step == "gpu_burn" and s.gpus[1].util_pct == 100]
    at = h.samples()[burnt[-1]].t_mono_s
    kept = set(burnt[-count:])
    samples = tuple(
        s.model_copy(update={"t_mono_s": at}) if s.seq in kept else s
        for s in h.samples()
        if s.step != "gpu_burn" or s.seq in kept
    )
    return h.readings(samples=samples)


@pytest.mark.parametrize(("count", "verdict"), [(3, PASS), (2, ERROR)])
def test_three_settled_samples_are_enough_at_the_wall(count, verdict):
    assert walled(whole(count)).verdict is verdict
    assert energy._residual(h.spec(), whole(count), "gpu_burn").verdict is verdict


def test_a_step_without_a_nominal_wall_power_is_not_judged():
    spec = h.spec(limits={"wall_power_gpu_burn_w": 1120, "wall_power_all_burn_w": None})
    assert [v.subject for v in power.wall(spec, h.readings(), h.PROFILE)] == ["gpu_burn"]


@pytest.mark.parametrize(("wall_w", "doubt"), [(500.0, None), (499.0, "no supply"), (5000.0, None), (5001.0, "scale")])
def test_what_no_meter_shows(wall_w, doubt):
    found = wall._absurd(State("gpu_burn", wall_w, 400.0, 100.0))
    assert found is None if doubt is None else doubt in str(found)


def test_at_rest_a_rig_may_take_many_times_what_its_cards_take():
    assert wall._absurd(State("idle", 5001.0, 400.0, 100.0)) is None


@pytest.mark.parametrize(
    ("inside_w", "wall_w", "stuck"),
    [
        (100.0, 0.0, True),  # so much is told apart
        (99.9, 0.0, False),
        (-100.0, 0.0, True),
        (200.0, 40.0, False),  # a fifth of it is seen
        (200.0, 39.9, True),
        (200.0, -200.0, False),  # the other way, and not large
        (250.0, -50.0, True),  # a fifth of 1250 W, exactly
        (249.0, -50.0, False),
        (-250.0, -50.0, False),
        (-300.0, 100.0, True),
    ],
)
def test_a_meter_follows_what_happens_inside(inside_w, wall_w, stuck):
    one = State("idle", 1250.0, 500.0, None)
    two = State("gpu_burn", 1250.0 + wall_w, 500.0 + inside_w, None)
    assert (wall._stuck(two, [one, two]) is not None) is stuck
    other = State("cpu_burn", 1250.0, 500.0, 0.0)  # shows its processor: not the same parts
    assert wall._stuck(two, [other, two]) is None


@pytest.mark.parametrize(("count", "known"), [(10, True), (9, False)])
def test_half_of_the_settled_samples_make_a_state(count, known):
    assert (wall.state(sampled(count, wall_power_w=None), "gpu_burn") is not None) is known


@pytest.mark.parametrize(("count", "cpu_w"), [(10, 27.0), (9, None)])
def test_half_of_the_readings_show_the_processor(count, cpu_w):
    state = wall.state(sampled(count, cpu_power_w=None), "gpu_burn")
    assert state is not None
    assert state.cpu_w == cpu_w


@pytest.mark.parametrize(("count", "read"), [(3, True), (2, False)])
def test_three_settled_samples_make_a_state(count, read):
    assert (wall.state(whole(count), "gpu_burn") is not None) is read


def test_a_sample_in_which_one_card_shows_no_power_makes_no_state():
    assert wall.state(shown(9, power_w=None), "gpu_burn") is None
    assert wall.state(shown(10, power_w=None), "gpu_burn") is not None


def test_the_rest_at_its_limit_is_within_it():
    cards = h.with_gpu_samples(lambda *_: {"power_w": 250.0}, ("gpu_burn",))
    samples = tuple(
        s.model_copy(update={"cpu_power_w": 0.0, "wall_power_w": 1000.0 if s.step == "gpu_burn" else None})
        for s in cards
    )
    readings = h.readings(samples=samples)
    for most, verdict in ((0.5, PASS), (0.49, FAIL)):
        spec = h.spec(limits={"max_wall_residual_share": most})
        assert energy._residual(spec, readings, "gpu_burn").verdict is verdict


def metered(*times):
    """Notes on a run whose meter was read at `times`, at 1000 W."""
    first = h.samples()[0]
    return energy.notes(
        h.readings(samples=tuple(first.model_copy(update={"t_mono_s": t, "wall_power_w": 1000.0}) for t in times))
    )


def test_energy_is_known_between_readings_at_most_five_seconds_apart():
    assert "0.001 kWh in 0.1 min" in metered(0.0, 5.0)[0]
    assert metered(0.0, 5.1) == ()
    assert metered(5.0, 0.0) == ()
    assert metered(0.0) == ()
    assert "in 0.1 min" in metered(0.0, 5.0, 60.0)[0]


def test_where_no_limit_is_asked_for_the_cards_own_counts():
    spec = h.spec(software={"power_limit_w": None})
    own = h.readings(facts=h.facts(gpus=(h.gpu(0), h.gpu(1, power_default_w=480.0))))
    found = slot2(power.limit(spec, own))
    assert (found.verdict, found.expected, "own default" in found.source) == (PASS, 480.0, True)
    assert "own default" not in slot2(power.limit(h.spec(), own)).source


@pytest.mark.parametrize(("most", "verdict"), [(None, PASS), (0.0, ERROR), (2000.1, ERROR)])
def test_a_board_need_not_tell_its_most_but_what_it_tells_must_be_possible(most, verdict):
    assert set_to(480.0, most=most).verdict is verdict


def test_what_is_missing_at_the_wall_is_named():
    (no_meter,) = power.wall(h.spec(wall_meter=None), h.readings(), h.PROFILE)
    nothing = {"wall_power_gpu_burn_w": None, "wall_power_all_burn_w": None}
    (no_limit,) = power.wall(h.spec(limits=nothing), h.readings(), h.PROFILE)
    assert (no_meter.reason, no_limit.reason) == (
        "the spec names no wall meter",
        "the spec sets no wall power for this load",
    )


@pytest.mark.parametrize(("form", "word"), [("shelly", "address"), ("nut", "ups")])
def test_what_a_meter_lacks_is_named(form, word):
    silent = h.readings(samples=h.with_samples(("gpu_burn",), wall_power_w=None))
    spec = h.spec(wall_meter=WallMeterSpec(form=form), limits={"wall_power_gpu_burn_w": 1000.0})
    assert power._wall(spec, silent, "gpu_burn", 1000.0).reason == f"the wall meter has no {word}"


def test_without_a_declared_share_the_rest_is_said_where_the_wall_was_read():
    spec = h.spec(limits={"max_wall_residual_share": None})
    assert "W at the wall" in energy._residual(spec, h.readings(), "gpu_burn").reason
    unread = h.readings(samples=h.with_samples(("gpu_burn",), wall_power_w=None))
    assert energy._residual(spec, unread, "gpu_burn").reason == "the spec sets no share"


def test_a_small_change_that_a_meter_does_not_show_is_none():
    one, two = State("idle", 400.0, 300.0, None), State("gpu_burn", 400.0, 390.0, None)
    assert wall._stuck(two, [one, two]) is None


@pytest.mark.parametrize(("cpu_w", "words"), [(None, "cards alone"), (100.0, "cards and CPU alone")])
def test_what_is_known_inside_is_named(cpu_w, words):
    assert words in str(wall._absurd(State("gpu_burn", 300.0, 400.0, cpu_w)))
