"""The training script: its arithmetic, its errors, and (where torch is) that it trains the same each time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rigctl.agent.scripts import train

SCRIPT = Path(train.__file__)
TORCH_PYTHON = os.environ.get("RIGCTL_TEST_TORCH_PYTHON") or ("" if train.TORCH_MISSING else sys.executable)
TINY: dict[str, Any] = {
    "device": "cpu",
    "model": "gpt_tiny",
    "seq_len": 32,
    "micro_batch": 2,
    "grad_accum": 2,
    "dtype": "fp32",
    "threads": 1,
    "warmup_steps": 1,
    "measured_steps": 5,
}
needs_torch = pytest.mark.skipif(not TORCH_PYTHON, reason="no torch here; set RIGCTL_TEST_TORCH_PYTHON")


def run(tmp_path: Path, training: dict[str, Any], python: str = sys.executable) -> tuple[int, dict[str, Any]]:
    out = tmp_path / "train.json"
    command = [python, "-W", "ignore", str(SCRIPT), "--training", json.dumps(training), "--out", str(out)]
    done = subprocess.run(command, capture_output=True, timeout=120, check=False)
    assert out.exists(), done.stderr.decode()
    assert not list(tmp_path.glob("*.part"))
    return done.returncode, json.loads(out.read_text())


def test_tflops_agree_with_the_published_figure() -> None:
    # GPT-2 medium at 1024: 17,408 tokens/s were published as 42.16 TFLOP/s.
    assert train.tflops(train.SHAPES["gpt2_medium"], 1024, 17_408) == pytest.approx(42.16, rel=0.001)


def test_per_layer_flops_are_attention_and_feed_forward() -> None:
    shape = train.Shape(layers=2, hidden=8, heads=2, vocab=10, dropout=0)
    assert train.forward_flops(shape, 4) == 2 * (4 * 8 * 16 + 8 * 4 * 64 + 16 * 4 * 64) + 2 * 4 * 8 * 10


@pytest.mark.skipif(not train.TORCH_MISSING, reason="torch is here")
def test_without_torch_it_says_what_to_do(tmp_path: Path) -> None:
    status, found = run(tmp_path, TINY)
    assert status == 1
    assert "torch cannot be imported" in found["error"]
    assert "rigctl provision" in found["hint"]


@pytest.mark.parametrize("changed", [{"model": "gpt5"}, {"model": None}])
def test_an_unknown_model_is_an_error(tmp_path: Path, changed: dict[str, Any]) -> None:
    status, found = run(tmp_path, TINY | changed, TORCH_PYTHON or sys.executable)
    assert status == 1
    assert found["hint"]


@needs_torch
def test_it_trains_the_same_each_time_and_learns(tmp_path: Path) -> None:
    (first, one), (second, two) = (run(tmp_path, TINY, TORCH_PYTHON) for _ in range(2))
    assert (first, second) == (0, 0)
    assert (one["loss_first"], one["loss_last"]) == (two["loss_first"], two["loss_last"])
    assert one["loss_last"] < one["loss_first"]
    assert len(one["step_tokens_per_s"]) == 5
    assert sorted(one["step_tokens_per_s"])[2] == one["tokens_per_s"]
    assert 3e6 < one["params"] < 4e6
    assert one["device"] == "cpu"
    assert one["peak_memory_mib"] is None
    assert one["tflops"] == pytest.approx(train.tflops(train.SHAPES["gpt_tiny"], 32, one["tokens_per_s"]))


@needs_torch
def test_bf16_trains_too(tmp_path: Path) -> None:
    status, found = run(tmp_path, TINY | {"dtype": "bf16"}, TORCH_PYTHON)
    assert status == 0, found
    assert found["loss_last"] < found["loss_first"]


@needs_torch
def test_a_device_that_is_not_there_is_never_replaced(tmp_path: Path) -> None:
    status, found = run(tmp_path, TINY | {"device": "cuda", "threads": None}, TORCH_PYTHON)
    if status == 0:
        assert found["device"] == "cuda"
    else:
        assert "cuda" in found["error"]
        assert found["hint"]
