"""The switched load: its timetable, its workers, and what it says when it cannot be run. No card is needed here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from rigctl.agent import commands, main
from rigctl.agent.errors import AgentError, Busy
from rigctl.agent.loads import command_for
from rigctl.agent.places import Places
from rigctl.agent.plan import Script, Step, parse_plan
from rigctl.agent.scripts import blas, switched
from rigctl.agent.scripts.blas import LoadError
from rigctl.agent.steps import Steps
from rigctl.measure.claim import Claim
from rigctl.measure.plan import build_plan, step_seconds
from rigctl.measure.switched import switched_step
from rigctl.model.switched import step_load_stages, wake_stages
from tests.checks import healthy as h

AGENT = Path(switched.__file__).parents[1]
NOBODY = {"cards": [], "torch_venv": "", "size": 8, "alone": False}
BLINK = {"name": "25 Hz", "on_s": 0.02, "off_s": 0.02, "times": 3}


class Pieces:
    """Work that takes a millisecond."""

    def __init__(self):
        self.began = []

    def once(self):
        self.began.append(time.monotonic())
        end = time.monotonic() + 0.001
        while time.monotonic() < end:
            pass

    def wrong(self):
        return 0

    def close(self):
        pass


def test_work_is_done_in_its_turns_only():
    work, begin = Pieces(), time.monotonic() + 0.02
    told = switched.turns(work, switched.Stage("10 Hz", 0.05, 0.05, 2), begin)
    assert told["done"] == len(work.began)
    within = [(at - begin) % 0.1 for at in work.began]
    assert min(work.began) >= begin
    # The first piece of a turn is always done, however late it begins.
    assert sum(offset < 0.05 for offset in within) >= len(within) - 2
    assert told["late_ms"] >= 0
    assert told["first_ms"] >= 1


def test_every_turn_does_one_piece_at_least():
    told = switched.turns(Pieces(), switched.Stage("late", 0.001, 0.0, 3), time.monotonic() - 5)
    assert told["done"] == 3
    assert told["late_ms"] > 4000


def test_the_processor_works_in_all_stages_and_opens_again_after_a_rest(capsys):
    rest = {"name": "wake 1", "on_s": 0.02, "off_s": 0, "times": 1, "rest_s": 0.01}
    told = switched.run({**NOBODY, "stages": [BLINK, rest]})
    assert [stage["name"] for stage in told["stages"]] == ["25 Hz", "wake 1"]
    for stage in told["stages"]:
        (cpu,) = stage["workers"]
        assert (cpu["what"], cpu["wrong"]) == ("cpu", 0)
        assert cpu["done"] >= stage["times"]
    assert capsys.readouterr().out.splitlines()[0] == "25 Hz: 3 x 0.02 s on, 0.02 s off"


def with_who(folder, monkeypatch, script):
    """Let `who` be this shell script."""
    (folder / "who").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "who").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo 'bob      pts/0        2026-11-30 20:00 (192.0.2.5)'", "somebody is logged in: bob pts/0 2026-11-30"),
        ("exit 1", "cannot be told"),
    ],
)
def test_nothing_begins_while_somebody_is_logged_in_or_nobody_can_tell(tmp_path, monkeypatch, script, words):
    with_who(tmp_path, monkeypatch, script)
    with pytest.raises(LoadError, match=words) as refused:
        switched.run({**NOBODY, "alone": True, "stages": [BLINK]})
    assert refused.value.hint
    assert switched.run({**NOBODY, "stages": [BLINK]})["stages"], "only what may take the rig down asks"


def test_nobody_logged_in_is_no_obstacle(tmp_path, monkeypatch):
    with_who(tmp_path, monkeypatch, "true")
    assert switched.run({**NOBODY, "alone": True, "stages": [BLINK]})["stages"]


def program(tmp_path, arguments):
    """Run the program as the agent runs it."""
    out = tmp_path / "step_load.json"
    command = [sys.executable, "-m", "scripts.switched", "--arguments", json.dumps(arguments), "--out", str(out)]
    done = subprocess.run(command, cwd=AGENT, capture_output=True, timeout=60, check=False)
    return done, json.loads(out.read_text(encoding="utf-8"))


def test_a_card_that_cannot_be_opened_is_named_and_nothing_is_left_running(tmp_path):
    cards = [{"slot": 2, "uuid": "GPU-00000000-0000-4000-8000-000000000000"}]
    done, told = program(tmp_path, {**NOBODY, "cards": cards, "stages": [BLINK]})
    assert done.returncode == 1
    assert told["what"] == "slot2"
    assert told["error"].startswith("slot2: ")
    assert told["hint"]


def test_the_program_ends_well(tmp_path):
    done, told = program(tmp_path, {**NOBODY, "stages": [BLINK]})
    assert (done.returncode, done.stderr) == (0, b"")
    assert told["stages"][0]["workers"]


def test_a_worker_that_hangs_or_dies_is_named():
    ours, theirs = switched.multiprocessing.Pipe()
    with pytest.raises(switched.WorkerError, match="slot1: did not come back"):
        switched._answer("slot1", ours, 0.01)
    theirs.close()
    with pytest.raises(switched.WorkerError, match="ended in the middle"):
        switched._answer("slot1", ours, 0.01)


def test_wrong_bytes_are_counted_one_by_one():
    good = bytes(range(256)) * 1024
    bad = bytearray(good)
    bad[7] ^= 1
    bad[200_000] ^= 255
    assert blas.wrong_bytes(good, good) == 0
    assert blas.wrong_bytes(bytes(bad), good) == 2


def test_numbers_are_of_one_size_and_all_different():
    raw = blas.numbers(4096)
    found = memoryview(raw).cast("f").tolist()
    assert all(0.5 <= abs(number) < 2 for number in found)
    assert len(set(found)) > 4000


def test_cublas_is_looked_for_by_name_in_the_toolkits_and_in_pytorch_s_environment(tmp_path):
    toolkit, venv = tmp_path / "cuda-12.4/lib64", tmp_path / "venv/lib/python3.10/site-packages/nvidia/cublas/lib"
    for folder, name in ((toolkit, "libcublas.so.12"), (venv, "libcublas.so.11")):
        folder.mkdir(parents=True)
        (folder / name).touch()
    found = blas.cublas_files(str(tmp_path / "venv"), (f"{tmp_path}/cuda-*/lib64",))
    assert found[:3] == list(blas.CUBLAS)
    assert found[3:] == [str(toolkit / "libcublas.so.12"), str(venv / "libcublas.so.11")]
    with pytest.raises(LoadError, match="cuBLAS cannot be loaded"):
        blas.load_cublas(found[3:])


def test_the_plan_asks_for_the_steps_last_and_the_agent_reads_them(tmp_path):
    plan = parse_plan(json.dumps(build_plan("run1", h.spec(), h.PROFILE, h.facts(), Claim())))
    wakes, steps = plan.steps[-2:]
    assert (wakes.name, steps.name) == ("idle_to_load", "step_load")
    assert steps.script is not None
    assert wakes.script is not None
    assert (steps.script.arguments["alone"], wakes.script.arguments["alone"]) == (True, False)
    assert steps.script.switches
    assert steps.script.arguments["cards"] == [{"slot": n + 1, "uuid": uuid} for n, uuid in enumerate(h.UUIDS)]
    assert len(steps.script.arguments["stages"]) == 6
    command = command_for("script", steps, plan, Places(tmp_path / "spool", tmp_path / "run"))
    assert command.argv[0] == sys.executable
    assert command.argv[3] == "switched"


def test_an_accepted_rig_is_stepped_only_where_the_profile_asks_always():
    once = h.PROFILE.model_copy(update={"step_load_only_first": True})
    assert "step_load" in step_seconds(h.spec(), once)
    assert "step_load" not in step_seconds(h.spec(), once, first=False)
    plan = build_plan("run1", h.spec(), once, h.facts(), Claim(), baseline=h.baseline())
    assert [step["name"] for step in plan["steps"]][-1] == "idle_to_load"


def test_while_cards_are_switched_no_temperature_is_carried_on():
    class Runs:
        pid, overran, ends = 1, False, False

        def poll(self, now_s):
            return 0 if now_s > 5 else None

    script = Script("switched", "system", {}, needs_cards=True, switches=True)
    steps = Steps(
        [Step("step_load", 9, ("script",), script=script), Step("idle", 1, ())],
        lambda _kind, _step: (Runs(), ()),
        lambda *_words, **_detail: None,
    )
    assert not steps.switches
    steps.tick(1.0)
    assert steps.switches
    steps.tick(6.0)
    assert not steps.switches


def test_a_refusal_because_of_somebody_is_told_apart_from_what_is_broken(capsys, monkeypatch):
    for error, busy in ((Busy("the rig is in use: bob", "ask bob"), True), (AgentError("no systemd"), False)):
        monkeypatch.setattr(commands, "probes", partial(fail_with, error))
        assert main.main(["probes"]) == 1
        assert json.loads(capsys.readouterr().out)["busy"] is busy


def fail_with(error):
    raise error


def test_the_limit_of_a_step_is_more_than_its_stages_take():
    for name, stages in (("step_load", step_load_stages(h.PROFILE)), ("idle_to_load", wake_stages(h.PROFILE))):
        step = switched_step(name, stages, h.spec(), h.facts())
        assert step["seconds"] > sum(stage.seconds for stage in stages) + 60
