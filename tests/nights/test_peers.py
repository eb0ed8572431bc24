"""The rules of others, each from both sides of its limit."""

from __future__ import annotations

import pytest

from rigctl.sim.nights.peers import RULES, Figures, flagged, fleet_means

FLEET, BEST, TARGET = RULES


def figures(rates=(100.0, 100.0), watts=(440.0, 440.0), tokens=(50.0,)):
    return Figures({"gflops": rates, "watts": watts, "tokens_per_s": tokens}, 480.0)


MEANS = {"gflops": 100.0, "watts": 440.0, "tokens_per_s": 50.0}


def test_nothing_is_said_of_a_rig_like_all_others():
    assert not any(flagged(figures(), MEANS).values())


@pytest.mark.parametrize(("rate", "bad"), [(95.0, False), (94.9, True), (105.0, False), (105.1, True)])
def test_five_per_cent_of_the_fleets_mean_in_both_directions(rate, bad):
    assert flagged(figures(rates=(100.0, rate)), MEANS)[FLEET] is bad


@pytest.mark.parametrize(("rate", "bad"), [(90.0, False), (89.9, True), (111.2, True)])
def test_ten_per_cent_below_the_best_card(rate, bad):
    assert flagged(figures(rates=(100.0, rate)), MEANS)[BEST] is bad


@pytest.mark.parametrize(("watts", "bad"), [(360.0, False), (359.9, True), (500.0, False)])
def test_three_quarters_of_target_power(watts, bad):
    assert flagged(figures(watts=(440.0, watts)), MEANS)[TARGET] is bad


def test_a_figure_that_is_missing_counts_as_found():
    assert flagged(figures(tokens=()), MEANS)[FLEET]
    assert flagged(figures(rates=()), MEANS)[BEST]
    assert flagged(figures(watts=()), MEANS)[TARGET]


def test_the_mean_is_that_of_all_cards_of_the_fleet():
    means = fleet_means([figures(rates=(90.0, 110.0)), figures(rates=(100.0, 104.0), tokens=())])
    assert means == {"gflops": 101.0, "watts": 440.0, "tokens_per_s": 50.0}
