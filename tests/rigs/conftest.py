"""Two provisioned simulated rigs for this folder's tests: provisioned once, kept as an image, started from it."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from rigctl import sim
from rigctl.sim import faults, snapshot
from rigctl.sim.rigs import wait_ready

RIGCTL = Path(sys.executable).parent / "rigctl"
ROOT = Path(__file__).parents[2]
PROVISION_S = 2400
"""Two to three minutes on a machine with nothing else to do; the tests' own limits leave it out."""
PROFILES = {
    name: {
        "idle_seconds": 3,
        "cpu_burn_seconds": cpu,
        "gpu_burn_seconds": gpu,
        "all_burn_seconds": both,
        "train": train,
        "sample_hz": 4,
        "controller_lost_s": lost,
    }
    for name, (cpu, gpu, both, train, lost) in {
        "whole": (4, 20, 8, True, 60),
        "burn": (0, 20, 6, False, 60),
        "long": (0, 60, 0, False, 10),
        "rest": (0, 0, 0, False, 60),
        "settle": (0, 30, 0, False, 60),
        "short": (4, 20, 6, False, 10),
    }.items()
}


@dataclass(frozen=True)
class Fleet:
    """Provisioned simulated rigs, used through the command line as an operator does."""

    state: sim.State
    runs: Path

    def rigctl(self, *words: str, timeout_s: float = 400) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [RIGCTL, *words],
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
            cwd=self.runs,
            stdin=subprocess.DEVNULL,
        )

    def accept(self, profile: str, *words: str, timeout_s: float = 400) -> Accepted:
        where = ("-i", str(self.state.inventory), "--runs", str(self.runs))
        done = self.rigctl("accept", *words, *where, "--profile", profile, "--json", timeout_s=timeout_s)
        assert done.stdout, done.stderr
        return Accepted(done.returncode, json.loads(done.stdout), self.runs, done.stderr)


@dataclass(frozen=True)
class Accepted:
    """What an acceptance said."""

    exit_code: int
    record: dict
    runs: Path
    words: str

    @property
    def run(self) -> Path:
        return self.runs / self.record["run_id"]

    def of(self, rig: str, *verdicts: str) -> dict[str, dict]:
        """The rig's verdicts of these kinds, by check and subject."""
        found = next(one for one in self.record["rigs"] if one["name"] == rig)["verdicts"]
        return {f"{v['check']}[{v['subject']}]": v for v in found if v["verdict"] in verdicts}

    def causes(self, rig: str) -> set[str]:
        """The checks that failed or could not be made, those that follow from another left out."""
        return {v["check"] for v in self.of(rig, "fail", "error").values() if v["caused_by"] is None}

    def notes(self, rig: str) -> list[str]:
        return next(one for one in self.record["rigs"] if one["name"] == rig)["notes"]


def _key() -> str:
    """What a provisioned rig's contents follow from: roles, playbooks and the simulation itself."""
    digest = hashlib.sha256()
    for folder in ("roles", "playbooks", "inventory", "rigctl/sim"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                digest.update(str(path.relative_to(ROOT)).encode() + path.read_bytes())
    return digest.hexdigest()


@pytest.fixture(scope="session")
def provisioned(tmp_path_factory) -> str:
    """The image of a rig that site.yml was applied to."""
    known = snapshot.find(_key())
    if known is not None:
        return known
    folder = tmp_path_factory.mktemp("provision")
    state = sim.up(sim.UpOptions(count=1, directory=folder / "state"))
    try:
        words = [RIGCTL, "provision", "-i", str(state.inventory), "--runs", str(folder)]
        done = subprocess.run(
            words, capture_output=True, text=True, check=False, timeout=PROVISION_S, stdin=subprocess.DEVNULL
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return snapshot.take(state, "rig1", _key())
    finally:
        sim.down(state.directory)


@pytest.fixture(scope="session")
def running(provisioned, tmp_path_factory):
    """Two rigs that run for as long as the tests do."""
    folder = tmp_path_factory.mktemp("fleet")
    state = sim.up(sim.UpOptions(count=2, directory=folder / "state", image=provisioned))
    profiles = state.inventory / "group_vars" / "all" / "tests.yml"
    profiles.write_text(yaml.safe_dump({"rig_profiles": PROFILES}), encoding="utf-8")
    yield state
    sim.down(state.directory)


@pytest.fixture
def fleet(running, tmp_path):
    """The running rigs, without any fault before and after a test."""
    yield Fleet(running, tmp_path)
    for rig in running.rigs:
        faults.clear(running.directory, rig.name)
        wait_ready(running, rig)
