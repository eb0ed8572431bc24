"""Carrying a night out with a program in the place of `rigctl accept`: who runs beside whom, who is tried again."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

import pytest

from rigctl.nightly import night as module
from rigctl.nightly.night import Night, NightRuns, only_one
from rigctl.nightly.planner import Wish
from tests.nightly.park import park

if TYPE_CHECKING:
    from pathlib import Path

    from rigctl.nightly.settings import Park

PROGRAM = """
import json, os, pathlib, signal, sys, time
folder = pathlib.Path(os.environ["NIGHT_TEST"])
rig, profile = sys.argv[2], sys.argv[4]
signal.signal(signal.SIGINT, lambda *_: os._exit(130))
with (folder / "log").open("a") as log:
    log.write(f"{rig} begins {profile} {' '.join(sys.argv[5:])}\\n")
how = (folder / rig).read_text() if (folder / rig).exists() else ""
if how == "long":
    (folder / "began").touch()
    time.sleep(60)
while how == "until" and not (folder / "go").exists():
    time.sleep(0.01)
busy = [{"name": rig, "rig_class": "x", "users": "job 7 of ann"}] if how == "busy" else []
if how == "busy":
    (folder / rig).write_text("")
with (folder / "log").open("a") as log:
    log.write(f"{rig} ends\\n")
if how != "silent":
    print(json.dumps({"run_id": f"run-{rig}", "busy": busy}))
sys.exit(1 if how in ("fails", "silent") else 0)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "runs").mkdir()
    monkeypatch.setenv("NIGHT_TEST", str(tmp_path))
    monkeypatch.setattr(module, "LOOK_S", 0.01)
    monkeypatch.setattr(module, "AGAIN_S", 0.05)
    return tmp_path


def night(folder: Path, known: Park) -> tuple[Night, list[str]]:
    said: list[str] = []
    program = (sys.executable, str(folder / "program.py"))
    return Night(known, folder / "runs", ("--runs", "x"), said.append, program=program), said


def wish(rig: str, circuit: str | None = None, seconds: float = 1.0) -> Wish:
    return Wish(rig, "standard", seconds, 1240, circuit)


def log(folder: Path) -> list[str]:
    return (folder / "log").read_text(encoding="utf-8").splitlines()


def test_every_rig_is_accepted_with_its_profile(folder: Path) -> None:
    one, said = night(folder, park("rig1", "rig2"))
    (folder / "rig2").write_text("fails")
    done = one.carry_out([wish("rig1"), wish("rig2")], 60)
    assert {(c.wish.rig, c.run_id, c.exit_code, c.why_not) for c in done} == {
        ("rig1", "run-rig1", 0, ""),
        ("rig2", "run-rig2", 1, ""),
    }
    assert "rig1 begins standard --json --runs x" in log(folder)
    assert "rig1: standard begins" in said
    assert not list((folder / "runs").iterdir())


def test_rigs_of_one_circuit_follow_each_other(folder: Path) -> None:
    circuits = {"rig1": ("b4", 2300.0), "rig2": ("b4", 2300.0)}
    one, _ = night(folder, park("rig1", "rig2", circuits=circuits))
    one.carry_out([wish("rig1", "b4"), wish("rig2", "b4")], 60)
    assert [line.split()[:2] for line in log(folder)] == [
        ["rig1", "begins"],
        ["rig1", "ends"],
        ["rig2", "begins"],
        ["rig2", "ends"],
    ]


def test_a_busy_rig_is_tried_again_or_left_out(folder: Path) -> None:
    (folder / "rig1").write_text("busy")
    one, said = night(folder, park("rig1"))
    (carried,) = one.carry_out([wish("rig1")], 60)
    assert (carried.run_id, carried.why_not) == ("run-rig1", "")
    assert any("busy (job 7 of ann); tried again" in line for line in said)
    (folder / "rig1").write_text("busy")
    one, _ = night(folder, park("rig1", busy="skip"))
    (carried,) = one.carry_out([wish("rig1")], 60)
    assert carried.why_not == "busy: job 7 of ann"


def test_an_acceptance_that_says_nothing_is_named(folder: Path) -> None:
    (folder / "rig1").write_text("silent")
    one, _ = night(folder, park("rig1"))
    (carried,) = one.carry_out([wish("rig1")], 60)
    assert (carried.run_id, carried.why_not) == (None, "rigctl accept ended with 1; its words are in the log")


def test_what_cannot_end_in_time_is_left_out(folder: Path) -> None:
    one, said = night(folder, park("rig1", "rig2"))
    done = one.carry_out([wish("rig1", seconds=61), wish("rig2")], 60)
    assert {(c.wish.rig, c.why_not) for c in done} == {("rig1", "no time is left in the window"), ("rig2", "")}
    assert "rig1: left out: no time is left in the window" in said


def test_the_window_s_end_stops_what_runs(folder: Path) -> None:
    (folder / "rig1").write_text("long")
    one, _ = night(folder, park("rig1"))
    moments = iter([0.0, 0.0, 0.0, 0.0])

    def clock() -> float:
        return next(moments, 1000.0 if (folder / "began").exists() else 1.0)

    one.clock = clock
    began = time.monotonic()
    (carried,) = one.carry_out([wish("rig1")], 60)
    assert time.monotonic() - began < 30
    assert (carried.run_id, carried.exit_code, carried.why_not) == (None, 130, "interrupted")


def test_an_interrupted_night_leaves_nothing_running(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "rig1").write_text("long")
    one, _ = night(folder, park("rig1"))

    class Impatient:
        """The clock of the night's module alone, in which somebody presses Ctrl-C."""

        monotonic = staticmethod(time.monotonic)

        @staticmethod
        def sleep(seconds: float) -> None:
            if (folder / "began").exists():
                raise KeyboardInterrupt
            time.sleep(seconds)

    monkeypatch.setattr(module, "time", Impatient)
    with pytest.raises(KeyboardInterrupt):
        one.carry_out([wish("rig1")], 60)
    assert one.running == []
    assert one.done[0].exit_code == 130


class Scheduler:
    """A drain with two looks at a job."""

    def __init__(self, foreign: str = "") -> None:
        self.asked: list[str] = []
        self.foreign = foreign
        self.jobs_left = [("job 7",), ()]

    def drain(self, reason: str) -> str:
        self.asked.append(f"drain {reason}")
        return self.foreign

    def jobs(self) -> tuple[str, ...]:
        return self.jobs_left.pop(0) if self.jobs_left else ()

    def resume(self, reason: str) -> bool:
        self.asked.append(f"resume {reason}")
        return True


@pytest.mark.parametrize(
    ("foreign", "asked"),
    [("", ["drain rigctl nightly", "resume rigctl nightly"]), ("maintenance by ann", ["drain rigctl nightly"])],
)
def test_a_rig_is_drained_waited_for_and_given_back(
    folder: Path, monkeypatch: pytest.MonkeyPatch, foreign: str, asked: list[str]
) -> None:
    scheduler = Scheduler(foreign)
    monkeypatch.setattr(Night, "_drain_of", lambda _self, _rig: scheduler)
    one, said = night(folder, park("rig1", busy="drain"))
    (carried,) = one.carry_out([wish("rig1")], 60)
    assert carried.run_id == "run-rig1"
    assert scheduler.asked == asked
    assert any("job 7" in line or "somebody else" in line for line in said)


def test_one_night_at_a_time(tmp_path: Path) -> None:
    with (
        only_one(tmp_path / "runs"),
        pytest.raises(NightRuns, match=f"process {os.getpid()}"),
        only_one(tmp_path / "runs"),
    ):
        pytest.fail("a second night began")
    with only_one(tmp_path / "runs"):
        assert (tmp_path / "runs" / module.LOCK).read_text(encoding="utf-8") == f"{os.getpid()}\n"
