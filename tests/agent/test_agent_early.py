"""A step that the controller ends early: its load ends, the event says why, the next step runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from rigctl.agent.guard import asked_to_end
from rigctl.agent.places import write_atomically

from .test_agent_guard import Bench, bench

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["bench"]
STEPS = [
    {"name": "gpu_burn", "seconds": 60, "loads": ["gpu"]},
    {"name": "all_burn", "seconds": 0.3, "loads": ["cpu", "gpu"]},
]


def test_a_step_ends_early_and_the_next_one_runs(bench: Bench) -> None:
    told = json.dumps({"step": "gpu_burn", "reason": "all figures were clear of their limits"})
    status, seconds = bench.run(bench.plan(STEPS), lambda: write_atomically(bench.places.end_step("r1"), told))
    assert status == 0
    assert seconds < 20
    events = bench.events()
    (ended,) = [event for event in events if event["event"] == "ended_early"]
    assert ended["step"] == "gpu_burn"
    assert ended["detail"]["reason"] == "all figures were clear of their limits"
    assert ended["detail"]["asked_s"] == 60
    finished = [event["step"] for event in events if event["event"] == "step_finished"]
    assert finished == ["gpu_burn", "all_burn"]
    assert not [event for event in events if event["event"] == "guard_stopped"]


def test_another_step_than_the_one_named_is_left_alone(bench: Bench) -> None:
    told = json.dumps({"step": "cpu_burn", "reason": "x"})
    steps = [{"name": "gpu_burn", "seconds": 0.6, "loads": ["gpu"]}]
    bench.run(bench.plan(steps), lambda: write_atomically(bench.places.end_step("r1"), told))
    assert not [event for event in bench.events() if event["event"] == "ended_early"]
    assert bench.seconds_between("load_started", "load_exited") >= 0.5


@pytest.mark.parametrize("text", ["", "{}", "[]", "no json", '{"step": "gpu_burn"}'])
def test_what_cannot_be_read_ends_nothing(tmp_path: Path, text: str) -> None:
    path = tmp_path / "end"
    path.write_text(text)
    assert asked_to_end(path) is None
    assert asked_to_end(tmp_path / "absent") is None
