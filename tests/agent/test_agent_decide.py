"""When a burn must stop: each reason alone, its border, and which comes first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rigctl.agent.decide import all_seen, card_limit_c, decide, limits_in_words
from rigctl.agent.situation import CardSeen, FanStill, Limits, OthersWork, ProcessorSeen, Situation

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


@pytest.mark.parametrize(
    ("asked", "slowdown", "history", "limit"),
    [
        (80, 94, None, (80, "spec")),
        (92, 94, None, (89, "card")),
        (92, None, None, (92, "spec")),
        (89, 94, None, (89, "spec")),
        (85, 94, 73, (73, "history")),
        (85, 94, 93, (85, "spec")),
        (92, 94, 90, (89, "card")),
    ],
)
def test_the_tightest_limit_counts(
    asked: float, slowdown: float | None, history: float | None, limit: tuple[float, str]
) -> None:
    assert card_limit_c(asked, slowdown, history) == limit


def test_the_rigs_own_history_stops_a_card_and_says_so() -> None:
    limits = replace(LIMITS, history_max_gpu_temp_c={B: 70.0})
    assert decide(limits, with_card(B, temp_c=69.9)) is None
    stop = decide(limits, with_card(B, temp_c=70))
    assert stop is not None
    assert (stop.slot, stop.limit, stop.limit_from, stop.sensor) == (2, 70, "history", "core")
    assert decide(limits, with_card(A, temp_c=75)) is None


@pytest.mark.parametrize(("soon", "stops"), [(79.9, False), (80.0, True)])
def test_a_limit_that_will_be_crossed_stops_before_it_is(soon: float, stops: bool) -> None:
    stop = decide(LIMITS, with_card(B, temp_c=71, soon_c=soon))
    assert (stop is not None) is stops
    if stop is not None:
        assert (stop.reason, stop.found, stop.limit, stop.expected_c) == ("temperature", 71, 80, 80.0)


@pytest.mark.parametrize(("allowed", "asked", "temp", "stops"), [(105, None, 99.9, False), (105, None, 100, True)])
def test_memory_has_limits_of_its_own(allowed: float, asked: float | None, temp: float, stops: bool) -> None:
    limits = replace(LIMITS, max_gpu_memory_temp_c=asked)
    stop = decide(limits, with_card(A, memory_temp_c=temp, memory_max_temp_c=allowed))
    assert (stop is not None) is stops
    if stop is not None:
        assert (stop.sensor, stop.limit, stop.limit_from, stop.slot) == ("memory", 100, "card", 1)


def test_the_specs_memory_limit_counts_where_it_is_tighter() -> None:
    limits = replace(LIMITS, max_gpu_memory_temp_c=95)
    stop = decide(limits, with_card(A, memory_temp_c=95, memory_max_temp_c=105))
    assert stop is not None
    assert (stop.sensor, stop.limit, stop.limit_from) == ("memory", 95, "spec")
    assert decide(LIMITS, with_card(A, memory_temp_c=120)) is None, "no limit is known"


@pytest.mark.parametrize(("margin", "stops"), [(5.1, False), (5, True), (-2, True)])
def test_the_hot_spot_is_guarded_by_the_cards_own_margin(margin: float, stops: bool) -> None:
    stop = decide(LIMITS, with_card(B, margin_c=margin))
    assert (stop is not None) is stops
    if stop is not None:
        assert (stop.sensor, stop.found, stop.limit, stop.slot) == ("hot spot", -margin, -5, 2)


def test_a_power_brake_stops_at_once() -> None:
    stop = decide(LIMITS, with_card(B, power_brake=True))
    assert stop is not None
    assert (stop.reason, stop.slot, stop.uuid) == ("power_brake", 2, B)


@pytest.mark.parametrize(
    ("asked", "critical", "temp", "limit"),
    [(95, None, 95, (95, "spec")), (95, 97, 92, (92, "sensor")), (None, 100, 95, (95, "sensor"))],
)
def test_the_processors_package(asked: float, critical: float, temp: float, limit: tuple[float, str]) -> None:
    limits = replace(LIMITS, max_cpu_temp_c=asked)
    stop = decide(limits, replace(FINE, processor=ProcessorSeen(temp, 99.9, critical)))
    assert stop is not None
    assert (stop.reason, stop.sensor, stop.limit, stop.limit_from) == ("temperature", "processor", *limit)
    assert decide(limits, replace(FINE, processor=ProcessorSeen(temp - 0.1, 99.9, critical))) is None


def test_a_processor_that_stopped_telling_its_temperature_is_no_valid_sample() -> None:
    silent = replace(FINE, processor=ProcessorSeen(60, 94.9))
    stop = decide(replace(LIMITS, max_cpu_temp_c=95), silent)
    assert stop is not None
    assert (stop.reason, stop.sensor) == ("no_valid_sample", "processor")
    assert decide(LIMITS, silent) is None, "nobody gave it a limit"


@pytest.mark.parametrize(
    ("temp", "slot", "still_s", "stops"),
    [(61, None, 1.0, True), (60, None, 1.0, False), (61, None, 0.9, False), (61, 2, 1.0, True), (61, 1, 1.0, False)],
)
def test_a_fan_that_stands_still_where_it_is_hot(temp: float, slot: int | None, still_s: float, stops: bool) -> None:
    seen = replace(with_card(B, temp_c=temp), fans_still=(FanStill("pump", 100 - still_s, slot),))
    stop = decide(LIMITS, seen)
    assert (stop is not None) is stops
    if stop is not None:
        assert (stop.reason, stop.sensor, stop.found, stop.limit) == ("fan_still", "pump", 61, 60)


def test_a_hot_processor_needs_its_fan_too() -> None:
    seen = replace(FINE, processor=ProcessorSeen(70, 99.9), fans_still=(FanStill("cpu_fan", 90),))
    stop = decide(LIMITS, seen)
    assert stop is not None
    assert (stop.reason, stop.found) == ("fan_still", 70)


@pytest.mark.parametrize(("first", "last", "stops"), [(99.5, 99.5, False), (98.5, 99.4, True), (98.7, 99.4, False)])
def test_somebody_elses_work_stops_once_it_was_seen_twice(first: float, last: float, stops: bool) -> None:
    stop = decide(LIMITS, replace(FINE, others=OthersWork("77 train.py (alice) on slot1", first, last)))
    assert (stop is not None) is stops
    if stop is not None:
        assert (stop.reason, stop.found) == ("others_work", "77 train.py (alice) on slot1")


def test_the_limits_are_told_with_where_they_come_from() -> None:
    limits = replace(LIMITS, history_max_gpu_temp_c={A: 73.0}, max_cpu_temp_c=95)
    seen = replace(with_card(B, memory_temp_c=60, memory_max_temp_c=105), processor=ProcessorSeen(50, 99))
    assert limits_in_words(limits, seen) == {
        "slot1": "73 °C (history)",
        "slot2": "80 °C (spec)",
        "slot2 memory": "100 °C (card)",
        "processor": "95 °C (spec)",
    }
    assert limits_in_words(LIMITS, seen)["processor"] == "no limit is known"


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
