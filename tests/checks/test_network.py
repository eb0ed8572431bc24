"""The network card's link against the spec, both ends of its cable, and the accepted run; each from both sides."""

from __future__ import annotations

import pytest

from rigctl.checks import network
from rigctl.model.verdict import Verdict

from . import healthy as h

FREE = {"min_network_mbit_per_s": None}


def link(*, accepted=None, limits=None, cards=None, **changes):
    readings = h.readings(facts=h.facts(network=cards or (h.network_card(**changes),)))
    baseline = None if accepted is None else h.baseline(network=(h.network_card(**accepted),))
    return network.link(h.spec(limits=limits or {}), readings, baseline)


def only(**more):
    (found,) = link(**more)
    return found


UNTOLD = {"supported_mbit_per_s": None, "partner_mbit_per_s": None}


@pytest.mark.parametrize(
    ("changes", "verdict", "reason"),
    [
        ({}, Verdict.PASS, "1000 Mbit/s, full duplex"),
        ({"speed_mbit_per_s": 999}, Verdict.FAIL, "at least 1000 were declared; both ends can do 1000"),
        ({"speed_mbit_per_s": 100, **UNTOLD}, Verdict.FAIL, "100 Mbit/s, full duplex, at least 1000 were declared"),
        ({"speed_mbit_per_s": 0}, Verdict.ERROR, "runs at 0 Mbit/s"),
        ({"speed_mbit_per_s": -1}, Verdict.ERROR, "runs at -1 Mbit/s"),
        ({"speed_mbit_per_s": None}, Verdict.ERROR, "does not tell its speed"),
        ({"speed_mbit_per_s": None, "wireless": True}, Verdict.ERROR, "wireless"),
        ({"speed_mbit_per_s": 1_600_000}, Verdict.PASS, "1600000"),
        ({"speed_mbit_per_s": 1_600_001}, Verdict.ERROR, "1600001"),
        ({"duplex": "half"}, Verdict.FAIL, "in one direction at a time"),
        ({"duplex": None}, Verdict.PASS, "1000 Mbit/s"),
        ({"partner_mbit_per_s": 2500}, Verdict.WARN, "both ends of the cable can do 2500"),
        ({"partner_mbit_per_s": 10_000, "speed_mbit_per_s": 2500}, Verdict.PASS, "2500"),
    ],
)
def test_against_the_spec(changes, verdict, reason):
    found = only(**changes)
    assert (found.verdict, reason in found.reason, found.subject) == (verdict, True, "eno1"), found


def test_both_ends_are_named_only_where_they_can_do_more():
    slow = {"speed_mbit_per_s": 100, "supported_mbit_per_s": 100, "partner_mbit_per_s": 1000}
    assert "both ends" not in only(**slow).reason


@pytest.mark.parametrize(
    ("changes", "fix"),
    [
        ({"partner_mbit_per_s": 100}, "the other end offers no more than 100"),
        ({"partner_mbit_per_s": 1000}, "another cable"),
        ({"partner_mbit_per_s": 1000, "supported_mbit_per_s": 100}, "the card can do no more than 100"),
        ({"partner_mbit_per_s": 1000, "supported_mbit_per_s": 1000}, "another cable"),
        (UNTOLD, "another cable"),
    ],
)
def test_which_end_is_slow(changes, fix):
    assert fix in only(speed_mbit_per_s=100, **changes).fix


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, Verdict.PASS),
        ({"speed_mbit_per_s": 100}, Verdict.FAIL),
        ({"speed_mbit_per_s": 100, **UNTOLD}, Verdict.WARN),
        ({"speed_mbit_per_s": 100, "partner_mbit_per_s": None}, Verdict.WARN),
        ({"speed_mbit_per_s": 100, "supported_mbit_per_s": None}, Verdict.WARN),
        ({"speed_mbit_per_s": None}, Verdict.BLIND),
        ({"duplex": "half", **UNTOLD}, Verdict.FAIL),
    ],
)
def test_without_a_limit_the_link_runs_as_fast_as_both_its_ends(changes, verdict):
    found = only(limits=FREE, **changes)
    assert found.verdict is verdict
    if verdict is Verdict.WARN:
        assert "no limit" in found.reason


@pytest.mark.parametrize(
    ("was", "speed", "verdict"),
    [(1000, 1000, Verdict.PASS), (1000, 100, Verdict.FAIL), (100, 1000, Verdict.PASS), (1000, None, Verdict.ERROR)],
)
def test_against_the_accepted_run(was, speed, verdict):
    found = only(accepted={"speed_mbit_per_s": was}, limits=FREE, speed_mbit_per_s=speed, **UNTOLD)
    assert found.verdict is verdict
    if verdict is Verdict.FAIL:
        assert (found.expected, found.source) == (1000, "the rig's accepted run")


def test_another_card_of_then_says_nothing_of_this_one():
    found = only(accepted={"address": "02:00:00:00:00:99", "speed_mbit_per_s": 10_000})
    assert found.verdict is Verdict.PASS


def test_the_card_with_the_default_route_is_judged_and_else_each_with_a_signal():
    idle = h.network_card(name="eno2", carries_default_route=False, speed_mbit_per_s=100)
    assert [v.subject for v in link(cards=(h.network_card(), idle))] == ["eno1"]
    without = h.network_card(carries_default_route=False)
    assert [v.subject for v in link(cards=(without, idle))] == ["eno1", "eno2"]
    dark = idle.model_copy(update={"link": False})
    assert [v.subject for v in link(cards=(without, dark))] == ["eno1"]


def test_no_card_with_a_signal():
    dark = h.network_card(carries_default_route=False, link=False)
    assert only(cards=(dark,)).verdict is Verdict.ERROR
    assert only(cards=(dark,), limits=FREE).verdict is Verdict.BLIND
    for cards, limits, verdict in (((), {}, Verdict.ERROR), ((), FREE, Verdict.BLIND), (None, FREE, Verdict.ERROR)):
        (found,) = network.link(h.spec(limits=limits), h.readings(facts=h.facts(network=cards)), None)
        assert found.verdict is verdict
        assert bool(found.fix) is (verdict is Verdict.ERROR)
