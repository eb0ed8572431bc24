"""Power of the cards and at the wall: at rest, against the limit in both directions, and reconciled."""

from __future__ import annotations

import pytest

from rigctl.checks import energy, power
from rigctl.model.baseline import Baseline, Figure
from rigctl.model.verdict import Verdict
from tests.checks import healthy as h


def slot2(verdicts):
    (found,) = [v for v in verdicts if v.subject == h.SLOT2]
    return found


def share(power_w, throttle=0x4, **limits):
    change = {"power_w": power_w, "throttle": throttle}
    samples = h.with_gpu_samples(lambda gpu, _: change if gpu.slot == 2 else {}, ("gpu_burn",))
    return slot2(power.share_of_limit(h.spec(limits=limits), h.readings(samples=samples)))


@pytest.mark.parametrize(
    ("power_w", "throttle", "verdict"),
    [
        (433.0, 0x0, Verdict.PASS),  # 0.902, and no bit
        (431.0, 0x0, Verdict.FAIL),  # 0.898
        (431.0, 0x4, Verdict.PASS),  # capped all the time
        (385.0, 0x4, Verdict.PASS),  # 0.802
        (383.0, 0x4, Verdict.FAIL),  # 0.798: something else than its limit holds it
        (503.0, 0x4, Verdict.PASS),  # 1.048
        (505.0, 0x4, Verdict.FAIL),  # 1.052
        (-20.0, 0x4, Verdict.ERROR),
        (2500.0, 0x4, Verdict.ERROR),
        (float("nan"), 0x4, Verdict.ERROR),
    ],
)
def test_the_share_is_two_sided_or_the_driver_says_power_cap(power_w, throttle, verdict):
    found = share(power_w, throttle)
    assert found.verdict is verdict, found
    assert found.fix or verdict is Verdict.PASS


def test_more_than_the_limit_names_the_upper_limit_and_its_source():
    found = share(505.0)
    assert (found.expected, found.found) == (1.05, 1.052)
    assert "max_power_share_of_limit" in found.source
    assert share(505.0, min_power_share_of_limit=None).verdict is Verdict.FAIL
    assert share(440.0, min_power_share_of_limit=None).verdict is Verdict.WARN


def rest(power_w, baseline=None, **limits):
    samples = h.with_gpu_samples(lambda gpu, _: {"power_w": power_w} if gpu.slot == 2 else {}, ("idle",))
    return slot2(power.idle(h.spec(limits=limits), h.readings(samples=samples), baseline))


def accepted(found):
    figure = Figure(check="power.idle", subject=h.UUIDS[1], found=found, unit="W")
    return Baseline(
        run_id="r1", profile="standard", ended_at="2026-11-01T02:00:00Z", facts=h.facts(), figures=(figure,), runs=1
    )


@pytest.mark.parametrize(
    ("power_w", "verdict"),
    [(40.0, Verdict.PASS), (40.5, Verdict.FAIL), (0.0, Verdict.ERROR), (-3.0, Verdict.ERROR), (2001.0, Verdict.ERROR)],
)
def test_a_card_at_rest_draws_little(power_w, verdict):
    found = rest(power_w)
    assert (found.verdict, found.expected) == (verdict, 40)


def test_a_cards_own_history_stands_in_for_a_limit():
    assert rest(30.0, accepted(20.0), max_idle_power_w=None).verdict is Verdict.PASS
    found = rest(30.5, accepted(20.0), max_idle_power_w=None)
    assert (found.verdict, found.expected) == (Verdict.FAIL, 30)
    assert "in run r1" in found.source
    assert rest(30.5, None, max_idle_power_w=None).verdict is Verdict.SKIP
    assert rest(38.0, accepted(20.0)).verdict is Verdict.PASS, "the spec's own limit goes first"


def reconciled(step="all_burn", spec=None, **changes):
    samples = tuple(s.model_copy(update=changes) if s.step == step else s for s in h.samples())
    found = energy.residual(spec or h.spec(), h.readings(samples=samples), h.PROFILE)
    return next(v for v in found if v.subject == step)


def test_wall_cards_and_processor_add_up():
    found = reconciled()
    assert (found.verdict, found.found) == (Verdict.PASS, pytest.approx(0.172))
    assert "1238 W at the wall" in found.reason
    assert "cards 885 W, CPU 140 W, the rest 213 W (17%)" in found.reason
    assert "83% arrive there, 1.24 kWh an hour" in found.reason


@pytest.mark.parametrize(("wall_w", "verdict"), [(1464.0, Verdict.PASS), (1465.0, Verdict.FAIL)])
def test_a_rest_that_is_too_large_fails(wall_w, verdict):
    assert reconciled(wall_power_w=wall_w).verdict is verdict


def test_what_cannot_be_reconciled_is_said():
    blind = reconciled(cpu_power_w=None)
    assert blind.verdict is Verdict.BLIND
    assert "no CPU power" in blind.reason
    assert reconciled(wall_power_w=None).verdict is Verdict.ERROR
    assert reconciled(wall_power_w=600.0).verdict is Verdict.ERROR, "less than the cards alone"
    assert reconciled(spec=h.spec(limits={"max_wall_residual_share": None})).verdict is Verdict.SKIP
    (skipped,) = energy.residual(h.spec(wall_meter=None), h.readings(), h.PROFILE)
    assert skipped.verdict is Verdict.SKIP
    no_watts = h.with_gpu_samples(lambda *_: {"power_w": None}, ("all_burn",))
    found = energy.residual(h.spec(), h.readings(samples=no_watts), h.PROFILE)
    assert [v.verdict for v in found] == [Verdict.PASS, Verdict.ERROR]


def test_the_energy_of_the_run_is_told_where_the_meter_can_be_believed():
    flat = tuple(s.model_copy(update={"wall_power_w": 954.0}) for s in h.samples() if s.step == "gpu_burn")
    (told,) = energy.notes(h.readings(samples=flat))
    seconds = flat[-1].t_mono_s - flat[0].t_mono_s
    assert told.startswith(f"energy at the wall: {954 * seconds / 3.6e6:.3f} kWh in {seconds / 60:.1f} min")
    assert told.endswith("0.95 kWh an hour")
    stuck = tuple(s.model_copy(update={"wall_power_w": 1240.0}) for s in h.samples())
    assert energy.notes(h.readings(samples=stuck)) == ()
    assert energy.notes(h.readings(samples=())) == ()


def test_time_without_readings_costs_no_guessed_energy():
    apart = [s for s in h.samples() if s.step == "gpu_burn"][::20]
    assert energy.notes(h.readings(samples=tuple(apart))) == ()
