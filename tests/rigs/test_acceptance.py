"""Acceptance as an operator sees it: healthy rigs pass, each fault is named on the right rig, the other rig passes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time

import pytest

from rigctl.sim import faults

from .conftest import RIGCTL, Accepted, Fleet

pytestmark = [pytest.mark.rigs, pytest.mark.timeout(600, func_only=True)]


def assert_well(accepted: Accepted, rig: str) -> None:
    assert accepted.of(rig, "fail", "error", "warn") == {}


def test_without_a_fault_both_rigs_pass(fleet: Fleet):
    accepted = fleet.accept("whole")
    assert_well(accepted, "rig1")
    assert_well(accepted, "rig2")
    assert accepted.exit_code == 0
    for rig in ("rig1", "rig2"):
        judged = accepted.of(rig, "pass")
        assert "throughput.training[rig]" in judged
        assert "power.wall[all_burn]" in judged
        blind = {v["check"] for v in accepted.of(rig, "blind").values()}
        assert {"thermals.hotspot_temp", "thermals.memory_temp"} <= blind
        assert not blind & {"thermals.settled_gpu_temp", "thermals.resistance", "thermals.fans", "power.wall"}
    assert (accepted.run / "report.html").stat().st_size > 100_000
    assert (accepted.run / "junit.xml").is_file()


@pytest.mark.parametrize(
    ("fault", "parameters", "causes", "exit_code"),
    [
        ("card_missing", {}, {"topology.gpu_count"}, 1),
        ("nv3", {}, {"topology.nvlink"}, 1),
        # tests/house/test_main_job.py shows the same fault in every run of the suite.
        pytest.param("burn_errors", {}, {"throughput.gpu_burn"}, 1, marks=pytest.mark.slow),
        ("wall_meter_offline", {}, {"power.wall"}, 3),
        ("driver_library_mismatch", {}, {"software.driver_version"}, 1),
    ],
)
def test_a_fault_is_named_on_its_rig_and_the_other_passes(fleet: Fleet, fault, parameters, causes, exit_code):
    faults.apply(fleet.state.directory, "rig2", fault, parameters)
    accepted = fleet.accept("burn")
    assert accepted.causes("rig2") == causes
    assert_well(accepted, "rig1")
    assert accepted.exit_code == exit_code
    record = (accepted.run / "record.json").read_bytes()
    fleet.rigctl("judge", accepted.run.name, "--runs", str(fleet.runs))
    assert (accepted.run / "record.json").read_bytes() == record


def test_a_dead_pump_ends_its_burn_early_and_is_the_cause_of_what_follows(fleet: Fleet):
    faults.apply(fleet.state.directory, "rig2", "pump_dead", {})
    accepted = fleet.accept("burn")
    assert accepted.exit_code == 1
    assert_well(accepted, "rig1")
    assert accepted.causes("rig2") <= {"thermals.guard", "thermals.settled_gpu_temp", "thermals.throttle"}
    assert "thermals.guard" in {v["check"] for v in accepted.of("rig2", "fail").values()}
    events = [json.loads(line) for line in (accepted.run / "rig2" / "events.jsonl").read_text().splitlines()]
    stopped = next(e for e in events if e["event"] == "guard_stopped")
    assert stopped["detail"]["reason"] == "temperature"
    started = next(e for e in events if e["event"] == "load_started")
    assert stopped["t_mono_s"] - started["t_mono_s"] < 20


def test_ssh_down_for_20_s_in_the_burn_loses_no_sample(fleet: Fleet):
    faults.apply(fleet.state.directory, "rig2", "ssh_down", {"seconds": "20", "when": "load"})
    accepted = fleet.accept("burn")
    assert_well(accepted, "rig1")
    assert_well(accepted, "rig2")
    assert accepted.exit_code == 0
    assert any("cut" in note for note in accepted.notes("rig2"))
    assert not any("cut" in note for note in accepted.notes("rig1"))


def burning(fleet: Fleet) -> bool:
    words = ["ssh", "-F", str(fleet.state.ssh_config), "rig1", "pgrep -x gpu_burn"]
    return subprocess.run(words, capture_output=True, check=False, stdin=subprocess.DEVNULL).returncode == 0


def wait_for(what, timeout_s: float) -> float:
    begun = time.monotonic()
    while not what():
        assert time.monotonic() - begun < timeout_s, f"did not happen within {timeout_s} s"
        time.sleep(0.2)
    return time.monotonic() - begun


def test_the_burn_ends_within_15_s_of_its_controllers_death(fleet: Fleet):
    words = ["accept", "rig1", "-i", str(fleet.state.inventory), "--runs", str(fleet.runs), "--profile", "long"]
    controller = subprocess.Popen(
        [RIGCTL, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL
    )
    try:
        wait_for(lambda: burning(fleet), 30)
        time.sleep(5)
    finally:
        os.kill(controller.pid, signal.SIGKILL)
        controller.wait()
    stopped_after = wait_for(lambda: not burning(fleet), 15)
    assert stopped_after > 3, "the guard must wait for controller_lost_s"
    run = next(path for path in fleet.runs.iterdir() if path.name.startswith("20"))
    samples = [json.loads(line) for line in (run / "rig1" / "telemetry.jsonl").read_text().splitlines()]
    # A burn begins with a ramp, whose samples are called so.
    assert len([s for s in samples if s["step"] in ("ramp", "gpu_burn")]) >= 12
    assert [s["seq"] for s in samples] == list(range(samples[0]["seq"], samples[0]["seq"] + len(samples)))
