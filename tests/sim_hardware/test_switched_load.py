"""The switched load on simulated cards, and what a weak supply and cards that do not wake do to it."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

import pytest

from rigctl.agent.scripts import switched
from rigctl.sim.machine.hardware.rigsim.faults import new_fault
from rigctl.sim.machine.hardware.rigsim.mains import STEP_S, Supply, go_off
from rigctl.sim.machine.hardware.rigsim.wakes import RESTED_S, SLOW_SHARE, Wakes

from .conftest import NEEDS_COMPILER, state_of

AGENT = Path(switched.__file__).parents[1]
BOOT = "00000000-0000-4000-8000-000000000000"


def powers(rig):
    state = rig.state()
    return [int(state[f"gpu.{card}.power_mw"]) / 1000 for card in range(2)]


@NEEDS_COMPILER
def test_cards_are_switched_together_and_rest_in_between(rig, built, tmp_path):
    state = rig.state()
    cards = [{"slot": card + 1, "uuid": state[f"gpu.{card}.uuid"]} for card in range(2)]
    stages = [{"name": "0.5 Hz", "on_s": 1.0, "off_s": 1.0, "times": 2}]
    arguments = {"cards": cards, "torch_venv": "", "size": 4096, "alone": False, "stages": stages}
    out = tmp_path / "step_load.json"
    environment = rig.environment | {"LD_LIBRARY_PATH": f"{built / 'lib'}:{built / 'cuda-11.7/lib64'}"}
    command = [sys.executable, "-m", "scripts.switched", "--arguments", json.dumps(arguments), "--out", str(out)]
    seen, ended = [], threading.Event()

    def watch():
        while not ended.wait(0.1):
            seen.append(powers(rig))

    watcher = threading.Thread(target=watch)
    watcher.start()
    reply = type(rig)(rig.paths, environment).run(*command, cwd=AGENT)
    ended.set()
    watcher.join()
    assert reply.returncode == 0, reply.stderr + reply.stdout
    (stage,) = json.loads(out.read_text(encoding="utf-8"))["stages"]
    done = {worker["what"]: worker for worker in stage["workers"]}
    assert set(done) == {"slot1", "slot2", "cpu"}
    assert all(worker["done"] >= 2 and worker["wrong"] == 0 for worker in done.values())
    for card in range(2):
        own = [watts[card] for watts in seen]
        # At work, at rest, and at work again.
        working = [at for at, watts in enumerate(own) if watts > 350]
        assert working
        assert min(own[working[0] : working[-1] + 1]) < 100
    rig.settle()
    assert max(powers(rig)) < 100
    assert not list(rig.paths.loads.glob("[0-9]*"))


def applied(name, **values):
    return [new_fault(name, {key: str(value) for key, value in values.items()}, "now", BOOT)]


@pytest.mark.parametrize(("rise_w", "trips"), [(600.0, False), (600.1, True)])
def test_a_weak_supply_goes_off_at_a_step_only(rise_w, trips):
    supply, fault = Supply(), applied("psu_trip")
    assert not supply.trips(0.1, 200.0, fault)
    assert supply.trips(0.1, 200.0 + rise_w, fault) is trips


def test_a_ramp_is_no_step_and_without_the_fault_nothing_is():
    supply, fault = Supply(), applied("psu_trip", watts=300)
    assert not any(supply.trips(STEP_S, 200.0 + 250 * n, fault) for n in range(5))
    assert not any(Supply().trips(0.1, watts, []) for watts in (100.0, 2000.0))


def test_only_a_simulated_rig_goes_off(paths):
    with pytest.raises(RuntimeError, match="only a simulated rig"):
        go_off(paths)


def test_the_daemon_lets_the_rig_go_off_when_cards_begin_together(daemon):
    went = []
    daemon.go_off = lambda: went.append(True)
    daemon._follow_book()
    daemon.faults = applied("psu_trip", watts=300)
    daemon._book_stamp = stamp_of(daemon)
    for _ in range(5):
        daemon.tick(0.1)
    assert not went
    for card in daemon.present():
        load(daemon, card)
    for _ in range(10):
        daemon.tick(0.1)
    assert went


def stamp_of(daemon):
    """The book as it is read already: the test's own faults stay."""
    return daemon._book_stamp


def load(daemon, card):
    uuid = next(own["uuid"] for own in daemon.identity["cards"] if own["slot"] == card.parts.slot)
    path = daemon.paths.loads / "1"
    known = path.read_text(encoding="ascii") if path.exists() else ""
    path.write_text(f"{known}gpu {uuid} compute 1.00 4000\n", encoding="ascii")


def wake(wakes, cards, active, rested_s, work_s=0.1):
    """Rest, then work; the slots that are lost."""
    for card in cards:
        card.load = 0.0
    wakes.step(rested_s, cards, active)
    for card in cards:
        card.load = 1.0
    return wakes.step(work_s, cards, active)


@pytest.fixture
def cards(daemon):
    return daemon.machine.cards


def test_a_card_is_lost_at_its_third_wake_and_comes_back_with_its_fault(cards):
    wakes, fault = Wakes(), applied("lost_at_wake")
    lost = [wake(wakes, cards, fault, RESTED_S) for _ in range(4)]
    assert lost == [frozenset(), frozenset(), {2}, {2}]
    assert wakes.step(0.1, cards, []) == frozenset()


def test_what_rested_shortly_was_not_asleep(cards):
    wakes, fault = Wakes(), applied("lost_at_wake", every=1)
    assert wake(wakes, cards, fault, RESTED_S - 0.1) == frozenset()
    assert wake(wakes, cards, fault, RESTED_S) == {2}


def test_a_card_that_wakes_badly_keeps_its_clock_low_until_it_wakes_again(cards):
    wakes, fault = Wakes(), applied("slow_at_wake", slot=1, every=2)
    shares = []
    for _ in range(3):
        wake(wakes, cards, fault, RESTED_S)
        shares.append((cards[0].awake_share, cards[1].awake_share))
    assert shares == [(1.0, 1.0), (SLOW_SHARE, 1.0), (1.0, 1.0)]
    wake(wakes, cards, fault, RESTED_S)
    wakes.step(0.1, cards, [])
    assert cards[0].awake_share == 1.0


def test_a_low_clock_shows_in_rate_and_power(daemon):
    card = daemon.machine.cards[0]
    card.load, card.awake_share = 1.0, SLOW_SHARE
    for _ in range(50):
        daemon.machine.step(0.1)
    assert card.gflops < 0.4 * card.parts.burn_gflops
    assert card.shown_power_w < 0.4 * card.parts.burn_w
    assert state_of(daemon)["gpu.count"] == "2"
