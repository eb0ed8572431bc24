"""A simulated rig of a class that knows little: provisioned, accepted, learned from, accepted by what was learned."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from rigctl import sim
from rigctl.errors import ExitCode
from rigctl.model.verdict import Verdict
from rigctl.store import RunDir

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rigctl.model.verdict import CheckVerdict

RIGCTL = Path(sys.executable).parent / "rigctl"
RIG_CLASS = "octo_h100"
LINKS = 18
PROFILE = {
    "idle_seconds": 6,
    "cpu_burn_seconds": 4,
    "gpu_burn_seconds": 30,
    "all_burn_seconds": 8,
    "train": False,
    "sample_hz": 2,
}
NO_TORCH = "software.torch"
"""The rig is brought up without PyTorch, which takes minutes; its check says so."""


@pytest.fixture(scope="module")
def park(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The inventory of one provisioned rig."""
    folder = tmp_path_factory.mktemp("class")
    # At scale 20 the whole heat of a card that begins late comes within a second, which the guard takes for a fault.
    options = sim.UpOptions(
        count=1, rig_class=RIG_CLASS, archive="2026", time_scale=5, directory=folder / "state", training=False
    )
    try:
        state = sim.up(options)
        extra = state.inventory / "group_vars" / "all" / "tests.yml"
        extra.write_text(yaml.safe_dump({"rig_profiles": {"burn": PROFILE}}), encoding="utf-8")
        roles = "nvidia_driver,cuda,gpu_burn,cpu_burn"
        done = rigctl(folder, "provision", "-i", str(state.inventory), "--tags", roles)
        assert done.returncode == 0, done.stdout + done.stderr
        yield state.inventory
    finally:
        sim.down(options.directory)


def rigctl(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [RIGCTL, *words, "--runs", str(folder / "runs")]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=900, stdin=subprocess.DEVNULL)


def accept(folder: Path, park: Path) -> list[CheckVerdict]:
    """Accept the rig; its verdicts."""
    done = rigctl(folder, "accept", "-i", str(park), "--profile", "burn")
    assert done.returncode == ExitCode.UNMEASURED, done.stdout + done.stderr
    (rig,) = RunDir.open(folder / "runs", "latest", kind="accept").read_record().rigs
    assert rig.simulated
    assert {v.check for v in rig.verdicts if v.verdict in (Verdict.FAIL, Verdict.ERROR)} == {NO_TORCH}
    return list(rig.verdicts)


def without_limit(verdicts: list[CheckVerdict]) -> set[str]:
    """The checks that had no limit to judge by."""
    return {v.check for v in verdicts if v.reason.endswith("the spec sets no limit for it yet")}


@pytest.mark.rigs
@pytest.mark.slow
def test_a_class_is_learned_from_a_rig_and_met_by_it(park: Path, tmp_path: Path) -> None:
    first = accept(tmp_path, park)
    unknown = {"thermals.settled_gpu_temp", "power.share_of_limit", "throughput.burn_gflops"}
    assert unknown <= without_limit(first)
    assert {v.verdict for v in first if v.check == "topology.nvlink"} == {Verdict.PASS}

    refused = rigctl(tmp_path, "spec", "learn", "rig1")
    assert refused.returncode == ExitCode.UNMEASURED
    assert NO_TORCH in refused.stderr
    learned = rigctl(tmp_path, "spec", "learn", "rig1", "--despite", NO_TORCH)
    assert learned.returncode == 0, learned.stderr
    written = park / "group_vars" / f"class_{RIG_CLASS}" / "spec.yml"
    written.write_text(learned.stdout, encoding="utf-8")
    assert yaml.safe_load(learned.stdout)["rig_spec"]["parts"]["nvswitch_links"] == LINKS

    second = accept(tmp_path, park)
    assert without_limit(second) == set()
    assert {v.verdict for v in second if v.check in {*unknown, "power.wall", "thermals.cpu_temp"}} == {Verdict.PASS}
