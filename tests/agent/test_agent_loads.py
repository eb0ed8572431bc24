"""Loads as real processes: what they run, that they end for certain, and the order of the steps."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from rigctl.agent.decide import Stop
from rigctl.agent.errors import AgentError, ToolMissing
from rigctl.agent.loads import Command, Load, command_for, group_members
from rigctl.agent.places import Places
from rigctl.agent.plan import Plan, Step, parse_plan
from rigctl.agent.steps import Steps

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rigctl.agent.steps import RunningLoad

STUBBORN = "trap '' TERM; sleep 60 & sleep 60 & wait; wait"


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path / "spool", tmp_path / "run")


def plan_of(tmp_path: Path, steps: list[dict[str, Any]], expected: tuple[str, ...] = ("GPU-a",)) -> Plan:
    return parse_plan(
        json.dumps(
            {
                "run_id": "r1",
                "sample_hz": 10,
                "controller_lost_s": 60,
                "max_gpu_temp_c": 80,
                "stale_sample_s": 5,
                "expected_gpus": expected,
                "gpu_burn_dir": str(tmp_path / "burn"),
                "torch_venv": str(tmp_path / "venv"),
                "steps": steps,
            }
        )
    )


def run_load(tmp_path: Path, *argv: str, limit_s: float = 30) -> Load:
    return Load.start(Command("cpu", argv, tmp_path / "load.log"), limit_s)


def until_ended(load: Load, limit_s: float = 5) -> tuple[int, float]:
    began = time.monotonic()
    while time.monotonic() - began < limit_s:
        status = load.poll(time.monotonic())
        if status is not None:
            return status, time.monotonic() - began
        time.sleep(0.01)
    pytest.fail("the load did not end")


def executable(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_exit_status_and_output(tmp_path: Path) -> None:
    load = run_load(tmp_path, "sh", "-c", "echo out; echo err >&2; exit 3")
    assert until_ended(load)[0] == 3
    assert (tmp_path / "load.log").read_text() == "out\nerr\n"


def test_an_asked_load_ends_with_its_whole_family(tmp_path: Path) -> None:
    load = run_load(tmp_path, "sh", "-c", "sleep 60 & sleep 60 & wait")
    time.sleep(0.1)
    load.end(time.monotonic())
    status, seconds = until_ended(load)
    assert status == -signal.SIGTERM
    assert seconds < 0.4
    assert group_members(load.pid) == []


def test_a_stubborn_load_is_killed_within_a_second(tmp_path: Path) -> None:
    load = run_load(tmp_path, "sh", "-c", STUBBORN)
    time.sleep(0.2)
    load.end(time.monotonic())
    status, seconds = until_ended(load)
    assert status == -signal.SIGKILL
    assert seconds < 1
    assert group_members(load.pid) == []


def test_children_left_behind_are_killed(tmp_path: Path) -> None:
    load = run_load(tmp_path, "sh", "-c", "trap '' TERM; sleep 60 & exit 0")
    status, seconds = until_ended(load)
    assert status == 0
    assert seconds < 1
    assert group_members(load.pid) == []


def test_a_load_past_its_limit_is_killed(tmp_path: Path) -> None:
    load = run_load(tmp_path, "sleep", "60", limit_s=0.2)
    status, _ = until_ended(load)
    assert status == -signal.SIGTERM
    assert load.overran


def test_a_program_that_cannot_be_run_is_a_missing_tool(tmp_path: Path) -> None:
    with pytest.raises(ToolMissing):
        run_load(tmp_path, str(executable(tmp_path / "broken", "#!/nowhere/at/all\n")))


def test_a_load_inherits_no_notification_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", "/run/x")
    load = run_load(tmp_path, "env")
    until_ended(load)
    told = (tmp_path / "load.log").read_text()
    assert "NOTIFY_SOCKET" not in told
    assert "CUDA_DEVICE_ORDER=PCI_BUS_ID" in told


def test_gpu_burn_is_called_so_that_its_parser_understands(tmp_path: Path, places: Places) -> None:
    step = {"name": "all_burn", "seconds": 14.2, "loads": ["cpu", "gpu"]}
    executable(tmp_path / "burn" / "gpu_burn")
    (tmp_path / "burn" / "compare.fatbin").touch()
    plan = plan_of(tmp_path, [step])
    command = command_for("gpu", plan.steps[0], plan, places)
    assert command.argv == ("./gpu_burn", "-stts", "1", "-c", "compare.fatbin", "15")
    assert command.cwd == tmp_path / "burn"
    assert command.log.name == "all_burn.log"
    # The parser of gpu-burn looks for these anywhere in any argument.
    assert not [word for word in command.argv for trap in ("-h", "-l", "-d", "-tc") if trap in word]


def test_stress_ng_writes_its_figures_beside(tmp_path: Path, places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(executable(tmp_path / "bin" / "stress-ng").parent))
    plan = plan_of(
        tmp_path,
        [
            {"name": "cpu_burn", "seconds": 8, "loads": ["cpu"]},
            {"name": "all_burn", "seconds": 8, "loads": ["cpu", "gpu"]},
        ],
    )
    alone, together = (command_for("cpu", step, plan, places) for step in plan.steps)
    assert " ".join(alone.argv[1:]).startswith("--cpu 0 --cpu-method matrixprod --verify --metrics --yaml ")
    assert alone.argv[-2:] == ("-t", "8")
    assert alone.argv[-3].endswith("/r1/cpu_burn.yaml")
    assert together.argv[-3].endswith("/r1/all_burn_cpu.yaml")


def test_training_runs_the_carried_script_in_the_rigs_torch(tmp_path: Path, places: Places) -> None:
    python = executable(tmp_path / "venv" / "bin" / "python")
    training = {"device": "cpu", "model": "gpt_tiny"}
    plan = plan_of(tmp_path, [{"name": "train", "seconds": 60, "loads": ["train"], "training": training}], ())
    command = command_for("train", plan.steps[0], plan, places)
    assert command.argv[0] == str(python)
    assert command.argv[2:4] == (str(places.scripts("r1")), "train")
    assert "def measure" in (places.scripts("r1") / "scripts" / "train.py").read_text(encoding="utf-8")
    shown = subprocess.run(
        [sys.executable, *command.argv[2:4], "--help"], check=True, capture_output=True, text=True
    ).stdout
    assert "--training" in shown
    assert json.loads(command.argv[command.argv.index("--training") + 1]) == training
    assert command.argv[-1].endswith("/r1/train.json")


def script_step(**changes: Any) -> dict[str, Any]:
    script = {"name": "train", "python": "system", "arguments": {"a": 1}, "needs_cards": False}
    return {"name": "my_step", "seconds": 60, "loads": ["script"], "script": script | changes}


def test_a_script_is_run_by_the_python_it_asks_for_and_writes_what_its_step_is_called(
    tmp_path: Path, places: Places
) -> None:
    torch = executable(tmp_path / "venv" / "bin" / "python")
    plan = plan_of(tmp_path, [script_step(), script_step(python="torch")], ())
    system, other = (command_for("script", step, plan, places) for step in plan.steps)
    assert system.argv[0] == sys.executable
    assert other.argv[0] == str(torch)
    assert json.loads(system.argv[system.argv.index("--arguments") + 1]) == {"a": 1}
    assert system.argv[-1].endswith("/r1/my_step.json")
    assert system.log.name == "my_step.log"
    places.forget("r1")
    assert not places.scripts("r1").exists()


def test_a_script_that_the_agent_does_not_carry_or_that_needs_cards_that_are_not_there_is_refused(
    tmp_path: Path, places: Places
) -> None:
    plan = plan_of(tmp_path, [script_step(name="other"), script_step(needs_cards=True)], ())
    with pytest.raises(AgentError, match="no script 'other'"):
        command_for("script", plan.steps[0], plan, places)
    with pytest.raises(ToolMissing, match="no card can be watched"):
        command_for("script", plan.steps[1], plan, places)


@pytest.mark.parametrize(
    ("kind", "expected", "needs"),
    [("gpu", ("GPU-a",), "gpu_burn"), ("gpu", (), "gpu"), ("cpu", (), "stress_ng"), ("train", (), "torch")],
)
def test_what_a_step_needs_and_lacks_is_told_with_the_remedy(
    places: Places, monkeypatch: pytest.MonkeyPatch, kind: str, expected: tuple[str, ...], needs: str
) -> None:
    tmp_path = places.run_root.parent
    monkeypatch.setenv("PATH", str(tmp_path))
    step = {"name": "s", "seconds": 1, "loads": [kind], "training": {"device": "cpu"}}
    plan = plan_of(tmp_path, [step], expected)
    with pytest.raises(ToolMissing) as missing:
        command_for(kind, plan.steps[0], plan, places)
    assert missing.value.needs == needs
    assert missing.value.hint


def test_no_training_on_a_card_that_cannot_be_watched(tmp_path: Path, places: Places) -> None:
    executable(tmp_path / "venv" / "bin" / "python")
    step = {"name": "train", "seconds": 1, "loads": ["train"], "training": {"device": "cuda"}}
    plan = plan_of(tmp_path, [step], ())
    with pytest.raises(ToolMissing) as missing:
        command_for("train", plan.steps[0], plan, places)
    assert missing.value.needs == "gpu"


class Told:
    """A plan's steps with loads that are real processes, driven by hand."""

    def __init__(self, folder: Path, steps: list[Step], commands: dict[str, tuple[str, ...]]) -> None:
        self.folder = folder
        self.commands = commands
        self.events: list[tuple[str, str, dict[str, Any]]] = []
        self.loads: list[Load] = []
        self.steps = Steps(steps, self._start, self._say)

    def _start(self, kind: str, step: Step) -> tuple[RunningLoad, tuple[str, ...]]:
        if kind not in self.commands:
            raise ToolMissing(kind, f"no {kind}", "install it")
        load = Load.start(Command(kind, self.commands[kind], self.folder / f"{step.name}.log"), 30)
        self.loads.append(load)
        return load, self.commands[kind]

    def _say(self, event: str, step: str, **detail: Any) -> None:
        self.events.append((event, step, detail))

    def run(self, stop_after: tuple[str, Stop] | None = None, limit_s: float = 10) -> list[tuple[str, str]]:
        deadline = time.monotonic() + limit_s
        while not self.steps.finished:
            assert time.monotonic() < deadline, self.events
            now = time.monotonic()
            self.steps.tick(now)
            if stop_after and any(event == stop_after[0] for event, _, _ in self.events):
                self.steps.stop(stop_after[1], now)
            time.sleep(0.01)
        return [(event, step) for event, step, _ in self.events]


@pytest.fixture
def no_survivors() -> Iterator[list[Load]]:
    loads: list[Load] = []
    yield loads
    for load in loads:
        assert group_members(load.pid) == []


def test_steps_run_one_after_another_and_say_so(tmp_path: Path, no_survivors: list[Load]) -> None:
    steps = [Step("idle", 0.1, ()), Step("all_burn", 1, ("cpu", "gpu"))]
    told = Told(tmp_path, steps, {"cpu": ("sleep", "0.3"), "gpu": ("false",)})
    events = told.run()
    no_survivors += told.loads
    assert events[:4] == [
        ("step_started", "idle"),
        ("step_finished", "idle"),
        ("step_started", "all_burn"),
        ("load_started", "all_burn"),
    ]
    assert events[-1] == ("step_finished", "all_burn")
    exits = {d["load"]: d for event, _, d in told.events if event == "load_exited"}
    assert exits["gpu"]["exit_status"] == 1
    assert exits["cpu"]["exit_status"] == 0
    assert exits["cpu"]["seconds"] >= 0.3
    started = [d for event, _, d in told.events if event == "load_started"]
    assert started[0]["argv"] == ["sleep", "0.3"]
    assert started[0]["pid"] == told.loads[0].pid


def test_a_step_without_its_tool_is_an_error_and_the_others_go_on(tmp_path: Path, no_survivors: list[Load]) -> None:
    steps = [Step("all_burn", 1, ("cpu", "gpu")), Step("cpu_burn", 1, ("cpu",))]
    told = Told(tmp_path, steps, {"cpu": ("sleep", "0.2")})
    events = told.run()
    no_survivors += told.loads
    assert ("error", "all_burn") in events
    error = next(d for event, _, d in told.events if event == "error")
    assert (error["needs"], error["hint"]) == ("gpu", "install it")
    # What of the step had started already was ended, not left to burn alone.
    assert next(d for event, step, d in told.events if event == "load_exited")["exit_status"] == -signal.SIGTERM
    assert events[-1] == ("step_finished", "cpu_burn")


def test_a_stop_ends_the_load_at_once_and_skips_the_rest(tmp_path: Path, no_survivors: list[Load]) -> None:
    steps = [Step("gpu_burn", 60, ("gpu",)), Step("all_burn", 60, ("cpu", "gpu")), Step("train", 60, ("train",))]
    told = Told(tmp_path, steps, {"gpu": ("sh", "-c", STUBBORN), "cpu": ("sleep", "60")})
    began = time.monotonic()
    events = told.run(stop_after=("load_started", Stop("temperature", 91.0, 89.0, "°C", 2, "GPU-b")))
    no_survivors += told.loads
    assert time.monotonic() - began < 1.5
    assert events.count(("guard_stopped", "gpu_burn")) == 1
    assert [step for event, step in events if event == "step_skipped"] == ["all_burn", "train"]
    stop = next(d for event, _, d in told.events if event == "guard_stopped")
    assert stop == {"reason": "temperature", "found": 91.0, "limit": 89.0, "unit": "°C", "slot": 2, "uuid": "GPU-b"}
    assert len(told.loads) == 1


def test_a_load_that_resists_is_seen(tmp_path: Path) -> None:
    class Stuck:
        overran = False
        pid = os.getpid()
        asked_s = 0.0

        def poll(self, now_s: float) -> int | None:
            return None

        def end(self, now_s: float) -> None:
            self.asked_s = now_s

        def ending_for_s(self, now_s: float) -> float:
            return now_s - self.asked_s if self.asked_s else 0.0

    steps = Steps([Step("gpu_burn", 1, ("gpu",))], lambda _kind, _step: (Stuck(), ()), lambda *_a, **_k: None)
    steps.tick(1.0)
    assert steps.stuck_s(9.0) == 0
    steps.stop(Stop("asked", "x"), 10.0)
    assert steps.stuck_s(17.5) == 7.5
    assert not steps.finished
