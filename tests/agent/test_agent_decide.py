"""When a burn must stop: each reason alone, its border, and which comes first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rigctl.agent.decide import CardSeen, Limits, Situation, all_seen, card_limit_c, decide

A, B = "GPU-aaaa", "GPU-bbbb"
LIMITS = Limits(max_gpu_temp_c=80, stale_sample_s=5, controller_lost_s=60, expected_gpus=(A, B))
FINE = Situation(
    now_s=100,
    watched_since_s=0,
    heard_s=99,
    cards={A: CardSeen(1, 58, 99.9, 94), B: CardSeen(2, 55, 99.9, 94)},
)


def with_card(uuid: str, **changed: float) -> Situation:
    return replace(FINE, cards={**FINE.cards, uuid: replace(FINE.cards[uuid], **changed)})


def test_goes_on_when_all_is_well() -> None:
    assert decide(LIMITS, FINE) is None


def test_temperature_at_the_limit_stops_and_names_the_card() -> None:
    stop = decide(LIMITS, with_card(B, temp_c=80))
    assert stop is not None
    assert (stop.reason, stop.slot, stop.uuid, stop.found, stop.limit) == ("temperature", 2, B, 80, 80)


def test_temperature_just_below_goes_on() -> None:
    assert decide(LIMITS, with_card(B, temp_c=79.9)) is None


def test_a_card_that_was_not_expected_stops_the_burn_too() -> None:
    seen = replace(FINE, cards={**FINE.cards, "GPU-cccc": CardSeen(3, 90, 99.9)})
    stop = decide(LIMITS, seen)
    assert stop is not None
    assert stop.slot == 3


@pytest.mark.parametrize(("asked", "slowdown", "limit"), [(80, 94, 80), (92, 94, 89), (92, None, 92), (89, 94, 89)])
def test_the_limit_is_never_looser_than_slowdown_minus_5(asked: float, slowdown: float | None, limit: float) -> None:
    assert card_limit_c(asked, slowdown) == limit


def test_slowdown_is_each_cards_own() -> None:
    stop = decide(replace(LIMITS, max_gpu_temp_c=92), with_card(A, temp_c=86, slowdown_temp_c=90))
    assert stop is not None
    assert (stop.slot, stop.limit) == (1, 85)


@pytest.mark.parametrize(("age", "stops"), [(5.0, False), (5.1, True)])
def test_one_stale_card_is_enough(age: float, stops: bool) -> None:
    stop = decide(LIMITS, with_card(B, t_mono_s=100 - age))
    assert (stop is not None) is stops
    if stop is not None:
        assert (stop.reason, stop.slot) == ("no_valid_sample", 2)


def test_a_card_that_was_never_seen_is_stale_from_the_start() -> None:
    seen = replace(FINE, cards={A: FINE.cards[A]}, watched_since_s=94)
    stop = decide(LIMITS, seen)
    assert stop is not None
    assert (stop.reason, stop.slot, stop.found) == ("no_valid_sample", 2, 6)
    assert not all_seen(LIMITS, seen)
    assert all_seen(LIMITS, FINE)


@pytest.mark.parametrize(("silence", "stops"), [(60, False), (60.1, True)])
def test_controller_lost(silence: float, stops: bool) -> None:
    stop = decide(LIMITS, replace(FINE, heard_s=100 - silence))
    assert (stop is not None and stop.reason == "controller_lost") is stops


def test_spool_error_and_a_disk_that_hangs() -> None:
    failed = decide(LIMITS, replace(FINE, spool_error="No space left on device"))
    hangs = decide(LIMITS, replace(FINE, spooled_s=94.0))
    slow = decide(LIMITS, replace(FINE, spooled_s=95.5))
    assert failed is not None
    assert hangs is not None
    assert (failed.reason, failed.found) == ("spool_failed", "No space left on device")
    assert (hangs.reason, hangs.found) == ("spool_failed", 6.0)
    assert slow is None


def test_asked() -> None:
    stop = decide(LIMITS, replace(FINE, asked="the person pressed Ctrl-C"))
    assert stop is not None
    assert (stop.reason, stop.found) == ("asked", "the person pressed Ctrl-C")


def test_the_most_urgent_reason_is_told() -> None:
    everything = replace(with_card(A, temp_c=95), heard_s=0, spool_error="x", asked="y")
    stop = decide(LIMITS, everything)
    assert stop is not None
    assert stop.reason == "temperature"
