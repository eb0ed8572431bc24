"""Where a temperature will be: a steady rise goes on, one that slows down slows down further, noise is no rise."""

from __future__ import annotations

import math

import pytest

from rigctl.agent.seeing import Seeing, Thresholds
from rigctl.agent.trend import Trend


def seen(curve: list[tuple[float, float]]) -> Trend:
    trend = Trend()
    for t_s, temp_c in curve:
        trend.add(t_s, temp_c)
    return trend


def at_4_hz(seconds: float, temp_c: object) -> list[tuple[float, float]]:
    """Whole degrees, as NVML says them."""
    times = [n / 4 for n in range(int(seconds * 4) + 1)]
    return [(t_s, float(math.floor(temp_c(t_s)))) for t_s in times]  # type: ignore[operator]


@pytest.mark.parametrize("slope", [3, 5, 8])
def test_a_steady_rise_is_carried_on(slope: float) -> None:
    soon = seen(at_4_hz(6, lambda t: 40 + slope * t)).soon_c()
    assert soon == pytest.approx(40 + slope * 8, abs=2.5)


def test_a_rise_that_slows_down_ends_where_it_would() -> None:
    # A die of 25 °C above its cold plate, with a time constant of 1 s: it never passes 76 °C.
    curve = at_4_hz(12, lambda t: 40 + 36 * (1 - math.exp(-t)))
    for count in range(1, len(curve) + 1):
        soon = seen(curve[:count]).soon_c()
        assert soon is None or soon < 84, curve[count - 1]


def test_a_settled_card_that_flickers_by_a_degree_rises_not() -> None:
    curve = [(n / 4, 79.0 + n % 2) for n in range(60)]
    trend = seen(curve)
    assert trend.soon_c() is None


def test_too_little_seen_says_nothing() -> None:
    assert Trend().soon_c() is None
    assert seen([(0, 40), (1, 60)]).soon_c() is None
    assert not Trend().rises()


def test_a_reading_out_of_order_in_time_is_left_out() -> None:
    trend = seen([(0, 40), (1, 50), (2, 60)])
    known = trend.soon_c()
    trend.add(1.5, 20)
    assert trend.soon_c() == known == 80


def test_what_rises_over_ten_seconds_rises() -> None:
    assert seen([(t, 40 + 0.15 * t) for t in range(12)]).rises()
    assert not seen([(t, 55 - 0.1 * t) for t in range(12)]).rises()


def sample(t_s: float, **card: object) -> dict[str, object]:
    gpu = {"uuid": "GPU-a", "slot": 1, "temp_c": 50.0, **card}
    return {"t_mono_s": t_s, "gpus": [gpu]}


@pytest.mark.parametrize("card", [{"error": "GPU is lost"}, {"temp_c": None}, {"temp_c": 0.0}, {"temp_c": -5.0}])
def test_what_is_no_valid_reading_leaves_the_last_one_to_grow_old(card: dict[str, object]) -> None:
    seeing = Seeing()
    seeing.take(sample(1.0), {"GPU-a": Thresholds(94.0)})
    seeing.take(sample(2.0, **card), {})
    assert seeing.cards()["GPU-a"].t_mono_s == 1.0


def test_nothing_is_carried_on_while_the_load_is_raised_and_for_two_seconds_after() -> None:
    seeing = Seeing()
    for n in range(40):
        t_s = n / 4
        if t_s <= 4:
            seeing.unsteady(t_s)
        seeing.take(sample(t_s, temp_c=40.0 + 5 * t_s, memory_temp_c=50.0 + 5 * t_s), {})
        card = seeing.cards()["GPU-a"]
        assert (card.soon_c is None) is (card.memory_soon_c is None) is (t_s < 6)


def test_nothing_is_carried_on_of_a_card_whose_work_began_less_than_two_seconds_ago() -> None:
    seeing = Seeing()
    for n in range(40):
        t_s = n / 4
        seeing.take(sample(t_s, temp_c=40.0 + 5 * t_s, util_pct=0 if t_s <= 4 else 100), {})
        assert (seeing.cards()["GPU-a"].soon_c is None) is (t_s < 6)


def test_a_header_without_a_fan_is_none_that_stands_still() -> None:
    seeing = Seeing()
    rpm = {"fans_rpm": {"chip pump": 2400, "chip fan5": 0}}
    seeing.take(sample(1.0) | rpm, {})
    seeing.take(sample(2.0) | {"fans_rpm": {"chip pump": 0, "chip fan5": 0}}, {})
    seeing.take(sample(3.0) | {"fans_rpm": {"chip pump": 0, "chip fan5": 0}}, {})
    (still,) = seeing.fans_still()
    assert (still.name, still.since_s, still.slot) == ("chip pump", 2.0, None)
    seeing.take(sample(4.0) | rpm, {})
    assert seeing.fans_still() == ()


def test_a_cards_fan_counts_only_while_it_is_asked_to_turn() -> None:
    seeing = Seeing()
    seeing.take(sample(1.0, fan_rpm=0, fan_pct=0), {})
    assert seeing.fans_still() == ()
    seeing.take(sample(2.0, fan_rpm=0, fan_pct=40), {})
    (still,) = seeing.fans_still()
    assert (still.name, still.slot) == ("fan", 1)


def test_a_process_seen_once_is_forgotten_when_it_is_gone() -> None:
    seeing = Seeing()
    seeing.take_others({77: "77 x (alice) on slot1"}, 1.0)
    seeing.take_others({78: "78 y (bob) on slot1"}, 1.5)
    others = seeing.others()
    assert others is not None
    assert (others.words, others.first_s, others.last_s) == ("78 y (bob) on slot1", 1.5, 1.5)
    seeing.take_others({78: "78 y (bob) on slot1"}, 2.0)
    assert seeing.others() is not None
    seeing.take_others({}, 2.5)
    assert seeing.others() is None
