"""A controller that is killed outright in the middle of an acceptance, and one that leaves the rigs to themselves."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from .conftest import RIGCTL, Accepted, Fleet

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.rigs, pytest.mark.timeout(300, func_only=True)]
RIGS = ("rig1", "rig2")
STEPS = ["idle", "cpu_burn", "gpu_burn", "all_burn"]
LOST_S = 10
"""controller_lost_s of the profile."""
AT_WORK = "pgrep -x gpu_burn; pgrep -x stress-ng; systemctl list-units --plain --no-legend 'rigctl-*.service'"


def events(run: Path, rig: str) -> list[dict]:
    path = run / rig / "events.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def killed(fleet: Fleet, at: str) -> Path:
    """A run whose controller was killed when both rigs were at that step."""
    words = ["accept", "-i", str(fleet.state.inventory), "--runs", str(fleet.runs), "--profile", "short"]
    with (fleet.runs / "killed.log").open("wb") as log:
        controller = subprocess.Popen([RIGCTL, *words], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 120
        while not (run := next((path.parent for path in fleet.runs.glob("*/run.json")), None)) or not all(
            any(one["event"] == "load_started" and one["step"] == at for one in events(run, rig)) for rig in RIGS
        ):
            assert time.monotonic() < deadline, f"never at {at}"
            time.sleep(0.2)
    finally:
        controller.send_signal(signal.SIGKILL)
        controller.wait()
    return run


def at_work(fleet: Fleet, rig: str) -> str:
    """Loads and guards on a rig; empty where there are none."""
    asked = ["ssh", "-F", fleet.state.ssh_config, rig, AT_WORK]
    return subprocess.run(asked, capture_output=True, text=True, check=False, timeout=30).stdout


def resumed(fleet: Fleet, run: Path) -> Accepted:
    done = fleet.rigctl("accept", "--resume", run.name, "--runs", str(fleet.runs), "--json")
    assert done.stdout, done.stderr
    return Accepted(done.returncode, json.loads(done.stdout), fleet.runs, done.stderr)


@pytest.mark.parametrize(("at", "pause_s", "again"), [("cpu_burn", 0, False), ("gpu_burn", LOST_S + 5, True)])
def test_killed_in_the_middle_it_is_finished_by_another_one(fleet: Fleet, at, pause_s, again):
    run = killed(fleet, at)
    time.sleep(pause_s)
    where = ("-i", str(fleet.state.inventory), "--runs", str(fleet.runs))
    said = fleet.rigctl("accept", "rig2", *where, "--profile", "there-is-no-such")
    assert said.returncode == 2
    assert f"acceptance {run.name} was left in the middle: rig1 was at {at}" in " ".join(said.stderr.split())
    accepted = resumed(fleet, run)
    assert accepted.exit_code == 0, accepted.record
    for rig in RIGS:
        assert accepted.of(rig, "fail", "error", "warn") == {}
        assert [one["step"] for one in events(run, rig) if one["event"] == "step_finished"] == STEPS
        assert (run / rig / "set_aside").is_dir() is again
        (record,) = (one for one in accepted.record["rigs"] if one["name"] == rig)
        assert any("its controller was gone" in note for note in record["notes"])
        assert any(f"{at} was done again" in note for note in record["notes"]) is again
        assert at_work(fleet, rig) == ""


def test_left_to_themselves_the_rigs_go_on_beyond_any_silence_and_are_collected(fleet: Fleet):
    inventory, runs = str(fleet.state.inventory), str(fleet.runs)
    begun = fleet.rigctl("accept", "-i", inventory, "--runs", runs, "--profile", "short", "--detach", "--json")
    assert begun.returncode == 0, begun.stderr
    run = fleet.runs / json.loads(begun.stdout)["run_id"]
    time.sleep(LOST_S + 5)
    done = fleet.rigctl("collect", run.name, "--runs", runs, "--json")
    accepted = Accepted(done.returncode, json.loads(done.stdout), fleet.runs, done.stderr)
    assert accepted.exit_code == 0, accepted.record
    for rig in RIGS:
        told = events(run, rig)
        assert [one["step"] for one in told if one["event"] == "step_finished"] == STEPS
        assert not any(one["event"] == "guard_stopped" for one in told)
        assert at_work(fleet, rig) == ""
