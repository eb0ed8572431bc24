"""Copies between cards: what the script compares, what it says, and (where torch is) its own arithmetic on the CPU.

The cards are doubles at the boundary to CUDA: buffers of this process, which may arrive wrong as real ones do.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rigctl.agent.scripts import p2p
from rigctl.checks.p2p import same_bytes
from rigctl.measure.workloads import WORKLOADS
from rigctl.model.verdict import Verdict
from tests.checks import healthy as h

SCRIPT = Path(p2p.__file__)
TORCH_PYTHON = os.environ.get("RIGCTL_TEST_TORCH_PYTHON") or ("" if p2p.TORCH_MISSING else sys.executable)
needs_torch = pytest.mark.skipif(not TORCH_PYTHON, reason="no torch here; set RIGCTL_TEST_TORCH_PYTHON")
ASKED = {"cards": 2, "bytes": 64, "repeats": 3}


class Doubles:
    """Cards whose memory is a bytearray; `arrives` changes what a copy brings."""

    def __init__(self, count=2, arrives=None):
        self.count = count
        self.arrives = arrives or (lambda data: data)
        self.begun: list[Any] = []

    def access(self, one, other):
        return {one, other} != {0, 2}

    def pattern(self, card, words, seed):
        return bytearray(
            b"".join(((place + seed) * 2654435761 % 2**32).to_bytes(4, "little") for place in range(words))
        )

    def copy(self, source, target):
        self.begun.append((source, target))

    def wait(self):
        for source, target in self.begun:
            target[:] = self.arrives(bytes(source))
        self.begun.clear()

    def wrong_bytes(self, found, expected):
        return sum(a != b for a, b in zip(found, expected, strict=True))


def test_right_bytes_on_every_pair_both_ways():
    told = p2p.measure({**ASKED, "cards": 3}, Doubles(3))
    assert [pair["slots"] for pair in told["pairs"]] == [[1, 2], [1, 3], [2, 3]]
    assert [pair["access"] for pair in told["pairs"]] == [True, False, True]
    assert {pair["wrong_bytes"] for pair in told["pairs"]} == {0}
    # There, back, and both at once: four copies a turn, each compared, those of the warm-up too.
    assert {pair["compared_bytes"] for pair in told["pairs"]} == {4 * 64 * (p2p.WARMUP + 3)}
    assert all(min(pair["one_way_gb_per_s"]) > 0 and pair["both_ways_gb_per_s"] > 0 for pair in told["pairs"])


@pytest.mark.parametrize(
    "arrives",
    [lambda data: data[:-1] + bytes([data[-1] ^ 1]), lambda data: bytes(len(data)), lambda data: data[4:] + data[:4]],
    ids=["one bit", "zeros", "shifted by a word"],
)
def test_what_arrives_wrong_is_counted_and_fails(arrives):
    told = p2p.measure(ASKED, Doubles(arrives=arrives))
    assert told["pairs"][0]["wrong_bytes"] > 0
    (verdict,) = same_bytes(h.spec(), h.readings(logs=h.with_logs(p2p__json=json.dumps(told))))
    assert verdict.verdict is Verdict.FAIL


def test_a_copy_that_never_happens_is_found():
    cards = Doubles()
    cards.copy = lambda _source, _target: None
    assert p2p.measure(ASKED, cards)["pairs"][0]["wrong_bytes"] > 0


def test_fewer_cards_than_declared_are_an_error():
    with pytest.raises(p2p.P2pError, match="1 of 2 cards"):
        p2p.measure(ASKED, Doubles(1))


def test_the_plan_asks_for_every_card_of_the_rig():
    workload = next(one for one in WORKLOADS if one.name == "p2p")
    step = workload.step(h.spec(), h.facts())
    assert step["script"]["name"] == "p2p"
    assert step["script"]["python"] == "torch"
    assert step["script"]["arguments"]["cards"] == 2
    assert workload.expected_s(h.spec()) == 18
    assert workload.expected_s(h.spec(parts={"gpu_count": 1})) is None


def run(tmp_path, python=sys.executable):
    out = tmp_path / "p2p.json"
    command = [python, "-W", "ignore", str(SCRIPT), "--arguments", json.dumps(ASKED), "--out", str(out)]
    done = subprocess.run(command, capture_output=True, timeout=120, check=False)
    assert out.exists(), done.stderr.decode()
    assert not list(tmp_path.glob("*.part"))
    return done.returncode, json.loads(out.read_text())


def test_without_torch_or_cards_it_says_so_and_uses_nothing_else(tmp_path):
    status, told = run(tmp_path, TORCH_PYTHON or sys.executable)
    if "pairs" in told:
        pytest.skip("this machine has two cards")
    assert status == 1
    assert told["hint"]
    assert told["error"].startswith(("torch cannot be imported", "torch "))


ON_THE_CPU = """
import importlib.util, json, sys
spec = importlib.util.spec_from_file_location("p2p", sys.argv[1])
p2p = importlib.util.module_from_spec(spec)
sys.modules["p2p"] = p2p
spec.loader.exec_module(p2p)
import torch

class Cpu:
    count = 2
    flip = False
    def access(self, one, other): return True
    def pattern(self, card, words, seed): return p2p.pattern(torch.device("cpu"), words, seed)
    def copy(self, source, target):
        target.copy_(source)
        if self.flip: target[-1] ^= 256
    def wait(self): pass
    def wrong_bytes(self, found, expected): return p2p.wrong_bytes(found, expected)

asked = {"cards": 2, "bytes": 1 << 16, "repeats": 2}
well, cpu = p2p.measure(asked, Cpu()), Cpu()
cpu.flip = True
ill = p2p.measure(asked, cpu)
apart = p2p.wrong_bytes(p2p.pattern("cpu", 1 << 14, 1), p2p.pattern("cpu", 1 << 14, ~1))
print(json.dumps([well["pairs"][0]["wrong_bytes"], ill["pairs"][0]["wrong_bytes"], apart / (1 << 16)]))
"""


@needs_torch
def test_the_pattern_and_the_comparison_are_torchs_own(tmp_path):
    (tmp_path / "cpu.py").write_text(ON_THE_CPU)
    done = subprocess.run(
        [TORCH_PYTHON, "-W", "ignore", str(tmp_path / "cpu.py"), str(SCRIPT)],
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    well, ill, apart = json.loads(done.stdout.splitlines()[-1])
    assert well == 0
    assert ill == 4 * (p2p.WARMUP + 2)
    assert apart > 0.9
