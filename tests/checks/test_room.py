"""The room: what a limit of temperature means in summer and in winter, and when no room can be told."""

from __future__ import annotations

import pytest

from rigctl.checks.room import MOST_C, room_c, settled_limit_c
from rigctl.checks.thermals import settled_gpu_temp
from rigctl.model.verdict import Verdict
from rigctl.sim.burns import Burn
from rigctl.sim.machine.hardware.rigsim.identity import load_template, make_identity

from . import healthy as h

SPEC = h.spec(limits={"settled_at_room_temp_c": 25.0})
REST = 31.0
"""What the healthy rig's cards rest at, °C."""


def resting(temp_c, settled_c=None):
    """The healthy rig, whose cards rest at one temperature and whose second card settles at another."""

    def change(gpu, sample):
        if sample.step == "idle":
            return {"temp_c": temp_c}
        return {"temp_c": settled_c} if settled_c is not None and gpu.slot == 2 and gpu.util_pct == 100 else {}

    return h.readings(samples=h.with_gpu_samples(change, ("idle", "gpu_burn")))


def second(readings, spec=SPEC):
    return settled_gpu_temp(spec, readings)[1]


@pytest.mark.parametrize(
    ("rest_c", "settled_c", "verdict"),
    [
        (25.0, 65.0, "PASS"),
        (25.0, 65.1, "FAIL"),
        (31.0, 65.0, "PASS"),
        (31.0, 65.1, "WARN"),
        (31.0, 71.0, "WARN"),
        (31.0, 71.1, "FAIL"),
        (15.0, 55.0, "PASS"),
        (15.0, 55.1, "FAIL"),
    ],
)
def test_the_limit_moves_with_the_room(rest_c, settled_c, verdict):
    found = second(resting(rest_c, settled_c))
    assert found.verdict is Verdict[verdict]
    assert found.expected == pytest.approx(65 + rest_c - 25)
    assert found.found == settled_c


def test_a_warm_room_is_named_and_so_is_what_it_did_to_the_limit():
    found = second(resting(31.0, 68.0))
    assert "65 °C in a room of 25 °C are 71 °C in this one of 31.0 °C" in found.reason
    assert "the room is too warm" in found.reason
    assert "air conditioning" in found.fix
    cold = second(resting(15.0, 60.0))
    assert "are 55 °C in this one of 15.0 °C" in cold.reason


@pytest.mark.parametrize(("rest_c", "limit"), [(25 + MOST_C, 75.0), (25 + MOST_C + 5, 75.0), (10.0, 55.0), (9.0, 55.0)])
def test_it_moves_by_ten_degrees_at_most(rest_c, limit):
    assert settled_limit_c(SPEC, resting(rest_c))[0] == limit


def test_without_a_room_in_the_spec_the_limit_holds_whatever_the_room():
    assert settled_limit_c(h.spec(), resting(31.0)) == (65.0, "")
    assert second(resting(31.0, 65.1), h.spec()).verdict is Verdict.FAIL
    assert settled_limit_c(h.spec(limits={"max_settled_gpu_temp_c": None}), resting(31.0)) == (None, "")


def test_the_cards_own_limit_does_not_move():
    spec = h.spec(limits={"settled_at_room_temp_c": 25.0, "max_settled_gpu_temp_c": 90.0})
    found = second(resting(31.0, 94.1), spec)
    assert (found.verdict, found.expected) == (Verdict.FAIL, 94.0)


def test_a_sensor_of_the_room_counts_before_the_cards():
    samples = h.with_samples(("idle",), room_temps_c={"nct6798 Ambient": 22.0, "nct6798 Inlet": 24.0})
    assert room_c(h.readings(samples=samples)) == 23.0
    assert room_c(h.readings()) == REST
    enough = tuple(s.model_copy(update={"room_temps_c": {}}) if s.seq < 1 else s for s in samples)
    assert room_c(h.readings(samples=enough)) == 23.0
    few = tuple(s.model_copy(update={"room_temps_c": {}}) if s.seq < 3 else s for s in samples)
    assert room_c(h.readings(samples=few)) == REST


@pytest.mark.parametrize(
    ("temps", "room"),
    [
        ((31.0, 31.0, 31.0, 31.0), 31.0),
        ((32.5, 32.5, 31.0, 31.0), 31.75),
        ((32.6, 32.6, 31.0, 31.0), None),
        ((None, 31.0, 31.0, 31.0), 31.0),
        ((None, None, 31.0, 31.0), None),
        ((150.0, 150.0, 150.0, 150.0), None),
        ((149.0, 149.0, 149.0, 149.0), 149.0),
        ((0.0, 0.0, 0.0, 0.0), None),
        ((0.5, 0.5, 0.5, 0.5), 0.5),
    ],
)
def test_a_card_that_cools_down_and_figures_that_no_room_has_tell_nothing(temps, room):
    idle = [s.seq for s in h.samples() if s.step == "idle"]
    assert len(idle) == len(temps)
    samples = h.with_gpu_samples(lambda _, s: {"temp_c": temps[idle.index(s.seq)]}, ("idle",))
    assert room_c(h.readings(samples=samples)) == room


def test_no_time_at_rest_shows_no_room_and_the_limit_stays():
    samples = tuple(s for s in h.samples() if s.step != "idle")
    assert settled_limit_c(SPEC, h.readings(samples=samples)) == (65.0, "")


@pytest.mark.parametrize("room", [12.0, 24.0, 30.0, 33.0])
@pytest.mark.parametrize(("fault", "good"), [((), True), ((("plate_badly_seated", {"pct": "50"}),), False)])
def test_through_the_physics_a_rig_is_judged_alike_in_every_season(room, fault, good):
    identity = make_identity(load_template("dual_3090ti"), "rig1", seed=7)
    readings = Burn(identity, fault, room_c=room, limit_w=480.0, burn_s=600).run()
    found = {v.verdict for v in settled_gpu_temp(SPEC, readings)}
    assert (Verdict.FAIL not in found) is good
