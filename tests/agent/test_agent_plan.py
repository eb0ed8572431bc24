"""The plan as the controller sends it: read whole, or refused with the key that is wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rigctl.agent.errors import AgentError
from rigctl.agent.places import Places, unit_name
from rigctl.agent.plan import FINISH_S, FIRST_SAMPLE_S, parse_plan

PLAN: dict[str, Any] = {
    "run_id": "2026-11-30T2300Z-7f3a",
    "sample_hz": 5,
    "controller_lost_s": 60,
    "max_gpu_temp_c": 80,
    "stale_sample_s": 5,
    "expected_gpus": ["GPU-aaaa"],
    "wall_meter": {"form": "tasmota", "url": "http://192.0.2.7/cm?cmnd=Status%208"},
    "gpu_burn_dir": "/opt/gpuburn",
    "torch_venv": "/opt/torch",
    "steps": [
        {"name": "idle", "seconds": 3, "loads": []},
        {"name": "all_burn", "seconds": 15, "loads": ["cpu", "gpu"]},
        {"name": "train", "seconds": 900, "loads": ["train"], "training": {"device": "cpu"}},
    ],
}


SCRIPT: dict[str, Any] = {
    "name": "p2p",
    "seconds": 60,
    "loads": ["script"],
    "script": {"name": "p2p", "python": "torch", "arguments": {}, "needs_cards": True},
}


def test_reads_a_plan() -> None:
    plan = parse_plan(json.dumps(PLAN))
    assert [step.name for step in plan.steps] == ["idle", "all_burn", "train"]
    assert plan.steps[1].loads == ("cpu", "gpu")


def test_the_runtime_bounds_every_step_with_its_margin() -> None:
    plan = parse_plan(json.dumps(PLAN))
    # gpu-burn may take its time to end: seconds + stts + 60.
    assert plan.steps[1].limit_s("gpu") == 15 + 1 + 60
    assert plan.longest_s == FIRST_SAMPLE_S + (3 + 2) + (76 + 2) + (900 + 2) + FINISH_S


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"sample_hz": 0}, "sample_hz is 0"),
        ({"controller_lost_s": -1}, "controller_lost_s"),
        ({"wall_meter": {"form": "abacus", "url": "x"}}, "abacus"),
        ({"wall_meter": {"form": "nut", "url": "x"}}, "'ups'"),
        ({"wall_meter": {"form": "command"}}, "'command'"),
        ({"steps": [{"name": "x", "seconds": 1, "loads": ["disk"]}]}, "disk"),
        ({"steps": [{"name": "train", "seconds": 1, "loads": ["train"]}]}, "no training"),
        ({"steps": [{"name": "x", "loads": []}]}, "'seconds'"),
        ({"steps": [{"name": "x", "seconds": 1, "loads": ["script"]}]}, "'script'"),
        ({"steps": [SCRIPT | {"script": SCRIPT["script"] | {"name": "../x"}}]}, "'../x'"),
        ({"steps": [SCRIPT | {"script": SCRIPT["script"] | {"python": "perl"}}]}, "'perl'"),
        ({"expected_gpus": None}, "NoneType"),
    ],
)
def test_refuses_what_it_cannot_carry_out(changed: dict[str, Any], told: str) -> None:
    with pytest.raises(AgentError) as refused:
        parse_plan(json.dumps(PLAN | changed))
    assert told in refused.value.message
    assert refused.value.hint


def test_refuses_what_is_not_json() -> None:
    with pytest.raises(AgentError):
        parse_plan(b"\xff{")


@pytest.mark.parametrize("run_id", ["", "../x", "a/b", "-x", "a b", "x" * 65, "a;b"])
def test_a_run_id_can_only_name_a_file_and_a_unit(run_id: str) -> None:
    with pytest.raises(AgentError):
        Places().spool(run_id)
    with pytest.raises(AgentError):
        unit_name(run_id)
