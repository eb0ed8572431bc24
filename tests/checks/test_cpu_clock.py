"""The CPU's clock under load against spec, nominal clock and accepted run; each limit from both sides."""

from __future__ import annotations

import pytest

from rigctl.checks import cpu
from rigctl.model.baseline import Figure
from rigctl.model.verdict import Verdict

from . import healthy as h
from .test_causes import causes
from .test_healthy import all_verdicts

BURN = ("cpu_burn",)


def clock(*, baseline=None, profile=h.PROFILE, limits=None, **changes):
    readings = h.readings(**changes)
    (found,) = cpu.clock(h.spec(limits=limits or {}), readings, profile, baseline)
    return found


def at(mhz, **changes):
    return h.with_samples(BURN, cpu_mhz=mhz, **changes)


def accepted(mhz, subject="cpu_burn of 6 s"):
    figure = Figure(check="throughput.cpu_clock", subject=subject, found=mhz)
    return h.baseline().model_copy(update={"figures": (figure,)})


def test_a_healthy_processor_says_its_clock():
    found = clock()
    assert (found.verdict, found.subject, found.unit) == (Verdict.PASS, "cpu_burn of 6 s", "MHz")
    assert found.found == pytest.approx(4192, abs=3)
    assert "98% of the processor's nominal 3,700 MHz" in found.source


@pytest.mark.parametrize(
    ("mhz", "verdict"), [(3626.0, Verdict.PASS), (3625.9, Verdict.FAIL), (100.0, Verdict.FAIL), (99.9, Verdict.ERROR)]
)
def test_against_the_nominal_clock(mhz, verdict):
    assert clock(samples=at(mhz)).verdict is verdict


def test_what_it_does_after_its_own_load_has_ended_does_not_count():
    """On a rig whose other loads keep it looking busy; the sample of that very moment still counts."""
    ended = {"load": "cpu", "exit_status": 0, "seconds": 3.0}
    events = tuple(
        one.model_copy(update={"t_mono_s": 1005.0, "detail": ended})
        if (one.event, one.step) == ("load_exited", "cpu_burn")
        else one
        for one in h.events()
    )
    samples = tuple(s.model_copy(update={"cpu_mhz": 2200.0}) if s.t_mono_s > 1005.0 else s for s in h.samples())
    assert clock(samples=samples).verdict is Verdict.FAIL
    assert clock(samples=samples, events=events).verdict is Verdict.PASS


@pytest.mark.parametrize(("mhz", "verdict"), [(10_000.0, Verdict.PASS), (10_000.1, Verdict.ERROR)])
def test_an_absurd_clock_is_no_reading(mhz, verdict):
    assert clock(samples=at(mhz)).verdict is verdict


@pytest.mark.parametrize(("mhz", "verdict"), [(4000.0, Verdict.PASS), (3999.9, Verdict.FAIL)])
def test_against_the_spec(mhz, verdict):
    found = clock(samples=at(mhz), limits={"min_cpu_mhz": 4000}, baseline=accepted(9000.0))
    assert found.verdict is verdict
    assert "limits.min_cpu_mhz" in found.source


@pytest.mark.parametrize(("mhz", "verdict"), [(3906.0, Verdict.PASS), (3905.9, Verdict.FAIL)])
def test_against_the_accepted_run(mhz, verdict):
    found = clock(samples=at(mhz), baseline=accepted(4200.0))
    assert found.verdict is verdict
    assert "4,200 MHz in the accepted run" in found.source


def test_a_burn_of_another_length_is_not_compared_with():
    assert clock(samples=at(3700.0), baseline=accepted(4200.0, "cpu_burn of 60 s")).verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("nominal", "limit"), [(100.0, 98.0), (10_000.0, 9800.0), (99.0, None), (10_001.0, None), (None, None)]
)
def test_a_nominal_clock_counts_where_it_can_be_believed(nominal, limit):
    found = clock(samples=at(9900.0), facts=h.facts(cpu_nominal_mhz=nominal))
    assert found.expected == limit
    assert found.verdict is (Verdict.WARN if limit is None else Verdict.PASS)


def test_the_burn_of_everything_is_judged_where_there_is_no_other():
    profile = h.PROFILE.model_copy(update={"cpu_burn_seconds": 0})
    found = clock(profile=profile)
    assert (found.verdict, found.subject) == (Verdict.PASS, "all_burn of 15 s")
    assert clock(samples=at(1800.0), profile=profile).verdict is Verdict.PASS


def test_only_the_last_third_of_busy_time_counts():
    first = h.samples()[4].t_mono_s
    slow = tuple(
        one.model_copy(update={"cpu_mhz": 1000.0}) if one.step == "cpu_burn" and one.t_mono_s < first + 3 else one
        for one in h.samples()
    )
    assert clock(samples=slow).verdict is Verdict.PASS
    idle = tuple(
        one.model_copy(update={"cpu_mhz": 2200.0, "cpu_util_pct": 49.9})
        if one.step == "cpu_burn" and one.seq % 2
        else one
        for one in h.samples()
    )
    assert clock(samples=idle).verdict is Verdict.ERROR, "two samples are no measurement"
    busy = tuple(
        one.model_copy(update={"cpu_util_pct": 50.0}) if one.step == "cpu_burn" else one for one in h.samples()
    )
    assert clock(samples=busy).verdict is Verdict.PASS
    untold = tuple(one.model_copy(update={"cpu_util_pct": None}) for one in h.samples())
    assert clock(samples=untold).verdict is Verdict.PASS


def some(keep):
    """The samples with a clock in those of the CPU burn only of which `keep(number)` says so."""
    numbers = iter(range(100))
    return tuple(
        one if one.step != "cpu_burn" or keep(next(numbers)) else one.model_copy(update={"cpu_mhz": None})
        for one in h.samples()
    )


@pytest.mark.parametrize(
    ("keep", "verdict"),
    [
        (lambda number: number >= 6, Verdict.ERROR),
        (lambda number: number >= 9, Verdict.ERROR),
        (lambda number: number >= 3, Verdict.PASS),
    ],
)
def test_a_clock_that_was_seldom_read_is_no_measurement(keep, verdict):
    assert clock(samples=some(keep)).verdict is verdict


def test_half_of_the_samples_and_three_of_the_last_third_are_enough():
    burn = [one for one in h.samples() if one.step == "cpu_burn"]
    assert len(burn) == 12
    kept = {0, 2, 4, 9, 10, 11}
    assert clock(samples=some(lambda number: number in kept)).verdict is Verdict.PASS
    assert clock(samples=some(lambda number: number in kept - {0})).verdict is Verdict.ERROR
    assert clock(samples=some(lambda number: number in {0, 1, 2, 3, 4, 10, 11})).verdict is Verdict.ERROR


def test_a_clock_that_stands_still_at_rest_and_under_load_is_not_measured():
    still = h.with_samples((*h.STEPS, "after"), cpu_mhz=3700.0)
    found = clock(samples=still)
    assert (found.verdict, "stood at 3700 MHz" in found.reason) == (Verdict.ERROR, True)
    assert clock(samples=h.with_samples(("cpu_burn", "all_burn"), cpu_mhz=3700.0)).verdict is Verdict.PASS


def test_samples_out_of_order_are_no_measurement():
    late = [one for one in h.samples() if one.step == "cpu_burn"]
    turned = {one.seq: other.t_mono_s for one, other in zip(late, reversed(late), strict=True)}
    for change in (lambda one: turned[one.seq], lambda _one: late[0].t_mono_s):
        samples = tuple(
            one.model_copy(update={"t_mono_s": change(one)}) if one.seq in turned else one for one in h.samples()
        )
        found = clock(samples=samples)
        assert (found.verdict, "out of order" in found.reason) == (Verdict.ERROR, True)


def test_a_machine_that_shows_no_clock_is_blind_unless_the_spec_counts_on_it():
    unseen = h.with_samples((*h.STEPS, "after"), cpu_mhz=None)
    why = h.facts(missing={"cpu_mhz": "no core has scaling_cur_freq"})
    assert clock(samples=unseen, facts=why).verdict is Verdict.BLIND
    assert clock(samples=unseen, facts=why, limits={"min_cpu_mhz": 3000}).verdict is Verdict.ERROR
    assert clock(samples=unseen).verdict is Verdict.ERROR, "nobody said why"
    gone = tuple(one for one in h.samples() if one.step != "cpu_burn")
    assert clock(samples=gone).verdict is Verdict.ERROR


def counting(first, last):
    """The CPU burn with a count of throttling that goes from `first` to `last`."""
    end = max(one.seq for one in h.samples() if one.step == "cpu_burn")
    return {one.seq: last if one.seq == end else first for one in h.samples() if one.step == "cpu_burn"}


@pytest.mark.parametrize(("last", "verdict"), [(7, Verdict.PASS), (8, Verdict.WARN), (3, Verdict.PASS)])
def test_a_processor_that_slowed_itself_down_for_heat_is_worth_a_look(last, verdict):
    counts = counting(7, last)
    samples = tuple(one.model_copy(update={"cpu_throttles": counts.get(one.seq)}) for one in h.samples())
    found = clock(samples=samples)
    assert found.verdict is verdict
    assert ("for heat 1 times" in found.reason) is (verdict is Verdict.WARN)


def test_heat_is_told_from_what_holds_a_cool_processor_back():
    assert "regulators" in clock(samples=at(1800.0)).fix
    assert "regulators" in clock(samples=at(1800.0, cpu_temp_c=90.0)).fix
    assert "cooler" in clock(samples=at(1800.0, cpu_temp_c=90.1)).fix
    counts = counting(7, 9)
    slowed = tuple(one.model_copy(update={"cpu_throttles": counts.get(one.seq)}) for one in at(1800.0))
    assert "cooler" in clock(samples=slowed).fix


def test_a_burn_that_was_cut_short_passes_nothing_and_fails_all_the_same():
    stopped = h.guard_stop("cpu_burn", 6.0, reason="temperature")
    assert clock(events=stopped).verdict is Verdict.ERROR
    assert clock(events=stopped, samples=at(1800.0)).verdict is Verdict.FAIL


def test_what_a_slow_processor_explains_and_what_explains_it():
    slow = at(1800.0)
    low = h.with_samples(("all_burn",), wall_power_w=1050.0)
    both = tuple(one if one.step == "cpu_burn" else other for one, other in zip(slow, low, strict=True))
    found = causes(all_verdicts(readings=h.readings(samples=both)))
    assert set(found) == {"throughput.cpu_clock[cpu_burn of 6 s]"}
    hot = at(1800.0, cpu_temp_c=96.0)
    assert set(causes(all_verdicts(readings=h.readings(samples=hot)))) == {"thermals.cpu_temp[rig]"}
