"""One card at work so that a person can find it: which one is meant, what is asked of the rig, what is said."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from rigctl import identify
from rigctl.cli.identify import words
from rigctl.errors import ConnectionLost, RigError
from rigctl.identify import Identify, which_card
from rigctl.measure.claim import Claim
from tests.measure.test_plan import facts
from tests.measure.test_rig import RIG, RecordedAgent, event, lines

CARDS = facts("GPU-11112222", "GPU-3333b02e")
CLAIM = Claim("alice@desk")


@pytest.mark.parametrize(("name", "slot"), [("2", 2), ("slot1", 1), ("b02e", 2), ("…B02E", 2), ("GPU-11112222", 1)])
def test_a_card_is_named_by_slot_or_by_the_end_of_its_uuid(name: str, slot: int) -> None:
    assert which_card(CARDS, name).slot == slot


@pytest.mark.parametrize("name", ["3", "0", "2e", "ffff", "", "slot"])
def test_words_that_mean_no_card_are_refused_with_those_there_are(name: str) -> None:
    with pytest.raises(RigError, match="means 0 cards") as refused:
        which_card(CARDS, name)
    assert "slot1" in refused.value.hint
    assert refused.value.exit_code == 3


class Agent(RecordedAgent):
    """Two cards; keeps the plan that it was started with."""

    plan: dict[str, Any]

    def _facts(self, *_args: str) -> dict[str, Any]:
        return CARDS.model_dump(mode="json")

    def ask(self, *args: str, during: str, stdin: bytes = b"", timeout_s: float = 30) -> dict[str, Any]:
        if args[0] == "start":
            self.plan = json.loads(stdin)
        return super().ask(*args, during=during, stdin=stdin, timeout_s=timeout_s)


def sample(seq: int, watts: float) -> dict[str, Any]:
    gpus = [
        {"uuid": "GPU-11112222", "slot": 1, "temp_c": 31, "power_w": 20.0},
        {"uuid": "GPU-3333b02e", "slot": 2, "temp_c": 40 + seq, "power_w": watts},
    ]
    times = {"t_mono_s": float(seq), "t_wall_s": 1000.0 + seq}
    return {"seq": seq, **times, "boot_id": "b", "step": "identify", "gpus": gpus}


def files(*events: dict[str, Any]) -> dict[str, bytes]:
    told = lines(*(sample(i, 430.0 + i) for i in range(6)))
    return {"telemetry.jsonl": told, "events.jsonl": lines(event(0, "step_started", "identify"), *events)}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identify, "POLL_S", 0.0)


def look_for(agent: Agent, cancel: threading.Event | None = None) -> tuple[identify.Found, list[str]]:
    said: list[str] = []
    one = Identify(RIG, cancel or threading.Event(), said.append, session=agent)
    return one.run("b02e", 60, CLAIM), said


def test_one_card_works_under_the_guard_and_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = Agent(files(event(1, "plan_finished")))
    found, said = look_for(agent)
    (step,) = agent.plan["steps"]
    assert step == {"name": "identify", "seconds": 60, "loads": ["gpu"], "only_slot": 2}
    assert agent.plan["expected_gpus"] == ["GPU-11112222", "GPU-3333b02e"], "all are watched"
    assert (agent.plan["max_gpu_temp_c"], agent.plan["asked_by"]) == (85, "alice@desk")
    assert (found.slot, found.max_power_w, found.max_temp_c, found.others_max_power_w) == (2, 435.0, 45, 20.0)
    assert found.stopped is None
    assert agent.asked[-3:] == ["stop", "ack", "close"]
    assert any("435 W, 45 °C" in text for text in said)
    assert words(found) == "slot2 (…b02e) on rig1, 00000000:02:00.0: 435 W at most, 45 °C at most; the others 20 W"


def test_found_by_a_person_it_stops_and_that_is_no_fault() -> None:
    cancel = threading.Event()
    cancel.set()
    agent = Agent(files())
    found, _ = look_for(agent, cancel)
    assert "stop" in agent.asked
    assert found.stopped is None


def test_a_stop_by_the_guard_is_said() -> None:
    found, _ = look_for(Agent(files(event(1, "guard_stopped", "identify", reason="temperature"))))
    assert found.stopped == "temperature"
    assert words(found).endswith("the guard stopped it (temperature)")


def test_a_rig_without_the_burner_says_what_to_do() -> None:
    lacks = event(
        1, "error", "identify", needs="gpu_burn", error="gpu-burn is not there", hint="run `rigctl provision`"
    )
    agent = Agent(files(lacks))
    with pytest.raises(RigError, match="gpu-burn is not there") as refused:
        look_for(agent)
    assert "provision" in refused.value.hint
    assert agent.asked[-3:] == ["stop", "ack", "close"]


def test_where_it_cannot_be_stopped_its_own_guard_is_named() -> None:
    agent = Agent(files(event(1, "plan_finished")), faults={"stop": ConnectionLost("cut")})
    _, said = look_for(agent)
    assert said[-1] == "cut; the rig's guard stops the load after 20 s of silence"
