"""The programs that measure what cards compute: their arithmetic on doubles, and (where torch is) tiny runs on the CPU.

The formulae are held against the published figures of `mli/transformers-benchmarks`, where the table is at hand.
"""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from rigctl.agent.loads import Load, command_for, group_members
from rigctl.agent.places import Places
from rigctl.agent.plan import parse_plan
from rigctl.agent.scripts import dcgm_diag, devices, gpu_memory, pacing, train, train_all, work
from rigctl.agent.scripts.patterns import Pattern, patterns, wrong_bytes
from rigctl.measure.workloads import WORKLOADS
from rigctl.model.peaks import PEAKS, mfu
from tests.checks import healthy as h

AGENT = Path(devices.__file__).parents[1]
TORCH_PYTHON = os.environ.get("RIGCTL_TEST_TORCH_PYTHON") or ("" if devices.TORCH_MISSING else sys.executable)
needs_torch = pytest.mark.skipif(not TORCH_PYTHON, reason="no torch here; set RIGCTL_TEST_TORCH_PYTHON")
TABLE = Path(__file__).parents[3] / "shared" / "data" / "mli_transformers_benchmarks.csv"
needs_table = pytest.mark.skipif(not TABLE.is_file(), reason="the table of published figures is not here")
TINY_TRAINING: dict[str, Any] = {
    "device": "cpu",
    "model": "gpt_tiny",
    "seq_len": 16,
    "micro_batch": 1,
    "grad_accum": 2,
    "dtype": "fp32",
    "threads": 1,
}
TRAIN_ALL: dict[str, Any] = {
    "ranks": 2,
    "limit_s": 100,
    "warmup_steps": 1,
    "measured_steps": 3,
    "repeat_steps": 2,
    "training": TINY_TRAINING,
}
COMPUTE: dict[str, Any] = {
    "device": "cpu",
    "threads": 1,
    "matmul_n": 32,
    "stream_mib": 1,
    "layer_batch": 2,
    "layer_seq_len": 8,
    "layer_hidden": 16,
    "layer_heads": 2,
    "block_s": 0.001,
    "blocks": 3,
    "warm_up_s": 0.02,
}
MEMORY: dict[str, Any] = {"device": "cpu", "threads": 1, "take_mib": 2, "share": 0.9, "block_mib": 1, "turns": 2}


def command(program: str, arguments: dict[str, Any], out: Path, python: str = sys.executable) -> list[str]:
    words = ["--arguments", json.dumps(arguments), "--out", str(out)]
    return [python, "-W", "ignore", "-m", f"scripts.{program}", *words]


def run(tmp_path: Path, program: str, arguments: dict[str, Any], python: str = "") -> tuple[int, dict[str, Any]]:
    out = tmp_path / f"{program}.json"
    argv = command(program, arguments, out, python or TORCH_PYTHON or sys.executable)
    environment = {**os.environ, "PYTHONPATH": str(AGENT)}
    done = subprocess.run(argv, capture_output=True, timeout=170, check=False, env=environment)
    assert out.exists(), done.stderr.decode()
    assert not list(tmp_path.glob("*.part"))
    return done.returncode, json.loads(out.read_text())


def published() -> list[dict[str, str]]:
    with TABLE.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


MODELS = {
    # name: layers, hidden, vocabulary, as Hugging Face's configurations have them
    "bert-large-uncased": (24, 1024, 30522),
    "gpt2-medium": (24, 1024, 50257),
}


@needs_table
def test_the_formulae_give_the_published_tflops_of_training():
    rates = {(row["metric"], row["params"]): float(row["value"]) for row in published() if row["unit"] == "samples/s"}
    held = 0
    for row in published():
        found = re.fullmatch(r"(\S+) seq=(\d+) gpus=(\d) b=\d+", row["params"])
        if row["unit"] != "TFLOPS/GPU" or not found or found[1] not in MODELS:
            continue
        seq_len, gpus = int(found[2]), int(found[3])
        passes = work.TRAIN_PASSES + ("ckpt" in row["metric"])
        flops = passes * work.model_flops(*MODELS[found[1]], seq_len) * rates[row["metric"], row["params"]] / gpus
        assert flops / work.TERA == pytest.approx(float(row["value"]), rel=0.01), row
        held += 1
    assert held >= 12


@needs_table
def test_the_formulae_give_the_published_bandwidth_of_a_vector():
    figures = {
        (row["metric"], row["params"]): float(row["value"]) for row in published() if row["group"] == "vector_mul"
    }
    for (metric, params), gb_per_s in figures.items():
        if metric != "bandwidth":
            continue
        elements = int(params.removeprefix("n="))
        seconds = work.streamed_bytes(elements, 4) / (gb_per_s * work.GIGA)
        # One operation an element; published to three decimals.
        assert elements / seconds / work.TERA == pytest.approx(figures["tflops", params], abs=0.0006)


@needs_table
def test_no_published_figure_is_beyond_the_dense_peaks():
    ti = PEAKS["NVIDIA GeForce RTX 3090 Ti"]
    rows = [row for row in published() if row["gpu"] == "RTX 3090 Ti" and row["group"] in ("matmul", "layer")]
    shares = {row["metric"]: mfu(float(row["value"]), "NVIDIA GeForce RTX 3090 Ti", row["metric"][:4]) for row in rows}
    assert max(share for share in shares.values() if share) < 1.06
    assert mfu(42.056, "NVIDIA GeForce RTX 3090 Ti", "fp32") == pytest.approx(1.0514)
    assert mfu(81.314, "NVIDIA GeForce RTX 3090 Ti", "fp16") == pytest.approx(1.0164, abs=1e-4)
    theory = {row["gpu"]: float(row["value"]) for row in published() if row["metric"] == "theory FP16"}
    # That table doubles the GeForce card's: FP16 accumulation.
    assert theory["RTX 3090 Ti"] == 2 * ti.fp16_tflops
    assert theory["A100"] == PEAKS["NVIDIA A100-SXM4-80GB"].fp16_tflops


def test_one_formula_for_training_and_for_the_rest():
    shape = train.SHAPES["gpt2_medium"]
    whole = work.model_flops(shape.layers, shape.hidden, shape.vocab, 1024)
    assert whole == train.forward_flops(shape, 1024)
    assert work.matmul_flops(8192) == 2 * 8192**3
    assert work.copied_bytes(1024, 4) == 4096
    assert mfu(1, "another card", "fp16") is None


class Clock:
    """A clock that moves by what each piece of work takes: the first ones longer, as clocks rise."""

    def __init__(self, seconds):
        self.seconds, self.now, self.pieces = seconds, 0.0, 0

    def work(self):
        self.now += self.seconds(self.pieces)
        self.pieces += 1

    def read(self):
        return self.now


PACE = pacing.Pace(block_s=0.1, blocks=5, warm_up_s=10)


def test_a_rate_is_measured_when_it_has_come_to_rest():
    clock = Clock(lambda piece: 0.01 * (1 + 2 * 0.9**piece))
    found = pacing.paced(clock.work, lambda: None, PACE, 3.0, clock.read)
    assert found["settled"]
    assert found["rate"] == pytest.approx(300, rel=0.02)
    assert len(found["blocks"]) == 5
    assert found["warm_up_s"] > 0.3


def test_a_rate_that_never_rests_says_so_after_the_time_for_warming_up():
    clock = Clock(lambda piece: 0.01 if piece // 15 % 2 else 0.02)
    found = pacing.paced(clock.work, lambda: None, PACE, 1.0, clock.read)
    assert not found["settled"]
    assert 10 <= found["warm_up_s"] < 12


def test_a_block_is_long_enough_whatever_one_piece_takes():
    for seconds in (1e-6, 0.01, 0.5):
        clock = Clock(lambda _piece, seconds=seconds: seconds)
        found = pacing.paced(clock.work, lambda: None, PACE, 1.0, clock.read)
        assert found["rate"] == pytest.approx(1 / seconds)


class Words:
    """Memory of plain lists; `stuck` holds bits of one word at 0, `alias` lets one write land elsewhere."""

    total_mib = 1.0

    def __init__(self, sizes=(6, 4), stuck=None, alias=None):
        self.sizes, self.stuck, self.alias = sizes, stuck or {}, alias or {}
        self.cells: dict[int, int] = {}

    def take(self, _share, _block_words):
        return list(range(len(self.sizes)))

    def words(self, block):
        return self.sizes[block]

    def fill(self, block, first, pattern):
        for place in range(first, first + self.sizes[block]):
            self.cells[self.alias.get(place, place)] = pattern.word(place)

    def read(self, place):
        return self.cells[self.alias.get(place, place)] & ~self.stuck.get(place, 0)

    def wrong(self, block, first, pattern):
        places = [p for p in range(first, first + self.sizes[block]) if self.read(p) != pattern.word(p)]
        return len(places), [(place, self.read(place)) for place in places]


ASKED = {"share": 0.9, "block_mib": 1, "turns": 32}


def test_memory_that_holds_has_no_wrong_word():
    told = gpu_memory.walk(Words(), ASKED)
    assert told["wrong_words"] == 0
    assert told["errors"] == []
    assert told["patterns"] == 68
    assert told["compared_bytes"] == 68 * 10 * 4


@pytest.mark.parametrize("bit", range(32))
def test_a_stuck_bit_is_found_wherever_it_is_and_located(bit):
    told = gpu_memory.walk(Words(stuck={7: 1 << bit}), ASKED)
    assert told["wrong_words"] > 0
    assert [number for number, count in enumerate(told["wrong_bits"]) if count] == [bit]
    assert {error["address"] for error in told["errors"]} == {28}
    first = told["errors"][0]
    assert int(first["expected"], 16) ^ int(first["found"], 16) == 1 << bit
    assert first["wrong_bytes"] == 1


def test_a_write_that_lands_elsewhere_is_found():
    told = gpu_memory.walk(Words(alias={9: 2}), ASKED)
    assert told["wrong_words"] > 0
    assert told["errors"][0]["pattern"] == "address in address"
    assert told["errors"][0]["address"] == 2 * 4


def test_no_free_memory_is_an_error():
    with pytest.raises(devices.ScriptError, match="no memory of the card is free"):
        gpu_memory.walk(Words(sizes=()), ASKED)


def test_walking_bits_put_each_bit_of_each_word_up_and_down():
    walking = [one for one in patterns(32) if one.kind == "walking"]
    for place in (0, 5, 31, 32):
        ones = {one.word(place) for one in walking if not one.inverted}
        assert ones == {1 << bit for bit in range(32)}
        assert {one.word(place) for one in walking if one.inverted} == {0xFFFFFFFF ^ word for word in ones}
    assert len(patterns(4)) == 4 + 8
    assert wrong_bytes(0x01020304, 0x01FF0304) == 1
    assert wrong_bytes(0, 0xFFFFFFFF) == 4
    assert Pattern("m", "mixed").word(1) != Pattern("m", "mixed").word(2)


def test_a_step_of_all_cards_lasts_as_long_as_on_the_slowest():
    ranks = [
        {"together": {"step_tokens_per_s": [100.0, 90.0, 80.0], "measured_mono_s": [5.0, 9.0]}},
        {"together": {"step_tokens_per_s": [70.0, 95.0, 99.0], "measured_mono_s": [4.5, 9.5]}},
    ]
    told = train_all.together(ranks)
    assert told["step_tokens_per_s"] == [140.0, 180.0, 160.0]
    assert told["tokens_per_s"] == 160.0
    assert told["measured_mono_s"] == [4.5, 9.5]


def test_the_plan_names_the_device_and_every_card():
    steps = {one.name: one.step(h.spec(), h.facts())["script"] for one in WORKLOADS if one.name != "train"}
    assert steps["compute"]["arguments"]["device"] == "cuda"
    assert steps["compute"]["arguments"]["cards"] == 2
    assert steps["compute"]["arguments"]["matmul_n"] == 8192
    assert steps["gpu_memory"]["arguments"] == {
        "device": "cuda",
        "cards": 2,
        "share": 0.9,
        "block_mib": 32,
        "turns": 32,
    }
    assert steps["train_all"]["arguments"]["ranks"] == 2
    assert steps["train_all"]["arguments"]["training"]["model"] == "gpt2_medium"
    assert "min_tokens_per_s" not in steps["train_all"]["arguments"]["training"]
    assert steps["dcgm"]["python"] == "system"
    assert all(steps[name]["needs_cards"] for name in ("compute", "gpu_memory", "train_all", "dcgm"))


def test_what_the_spec_does_not_ask_for_is_no_step():
    expected = {one.name: one.expected_s for one in WORKLOADS}
    bare, cpu = (
        h.spec(compute=None, training=None),
        h.spec(training=h.spec().training.model_copy(update={"device": "cpu"})),
    )
    assert expected["compute"](bare) is None
    assert expected["gpu_memory"](bare) is None
    assert expected["train_all"](bare) is None
    assert expected["train_all"](cpu) is None
    assert expected["train_all"](h.spec(parts={"gpu_count": 1})) is None
    assert expected["train_all"](h.spec()) == pytest.approx(2 * 15 + 1024 * 2 * 4 * 48 / 6702)
    assert expected["compute"](h.spec()) == 15 + 2 * 60
    on_cpu = h.spec(compute=h.spec().compute.model_copy(update={"device": "cpu", "threads": 2}))
    steps = {
        one.name: one.step(on_cpu, h.facts())["script"] for one in WORKLOADS if one.name in ("compute", "gpu_memory")
    }
    assert steps["gpu_memory"]["arguments"]["take_mib"] == 256
    assert steps["compute"]["arguments"]["threads"] == 2
    assert not steps["compute"]["needs_cards"]


@pytest.mark.parametrize("program", ["compute", "gpu_memory"])
def test_without_torch_or_cards_it_says_so_and_uses_nothing_else(tmp_path, program):
    status, told = run(tmp_path, program, {**COMPUTE, **MEMORY, "device": "cuda", "cards": 1})
    if status == 0:
        assert told["device"] == "cuda"
    else:
        assert told["hint"]
        assert "torch" in told["error"]


@pytest.mark.skipif(not devices.TORCH_MISSING, reason="torch is here")
def test_training_on_all_cards_without_torch_says_what_to_do(tmp_path):
    status, told = run(tmp_path, "train_all", TRAIN_ALL, sys.executable)
    assert status == 1
    assert "rigctl provision" in told["hint"]


def test_dcgm_that_is_not_installed_is_no_error(tmp_path):
    asked = {"program": "rigctl-no-such-dcgmi", "level": 2, "limit_s": 5}
    assert dcgm_diag.measure(asked) == {"installed": False}
    assert run(tmp_path, "dcgm_diag", asked, sys.executable) == (0, {"installed": False})


def stand_in(tmp_path: Path, text: str) -> str:
    program = tmp_path / "dcgmi"
    program.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    program.chmod(0o755)
    return str(program)


def test_dcgms_own_words_come_home_whatever_its_exit_status(tmp_path):
    program = stand_in(tmp_path, 'echo "{\\"asked\\": \\"$*\\"}"; echo trouble >&2; exit 226')
    told = dcgm_diag.measure({"program": program, "level": 2, "limit_s": 20})
    assert told["installed"] is True
    assert told["exit_status"] == 226
    assert json.loads(told["output"].splitlines()[0]) == {"asked": "diag -r 2 -j"}
    assert "trouble" in told["output"]


def test_dcgm_that_hangs_is_an_error(tmp_path):
    program = stand_in(tmp_path, "exec sleep 60")
    with pytest.raises(devices.ScriptError, match="did not end in"):
        dcgm_diag.measure({"program": program, "level": 2, "limit_s": 0.2})


def test_a_key_that_is_not_there_is_told():
    assert "no 'level'" in devices.told(dcgm_diag.measure, {"program": "sh", "limit_s": 1})["error"]


@needs_torch
def test_every_figure_is_measured_on_the_cpu(tmp_path):
    status, told = run(tmp_path, "compute", COMPUTE)
    assert status == 0, told
    (one,) = told["cards"]
    assert (told["device"], one["slot"], one["uuid"]) == ("cpu", None, None)
    assert set(one["figures"]) == {
        "matmul_fp32",
        "matmul_fp16",
        "matmul_bf16",
        "gpu_memory",
        "host_to_device",
        "device_to_host",
        "layer",
    }
    for figure in one["figures"].values():
        assert min(figure["blocks"]) <= figure["rate"] <= max(figure["blocks"])
        assert len(figure["blocks"]) == 3


@needs_torch
def test_the_memory_test_walks_the_cpus_memory(tmp_path):
    status, told = run(tmp_path, "gpu_memory", MEMORY)
    assert status == 0, told
    (one,) = told["cards"]
    assert one["wrong_words"] == 0
    assert one["tested_mib"] == pytest.approx(1.8, abs=0.05)


FLIPPED = """
import json, sys
import torch
from scripts import devices, gpu_memory
from scripts.patterns import patterns

one = devices.open_devices({"device": "cpu", "threads": 1})[0]
memory = gpu_memory.TorchMemory(one, 1)

class Bad(gpu_memory.TorchMemory):
    def fill(self, block, first, pattern):
        super().fill(block, first, pattern)
        if first > 0:
            block[5] &= ~(1 << 9)

bad = gpu_memory.walk(Bad(one, 1), {"share": 1.0, "block_mib": 0.5, "turns": 32})
block = torch.empty(40, dtype=torch.int32)
same = all(
    [int(word) & 0xFFFFFFFF for word in memory._expected(block, 70, pattern)] ==
    [pattern.word(70 + place) for place in range(40)]
    for pattern in patterns(32)
)
print(json.dumps([same, bad["wrong_words"], [bit for bit, n in enumerate(bad["wrong_bits"]) if n],
                  sorted({error["address"] for error in bad["errors"]})]))
"""


@needs_torch
def test_torchs_patterns_are_those_of_the_arithmetic_and_a_bad_bit_is_located(tmp_path):
    (tmp_path / "flipped.py").write_text(
        FLIPPED.replace('"block_mib": 0.5', '"block_mib": 1').replace("first > 0", "True")
    )
    argv = [TORCH_PYTHON, "-W", "ignore", str(tmp_path / "flipped.py")]
    environment = {**os.environ, "PYTHONPATH": str(AGENT)}
    done = subprocess.run(argv, capture_output=True, timeout=120, check=False, env=environment)
    assert done.returncode == 0, done.stderr.decode()
    same, wrong, bits, addresses = json.loads(done.stdout.splitlines()[-1])
    assert same
    assert wrong > 0
    assert bits == [9]
    assert addresses == [20]


@needs_torch
def test_two_processes_train_alone_and_together_under_torchrun(tmp_path):
    status, told = run(tmp_path, "train_all", TRAIN_ALL)
    assert status == 0, told
    assert told["ranks"] == 2
    assert told["weights_agree"] is True
    assert told["without_p2p"] is None
    first, second = told["alone"]
    assert first["losses"] == second["losses"]
    assert first["losses"][:2] == first["repeated_losses"]
    assert len(told["together"]["step_tokens_per_s"]) == 3
    begin, end = told["together"]["measured_mono_s"]
    assert 0 < end - begin < 100


@needs_torch
def test_one_card_trains_with_no_other(tmp_path):
    status, told = run(tmp_path, "train_all", {**TRAIN_ALL, "ranks": 1})
    assert (status, told["hint"]) == (1, "see topology.gpu_count")


@needs_torch
def test_no_worker_outlives_the_step_when_its_process_group_is_killed(tmp_path):
    endless = {**TRAIN_ALL, "measured_steps": 100_000}
    out = tmp_path / "train_all.json"
    environment = {**os.environ, "PYTHONPATH": str(AGENT), "RIGCTL_TEST": str(tmp_path)}
    process = subprocess.Popen(
        command("train_all", endless, out, TORCH_PYTHON),
        env=environment,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 120
        while len(workers(tmp_path)) < 2 and time.monotonic() < deadline:
            assert process.poll() is None
            select_briefly()
        assert len(workers(tmp_path)) == 2
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    deadline = time.monotonic() + 20
    while workers(tmp_path) and time.monotonic() < deadline:
        select_briefly()
    assert not workers(tmp_path)
    assert not group_members(process.pid)


def select_briefly() -> None:
    """Let others run for a moment between two looks."""
    signal.sigtimedwait([], 0.2)


def workers(tmp_path: Path) -> list[int]:
    """Workers of this test that have told the kernel to end them with their parent: they compute by then."""
    found = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            words = environ.read_bytes().split(b"\0")
        except OSError:
            continue
        own = f"RIGCTL_TEST={tmp_path}".encode() in words
        if own and any(word.startswith(b"LOCAL_RANK=") for word in words):
            found.append(int(environ.parent.name))
    return found


def taken_out(tmp_path: Path, program: str, python: str, arguments: dict[str, Any], venv: str) -> dict[str, Any]:
    """Run a program as the agent does: taken out of it, by its own words, in its plain environment."""
    plan = parse_plan(
        json.dumps(
            {
                "run_id": "r1",
                "sample_hz": 2,
                "controller_lost_s": 60,
                "max_gpu_temp_c": 80,
                "stale_sample_s": 5,
                "expected_gpus": [],
                "gpu_burn_dir": "/nowhere",
                "torch_venv": venv,
                "steps": [
                    {
                        "name": "a_step",
                        "seconds": 100,
                        "loads": ["script"],
                        "script": {"name": program, "python": python, "arguments": arguments, "needs_cards": False},
                    }
                ],
            }
        )
    )
    places = Places(tmp_path / "spool", tmp_path / "run")
    places.spool("r1").mkdir(parents=True)
    command = command_for("script", plan.steps[0], plan, places)
    load = Load.start(command, 100)
    deadline = time.monotonic() + 100
    while load.poll(time.monotonic()) is None and time.monotonic() < deadline:
        select_briefly()
    told: dict[str, Any] = json.loads((places.spool("r1") / "a_step.json").read_text())
    return told


def test_the_agent_runs_what_it_carries_by_the_rigs_own_python(tmp_path):
    asked = {"program": "rigctl-no-such-dcgmi", "level": 2, "limit_s": 5}
    assert taken_out(tmp_path, "dcgm_diag", "system", asked, "/nowhere") == {"installed": False}


@needs_torch
@pytest.mark.parametrize(
    ("program", "arguments"), [("compute", COMPUTE), ("gpu_memory", MEMORY), ("train_all", TRAIN_ALL)]
)
def test_the_agent_runs_what_it_carries_in_the_rigs_torch(tmp_path, program, arguments):
    told = taken_out(tmp_path, program, "torch", arguments, str(Path(TORCH_PYTHON).parents[1]))
    assert "error" not in told, told
    assert told["device"] == "cpu"
