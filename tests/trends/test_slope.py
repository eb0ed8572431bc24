"""Whether a figure moves, how fast, and whether it only jumped."""

from __future__ import annotations

import random

import pytest
from scipy import stats

from rigctl.trends.slope import SIDE, direction, line, step, tamed

SURE = 0.99
WHOLE_DEGREE = 0.0023
"""What one whole degree of a sensor is at 440 W, °C/W."""


def made(seed: int, count: int, steep: float, grain: float) -> tuple[list[float], list[float]]:
    chance = random.Random(seed)  # noqa: S311 - noise, no secret
    days = [float(day) for day in range(count)]
    return days, [round((steep * day + chance.gauss(0, 1)) / grain) * grain for day in days]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("count", [3, 12, 40])
@pytest.mark.parametrize("grain", [0.001, 2.0])
@pytest.mark.parametrize("steep", [-0.1, -0.03, 0.0, 0.03, 0.1])
def test_the_direction_is_that_of_kendalls_test(seed, count, grain, steep):
    days, values = made(seed, count, steep, grain)
    found = stats.kendalltau(days, values, method="asymptotic")
    certain = found.pvalue < 1 - SURE
    assert direction(values, SURE) == (0 if not certain else 1 if found.statistic > 0 else -1)


def test_what_stays_moves_as_seldom_as_was_asked_for():
    said = sum(direction(made(seed, 30, 0.0, 2.0)[1], SURE) != 0 for seed in range(2000))
    assert said < 2000 * (1 - SURE) * 1.5
    assert direction([], SURE) == direction([1.0], SURE) == direction([1.0] * 9, SURE) == 0


def test_the_line_is_that_of_the_least_squares():
    days, values = made(1, 25, 0.2, 0.001)
    per_day, beside = line(days, values)
    assert per_day == pytest.approx(stats.linregress(days, values).slope)
    start = sum(values) / 25 - per_day * 12
    assert beside == pytest.approx(sum((v - start - per_day * d) ** 2 for d, v in zip(days, values, strict=True)))


def test_a_line_is_nearer_to_what_creeps_and_two_levels_to_what_jumps():
    days, creeps = made(1, 30, 0.3, 0.001)
    assert line(days, creeps)[1] < step(creeps)
    jumps = [value - 0.3 * day + (9 if day >= 12 else 0) for day, value in zip(days, creeps, strict=True)]
    assert step(jumps) < line(days, jumps)[1]


def test_the_step_is_the_best_of_all():
    values = made(2, 15, 0.1, 0.001)[1]

    def beside(level: list[float]) -> float:
        return sum((value - sum(level) / len(level)) ** 2 for value in level)

    every = [beside(values[:at]) + beside(values[at:]) for at in range(SIDE, 15 - SIDE + 1)]
    assert step(values) == pytest.approx(min(every))
    assert step([1.0] * 5 + [2.0] * 4) == pytest.approx(0.0)
    assert step([0.0, 0.0, 3.0]) == pytest.approx(6.0), "too few nights to make two levels"


def test_a_bad_night_is_drawn_near_and_others_stay():
    values = [1.0, 1.1, 0.9, 9.0, 1.0, 1.1, 0.9]
    assert tamed(values, 0.1) == pytest.approx([1.0, 1.1, 0.9, 1.3, 1.0, 1.1, 0.9])
    stairs = [WHOLE_DEGREE * (day // 8) for day in range(40)]
    assert tamed(stairs, WHOLE_DEGREE / 2) == stairs
