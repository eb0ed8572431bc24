"""Training together with other rigs: two groups of processes meet on this machine, as two rigs do (where torch is)."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from rigctl.agent.scripts import devices, train_across

from .test_agent_computing import AGENT, TINY_TRAINING, TORCH_PYTHON, command, needs_torch

if TYPE_CHECKING:
    from pathlib import Path

HERE = "127.0.0.1"
RIGS = ("rig1", "rig2")


def arguments(rank: int, port: int, wait_s: int = 60) -> dict[str, Any]:
    meeting = {"rigs": RIGS, "rank": rank, "address": HERE, "port": port, "wait_s": wait_s}
    steps = {"warmup_steps": 1, "measured_steps": 3}
    return {"training": TINY_TRAINING, "ranks": 1, "limit_s": wait_s + 60, "across": meeting, **steps}


def free_port() -> int:
    with socket.socket() as one:
        one.bind((HERE, 0))
        port: int = one.getsockname()[1]
        return port


def start(folder: Path, asked: dict[str, Any], python: str) -> subprocess.Popen[bytes]:
    argv = command("train_across", asked, folder / f"{asked['across']['rank']}.json", python)
    return subprocess.Popen(argv, env={**os.environ, "PYTHONPATH": str(AGENT)}, stderr=subprocess.PIPE)


def told(folder: Path, rank: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / f"{rank}.json").read_text(encoding="utf-8"))
    return found


@needs_torch
def test_two_groups_train_together_and_each_tells_the_pace_of_both(tmp_path: Path) -> None:
    port = free_port()
    started = [start(tmp_path, arguments(rank, port), TORCH_PYTHON) for rank in (0, 1)]
    for one in started:
        _, words = one.communicate(timeout=170)
        assert one.returncode == 0, words.decode()
    first, second = told(tmp_path, 0), told(tmp_path, 1)
    for found in (first, second):
        assert (found["rigs"], found["ranks"], found["weights_agree"], found["interface"]) == (2, 2, True, "lo")
        assert len(found["together"]["step_tokens_per_s"]) == 3
    # Each step ends for both when the slower one has sent its gradients.
    assert first["together"]["tokens_per_s"] == pytest.approx(second["together"]["tokens_per_s"], rel=0.5)


@needs_torch
def test_one_that_waits_in_vain_names_whom_it_had_to_meet_and_where(tmp_path: Path) -> None:
    port = free_port()
    alone = start(tmp_path, arguments(0, port, wait_s=5), TORCH_PYTHON)
    alone.communicate(timeout=170)
    assert alone.returncode == 1
    found = told(tmp_path, 0)
    assert found["error"].startswith("training together with rig2 failed: ")
    assert f"{HERE} port {port}" in found["hint"]


@pytest.mark.skipif(not devices.TORCH_MISSING, reason="torch is here")
def test_without_torch_it_says_what_to_do(tmp_path: Path) -> None:
    one = start(tmp_path, arguments(0, 1), sys.executable)
    one.communicate(timeout=60)
    assert one.returncode == 1
    assert "rigctl provision" in told(tmp_path, 0)["hint"]


def test_the_interface_that_leads_to_an_address() -> None:
    assert train_across.interface_towards(HERE) == "lo"
    assert train_across.interface_towards("no.such.name.invalid") is None
    assert train_across.interface_towards("::1") is None
