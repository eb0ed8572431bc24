"""Series, slow trends, what changed, and whether a swap would tell more."""

from __future__ import annotations

import math
import random
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest
from scipy import stats

from rigctl.model.decision import BaselineDecision
from rigctl.model.past import CardPart, Cause, Parts, Past, Point
from rigctl.model.verdict import Verdict
from rigctl.trends import all_series, changes, know, known_of, slow_trends
from rigctl.trends.series import MAD_FROM, PRIOR, PRIOR_WEIGHT, Series, sigma_of, student
from rigctl.trends.slow import FEWEST, SHORTEST_DAYS, WATCHED, WINDOW_DAYS

START = datetime(2026, 1, 1, 2, 0, tzinfo=UTC)
CARDS = ("GPU-1", "GPU-2")


def at(night: int) -> str:
    return (START + timedelta(days=night)).isoformat()


def point(night: int, found: float, check: str = "thermals.resistance", **more: Any) -> Point:
    known = {
        "run_id": f"run{night}",
        "ended_at": at(night),
        "profile": "standard",
        "check": check,
        "subject": "slot1 (…1)",
        "slot": "slot1",
        "uuid": "GPU-1",
        "found": found,
        "unit": "°C/W",
        "verdict": Verdict.PASS,
        "limit": 0.12,
    }
    return Point(**known | more)


def past(night: int, verdict: Verdict | None = Verdict.PASS, slots: tuple[int, int] = (1, 2), **more: Any) -> Past:
    cards = tuple(
        CardPart(uuid=uuid, subject=f"slot{slot} (…{uuid[-1]})", slot=f"slot{slot}", model="x", **more.pop(uuid, {}))
        for uuid, slot in zip(CARDS, slots, strict=True)
    )
    parts = {"driver": "515.105.01", "kernel": "5.15.0-91", "bios": "F33", "spec": "a", "cards": cards}
    parts |= {key: more.pop(key) for key in list(more) if key in Parts.model_fields}
    known = {
        "run_id": f"run{night}",
        "kind": "accept",
        "profile": "standard",
        "started_at": at(night),
        "ended_at": at(night),
        "rigctl_version": "0.1.0",
        "rig": "rig1",
        "rig_class": "dual_3090ti",
        "verdict": verdict,
        "parts": Parts(**parts),
    }
    return Past(**known | more)


def nights(count: int, value, *, first: int = 0, seed: int = 0) -> list[Point]:
    noise = random.Random(seed)  # noqa: S311 - noise, no secret
    return [point(night, value(night) + noise.gauss(0, 0.001)) for night in range(first, first + count)]


def trends(points: list[Point], pasts: list[Past] | None = None, night: int = 200):
    known = [past(0)] if pasts is None else pasts
    return slow_trends(all_series(points), known, START + timedelta(days=night))


@pytest.mark.parametrize("freedom", [4, 5, 8, 20, 100])
@pytest.mark.parametrize("share", [0.9, 0.99, 0.999])
def test_the_quantile_is_students(freedom, share):
    assert student(share, freedom) == pytest.approx(stats.t.ppf(share, freedom), rel=0.02)


def test_two_runs_are_enough_to_say_what_would_show():
    (one,) = all_series([point(0, 0.100), point(1, 0.101)])
    assert one.usual == pytest.approx(0.1005)
    assert 0.003 < one.detectable < 0.05
    (many,) = all_series(nights(40, lambda _n: 0.1))
    assert many.detectable < one.detectable / 2


def test_one_bad_night_among_many_does_not_count():
    values = [0.1, 0.101, 0.099, 0.1, 0.1, 0.3]
    assert len(values) > MAD_FROM
    assert sigma_of(values, "°C/W") < 0.003
    assert sigma_of([0.1], "°C/W") == pytest.approx(PRIOR["°C/W"])
    assert sigma_of([100.0], None) == pytest.approx(1.5)
    assert sigma_of([0.1], "°C/W over its own rest") == sigma_of([0.1], "°C/W")
    assert sigma_of([0.0], "errors") == 1.0
    assert sigma_of([25.0], "replays") == 5.0
    assert PRIOR_WEIGHT >= 4, "the expansion of Student's t is good from there on"


def test_cards_are_followed_by_their_uuid_or_their_slot():
    points = [point(0, 0.1), point(1, 0.1, slot="slot2", subject="slot2 (…1)")]
    assert [(one.key, len(one.points), one.subject) for one in all_series(points)] == [("GPU-1", 2, "slot2 (…1)")]
    assert [one.key for one in all_series(points, by="slot")] == ["slot1", "slot2"]
    assert [one.key for one in all_series([point(0, 1.0, "power.residual", uuid=None, slot=None, subject="rig")])] == [
        "rig"
    ]


def test_a_creeping_figure_is_found_with_the_day_on_which_it_meets_its_limit():
    (found,) = trends(nights(60, lambda n: 0.100 + 0.0001 * n), night=60)
    assert found.per_week == pytest.approx(0.0007, rel=0.2)
    assert found.crosses_on is not None
    assert abs((found.crosses_on - date(2026, 7, 20)).days) < 45  # 0.02 °C/W at 0.0001 a day from night 0
    assert "meets its limit 0.12" in found.sentence
    assert found.fix == WATCHED["thermals.resistance"][1]


def test_what_gets_better_or_stays_is_no_trend():
    same = [point(night, 0.0, "topology.nvlink_errors", unit=None) for night in range(60)]
    assert trends(same, night=60) == ()
    assert trends(nights(60, lambda n: 0.110 - 0.0002 * n), night=60) == ()
    assert trends(nights(60, lambda _n: 0.1), night=60) == ()


def test_a_rate_that_falls_is_a_trend_and_one_that_rises_is_none():
    def rates(slope: float) -> list[Point]:
        made = nights(60, lambda n: 27_000 + slope * n)
        more = {"check": "throughput.burn_gflops", "unit": "Gflop/s", "limit": 25_000.0}
        return [one.model_copy(update={**more, "found": one.found}) for one in made]

    (found,) = trends(rates(-40.0), night=60)
    assert found.per_week < 0
    assert trends(rates(40.0), night=60) == ()


def test_a_figure_that_nobody_watches_for_wear_is_left_alone():
    points = [one.model_copy(update={"check": "thermals.settled_gpu_temp"}) for one in nights(60, lambda n: 50 + n)]
    assert trends(points, night=60) == ()


def test_too_few_nights_or_too_short_a_time_say_nothing():
    def steep(n: float) -> float:
        return 0.1 + 0.002 * n

    assert trends(nights(FEWEST - 1, steep), night=30) == ()
    assert trends(nights(SHORTEST_DAYS, steep), night=30) == ()
    assert len(trends(nights(SHORTEST_DAYS + 1, steep), night=30)) == 1


def test_nights_to_come_and_nights_long_ago_are_not_looked_at():
    rising = nights(60, lambda n: 0.1 + 0.0005 * n)
    assert trends(rising, night=5) == ()
    assert trends(rising, night=400) == ()


@pytest.mark.parametrize(
    "changed",
    [
        {"driver": "535.1"},
        {"bios": "F40"},
        {"GPU-1": {"vbios": "2"}},
        {"GPU-1": {"power_limit_w": 400.0}},
        {"slots": (2, 1)},
    ],
)
def test_a_level_that_a_change_explains_is_no_trend(changed):
    points = nights(60, lambda n: 0.100 + 0.0003 * n)
    assert len(trends(points, [past(0), past(50)], night=60)) == 1
    assert trends(points, [past(0), past(50, **changed)], night=60) == ()


@pytest.mark.parametrize("jump", [0.006, 0.012, 0.03])
@pytest.mark.parametrize("at_night", [10, 30, 55])
def test_a_jump_to_another_level_is_no_trend_on_any_morning(jump, at_night):
    points = nights(at_night, lambda _n: 0.100) + nights(90, lambda _n: 0.100 + jump, first=at_night, seed=1)
    assert [night for night in range(at_night + 90) if trends(points, night=night)] == []


def test_wear_that_begins_late_is_found_while_the_long_window_is_still_mostly_flat():
    points = nights(150, lambda n: 0.075 + 0.0003 * max(0, n - 120))
    (found,) = trends(points, night=149)
    assert found.nights == 31


@pytest.mark.parametrize("seed", range(5))
def test_stairs_of_a_sensor_that_counts_whole_degrees_are_a_trend_within_four_weeks(seed):
    noise, degree = random.Random(seed), 0.0023  # noqa: S311 - weather, no secret
    found = [0.085 + 0.0002 * max(0, n - 106) + noise.gauss(0, 0.001) for n in range(135)]
    points = [point(n, round(value / degree) * degree) for n, value in enumerate(found)]
    assert len(trends(points, night=134)) == 1
    assert trends(points[:107], night=106) == ()


def test_what_would_not_meet_its_limit_within_a_year_is_the_age_of_any_rig():
    ages = nights(120, lambda n: 0.080 + 0.00005 * n)
    assert trends(ages, night=119) == ()
    (found,) = trends([one.model_copy(update={"limit": None}) for one in ages], night=119)
    assert found.crosses_on is None


def test_errors_of_a_link_that_grow_ever_faster_are_found_a_month_before_their_limit():
    chance = random.Random(3)  # noqa: S311 - noise, no secret
    grows = [100 * math.exp((night - 150) / 18) for night in range(150)]
    counts = [max(0, round(chance.gauss(mean, math.sqrt(mean)))) for mean in grows]
    assert sum(counts[:60]) < 10
    points = [point(n, float(c), "topology.nvlink_errors", unit="errors", limit=100.0) for n, c in enumerate(counts)]
    assert len(trends(points, night=119)) == 1


def test_a_few_errors_now_and_then_are_no_trend():
    chance = random.Random(5)  # noqa: S311 - noise, no secret
    counts = [chance.choice((0, 0, 1, 2)) for _ in range(300)]
    points = [point(n, float(c), "topology.nvlink_errors", unit="errors", limit=100.0) for n, c in enumerate(counts)]
    assert [night for night in range(300) if trends(points, night=night)] == []


def test_what_changed_is_said_part_by_part():
    before = past(0, ambient_c=21.0, **{"GPU-1": {"vbios": "94.1", "power_limit_w": 480.0}})
    after = past(
        1, driver="535.9", kernel="5.15.0-100", bios="F40", spec="b", ambient_c=27.0, rigctl_version="0.2.0",
        **{"GPU-1": {"vbios": "94.2", "power_limit_w": 400.0}},
    )  # fmt: skip
    assert [one.sentence for one in changes(before, after)] == [
        "driver 515.105.01 → 535.9",
        "kernel 5.15.0-91 → 5.15.0-100",
        "BIOS F33 → F40",
        "rigctl 0.1.0 → 0.2.0",
        "spec another → now",
        "room 21 °C → 27 °C",
        "slot1 (…1): VBIOS 94.1 → 94.2",
        "slot1 (…1): power limit 480 W → 400 W",
    ]
    assert changes(before, before) == ()
    assert changes(past(0, ambient_c=21.0), past(1, ambient_c=23.9)) == ()
    assert changes(past(0), past(1, driver=None, kernel=None, bios=None, cards=())) == ()


def test_cards_that_moved_went_or_came():
    assert [one.sentence for one in changes(past(0), past(1, slots=(2, 1)))] == [
        "slot2 (…1): card slot1 → slot2",
        "slot1 (…2): card slot2 → slot1",
    ]
    other = past(1)
    third = other.parts.cards[1].model_copy(update={"uuid": "GPU-3", "subject": "slot2 (…3)"})
    other = other.model_copy(update={"parts": other.parts.model_copy(update={"cards": (other.parts.cards[0], third)})})
    assert [one.sentence for one in changes(past(0), other)] == [
        "slot2: card slot2 (…2) → gone",
        "slot2: card none or another → slot2 (…3)",
    ]


HOT = "thermals.resistance"


def bad(night: int, subject: str, slots: tuple[int, int] = (1, 2), check: str = HOT) -> Past:
    cause = Cause(check=check, subject=subject, verdict=Verdict.FAIL, reason="warm")
    return past(night, Verdict.FAIL, slots, causes=(cause,))


def known(*pasts: Past, points: tuple[Point, ...] = ()):
    return known_of("rig1", pasts, points, START + timedelta(days=400))


def test_since_the_last_pass():
    assert known(past(0)).what_changed == "never accepted before"
    one = known(past(0), past(1, driver="520.1"), bad(2, "slot1 (…1)"), past(3, None), bad(4, "slot1 (…1)"))
    assert one.last_pass is not None
    assert one.last_pass.run_id == "run1"
    assert one.what_changed == "driver 520.1 → 515.105.01"
    assert known(past(0), bad(1, "slot1 (…1)")).what_changed == "nothing else changed"


def decision(night: int, action: str = "accept") -> BaselineDecision:
    run = {"run": f"run{night}", "run_ended_at": at(night)} if action == "accept" else {}
    return BaselineDecision(action=action, rig="rig1", at=at(night), who="anna@lab", reason="new card", **run)


def test_since_the_run_that_people_accepted():
    runs = (past(0), past(1, Verdict.FAIL, driver="520.1"), past(2, driver="520.1"), past(3, driver="520.1"))
    now = START + timedelta(days=400)
    assert known_of("rig1", runs[:3], (), now).what_changed == "driver 515.105.01 → 520.1"
    one = known_of("rig1", runs[:3], (), now, decision(1))
    assert (one.last_pass, one.what_changed) == (runs[1], "nothing else changed")
    one = known_of("rig1", runs[:3], (), now, decision(1, "reset"))
    assert (one.last_pass, one.what_changed) == (
        None,
        f"never accepted since {at(1)[:10]}, from when on its past counts",
    )
    assert known_of("rig1", runs, (), now, decision(1, "reset")).last_pass == runs[2]


def test_a_trend_begins_where_people_moved_the_baseline():
    points = tuple(nights(60, lambda n: 0.100 + 0.0001 * n))
    runs = tuple(past(night) for night in range(60))
    now = START + timedelta(days=60)
    assert [one.nights for one in known_of("rig1", runs, points, now).trends] == [60]
    assert [one.nights for one in known_of("rig1", runs, points, now, decision(10)).trends] == [50]
    assert known_of("rig1", runs, points, now, decision(55)).trends == ()


def test_a_swap_is_proposed_and_then_read():
    first = bad(1, "slot1 (…1)")
    proposed = known(past(0), first).swap
    assert proposed is not None
    assert proposed.startswith("swap the cards of slot1 and slot2 and accept again: if thermals.resistance moves")
    moved = known(past(0), first, bad(2, "slot2 (…1)", (2, 1))).swap
    assert moved == "it moved with the card slot2 (…1) from slot1 to slot2: it is the card"
    stayed = known(past(0), first, bad(2, "slot1 (…2)", (2, 1))).swap
    assert stayed == "it stayed in slot1 when the card was changed: it is the place (cooling, supply, slot)"


def test_no_swap_where_it_would_tell_nothing():
    assert known(past(0), past(1)).swap is None
    assert known(past(0), bad(1, "rig", check="kernel.same_boot")).swap is None
    assert known().swap is None


def test_the_usual_value_behind_a_verdict():
    one = known(past(0), points=(point(0, 0.1), point(1, 0.11)))
    series = one.usual(HOT, "slot1 (…1)")
    assert isinstance(series, Series)
    assert series.usual == pytest.approx(0.105)
    assert one.usual(HOT, "slot2 (…2)") is None


@pytest.mark.parametrize("hours", [-8, 0, 9])
def test_the_index_is_asked_in_the_time_that_runs_are_kept_in(hours, tmp_path):
    asked = []

    class Asked:
        runs = tmp_path

        def pasts(self, _rig: str, *, until: str) -> tuple[Past, ...]:
            asked.append(until)
            return (past(0),)

        def points(self, _rig: str, *checks: str, since: str, until: str) -> tuple[Point, ...]:
            assert set(checks) == set(WATCHED)
            assert datetime.fromisoformat(until) - datetime.fromisoformat(since) == timedelta(days=WINDOW_DAYS)
            asked.append(until)
            return ()

    now = (START + timedelta(minutes=5)).astimezone(timezone(timedelta(hours=hours)))
    assert know(Asked(), "rig1", now=now).last == past(0)
    assert asked == [(START + timedelta(minutes=5)).isoformat()] * 2
