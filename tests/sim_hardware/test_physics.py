"""The figures of the reference rig, and what happens when the pump stops."""

from __future__ import annotations

from statistics import mean
from typing import Any

import pytest

from rigctl.sim.machine.hardware.rigsim import physics
from rigctl.sim.machine.hardware.rigsim.build import build_machine


@pytest.fixture
def machine(identity: dict[str, Any]) -> physics.Machine:
    made = build_machine(identity, seed=7)
    for card in made.cards:
        card.limit_w = 480.0
    return made


def run(machine: physics.Machine, seconds: float, scale: float = 10) -> None:
    for _ in range(round(seconds * 10)):
        machine.step(0.1, scale)


def load(machine: physics.Machine, share: float = 1.0) -> None:
    for card in machine.cards:
        card.load = share


def test_idle_cards_draw_little_and_stay_cool(machine):
    run(machine, 10)
    assert all(8 <= card.shown_power_w <= 25 for card in machine.cards)
    assert all(24 <= card.temp_c <= 30 for card in machine.cards)
    assert 100 < machine.wall_w < 200
    assert [card.throttle for card in machine.cards] == [physics.THROTTLE_IDLE] * 2


@pytest.mark.parametrize("scale", [10, 20])
def test_gpu_burn_settles_as_the_reference_rig_did(machine, scale):
    load(machine)
    seen: list[tuple[float, ...]] = []
    for tick in range(250):
        machine.step(0.1, scale)
        if tick > 250 * 2 / 3:
            seen.append((*(c.temp_c for c in machine.cards), *(c.shown_power_w for c in machine.cards)))
    hot, cool, first_w, second_w = (mean(column) for column in zip(*seen, strict=True))
    assert hot == pytest.approx(58, abs=0.7)
    assert cool == pytest.approx(55, abs=0.7)
    assert 440 < first_w < 450
    assert 440 < second_w < 450
    assert all(card.throttle == 0 for card in machine.cards)
    assert [round(card.gflops, -2) for card in machine.cards] == pytest.approx([26_600, 26_600], rel=0.02)


def test_wall_power_with_cards_and_cpu_is_that_of_the_reference_rig(machine):
    load(machine)
    run(machine, 40)
    cards_alone_w = machine.wall_w
    machine.cpu_load = 1.0
    run(machine, 10)
    assert machine.wall_w == pytest.approx(1240, rel=0.01)
    assert 1080 < cards_alone_w < 1150
    assert 60 < machine.cpu_temp_c < 85


def test_power_is_capped_and_the_clock_pays(machine):
    for card in machine.cards:
        card.limit_w = 300.0
    load(machine)
    run(machine, 20)
    card = machine.cards[0]
    assert card.power_w == pytest.approx(300, abs=1)
    assert card.throttle == physics.THROTTLE_POWER_CAP
    assert card.sm_mhz < card.parts.sm_burn_mhz - 100
    assert card.gflops < 26_000


def test_dead_pump_drives_the_cards_into_their_slowdown_at_scale_1(machine):
    load(machine)
    run(machine, 40)
    machine.flow = 0.0
    bits, slowdown_s, hottest_c = 0, None, 0.0
    for tick in range(900):
        machine.step(0.1, 1.0)
        bits |= machine.cards[0].throttle
        hottest_c = max(hottest_c, machine.cards[0].temp_c)
        if slowdown_s is None and bits & physics.THROTTLE_HW_THERMAL:
            slowdown_s = tick / 10
    assert slowdown_s is not None
    assert 5 < slowdown_s < 60
    wanted = physics.THROTTLE_HW_THERMAL | physics.THROTTLE_HW_SLOWDOWN | physics.THROTTLE_SW_THERMAL
    assert bits & wanted == wanted
    assert hottest_c < machine.cards[0].parts.temp_shutdown_c


def test_dead_pump_does_not_show_at_rest(machine):
    machine.flow = 0.0
    run(machine, 60)
    assert all(card.temp_c < 45 for card in machine.cards)


def test_a_lost_card_neither_works_nor_draws(machine):
    machine.cards[1].lost = True
    load(machine)
    run(machine, 5)
    assert machine.cards[1].shown_power_w == 0
    assert machine.cards[1].gflops == 0
    assert machine.cards[0].shown_power_w > 400


def test_energy_counts_real_seconds_whatever_the_scale(machine):
    load(machine)
    run(machine, 20, scale=20)
    assert machine.cards[0].energy_j == pytest.approx(20 * 442, rel=0.05)


def test_the_same_seed_gives_the_same_run(identity):
    shown = []
    for seed in (1, 1, 2):
        machine = build_machine(identity, seed=seed)
        load(machine)
        run(machine, 5)
        shown.append(machine.cards[0].shown_power_w)
    assert shown[0] == shown[1] != shown[2]
