"""The main job as a newcomer meets it: `rigctl demo` with a broken card, and the wheel looking at the same rigs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from .test_wheel import installed, run, wheel  # noqa: F401 - fixtures

pytestmark = [pytest.mark.rigs, pytest.mark.timeout(900)]
RIGCTL = Path(sys.executable).parent / "rigctl"


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """A demo in which rig2's second card computes wrongly; its rigs are kept for the tests and then taken down."""
    folder = tmp_path_factory.mktemp("demo")
    state, runs = folder / "state", folder / "runs"
    words = ["demo", "--fault", "burn_errors", "--keep", "--state", str(state), "--runs", str(runs)]
    try:
        done = subprocess.run([RIGCTL, *words], capture_output=True, text=True, check=False, cwd=folder)
        yield SimpleNamespace(done=done, state=state, runs=runs, folder=folder)
    finally:
        subprocess.run([RIGCTL, "sim", "down", "--state", str(state)], capture_output=True, check=True)
        assert containers(state) == []


def containers(state):
    label = f"label=rigctl.sim.state={state}"
    listed = subprocess.run(["podman", "ps", "-aq", "--filter", label], capture_output=True, text=True, check=True)
    return listed.stdout.split()


def report_of(demo):
    return Path(demo.done.stdout.splitlines()[-1])


def test_it_fails_and_prints_the_reports_path_last(demo):
    assert demo.done.returncode == 1, demo.done.stdout + demo.done.stderr
    assert report_of(demo).is_file()
    assert "throughput.gpu_burn" in report_of(demo).read_text(encoding="utf-8")


def test_the_right_check_fails_on_the_right_rig(demo):
    record = json.loads((report_of(demo).parent / "record.json").read_text(encoding="utf-8"))
    failed = {rig["name"]: {v["check"] for v in rig["verdicts"] if v["verdict"] == "fail"} for rig in record["rigs"]}
    assert failed == {"rig1": set(), "rig2": {"throughput.gpu_burn"}}
    errors = [v for rig in record["rigs"] for v in rig["verdicts"] if v["verdict"] == "error"]
    assert errors == []
    assert all(rig["simulated"] for rig in record["rigs"])


def test_judged_again_offline_it_is_the_same_byte_for_byte(demo):
    path = report_of(demo).parent / "record.json"
    before = path.read_bytes()
    words = [RIGCTL, "judge", path.parent.name, "--runs", str(demo.runs)]
    assert subprocess.run(words, capture_output=True, check=False).returncode == 1
    assert path.read_bytes() == before


def test_the_wheel_looks_at_these_rigs(demo, installed, tmp_path):  # noqa: F811 - the fixture
    done = run(installed, "rigctl", "check", "-i", str(demo.state / "inventory"), "--json", cwd=tmp_path, expect=0)
    assert [rig["name"] for rig in json.loads(done.stdout)["rigs"]] == ["rig1", "rig2"]
