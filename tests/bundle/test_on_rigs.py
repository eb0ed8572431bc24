"""A bundle made through a simulated rig, and the same rig provisioned from it when it reaches nothing but SSH."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rigctl import sim
from tests.failures.box import RIGCTL, Box

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.rigs, pytest.mark.slow]

CUT_OFF = Path(__file__).parents[2] / "molecule/resources/cut_off.sh"
PROVISION_S = 1800
KILLED_AFTER = 20
"""So many packages are there when the first filling is killed."""


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    directory = tmp_path_factory.mktemp("offline") / "state"
    found = sim.up(sim.UpOptions(count=1, directory=directory))
    try:
        yield Box(found)
    finally:
        sim.down(directory)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("disk") / "bundle"


def words(box: Box, folder: Path, *options: str) -> list[str]:
    return [str(RIGCTL), "bundle", str(folder), "-i", str(box.fleet.inventory), *options]


def fill(box: Box, folder: Path, *options: str):
    done = subprocess.run(
        words(box, folder, "--json", *options), capture_output=True, text=True, check=False, timeout=PROVISION_S
    )
    return done.returncode, json.loads(done.stdout) if done.stdout else done.stderr


def spoilt(folder: Path, name: str) -> Path:
    """A copy of the bundle, for spoiling."""
    return Path(shutil.copytree(folder, folder.parent / name, copy_function=os.link, dirs_exist_ok=True))


def replaced(path: Path, data: bytes) -> None:
    path.unlink()
    path.write_bytes(data)


def state_of(box: Box) -> str:
    return box.ssh("ls -A /var/tmp; ls -la /var/lib/apt/lists /etc/apt /etc/apt/*.d; md5sum /var/lib/dpkg/status")


def test_a_filling_that_is_killed_leaves_no_bundle(box, folder):
    filling = subprocess.Popen(words(box, folder), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + PROVISION_S
    while len(list(folder.glob("debs/*.deb"))) < KILLED_AFTER:
        assert time.monotonic() < deadline
        with contextlib.suppress(subprocess.TimeoutExpired):
            pytest.fail(f"it ended by itself: {filling.wait(timeout=0.2)}")
    filling.kill()
    filling.wait()
    assert not (folder / "bundle.json").exists()
    assert fill(box, folder, "--verify")[0] == 2
    box.ssh("sudo rm -rf /var/tmp/rigctl-bundle-*")


def test_it_goes_on_where_it_was_and_leaves_the_rig_as_it_was(box, folder):
    before = state_of(box)
    there = len(list(folder.glob("debs/*.deb")))
    code, outcome = fill(box, folder)
    assert code == 0, outcome
    assert there >= KILLED_AFTER
    assert 0 < outcome["fetched"] < outcome["size"]
    assert state_of(box) == before
    assert outcome["manifest"]["drivers"][0]["driver"] == "515.105.01"
    assert fill(box, folder, "--verify")[0] == 0


def test_the_same_again_fetches_nothing(box, folder):
    sha256 = fill(box, folder, "--verify")[1]["manifest_sha256"]
    code, outcome = fill(box, folder)
    assert (code, outcome["fetched"], outcome["manifest_sha256"]) == (0, 0, sha256)


def test_what_the_sources_do_not_have_is_said_and_the_bundle_stays(box, folder):
    box.set(nvidia_driver_branch="535")
    code, said = fill(box, folder)
    assert code == 3
    assert "driver 535 (desktop)" in said
    assert "hint: " in said
    box.set()
    code, said = fill(box, folder, "--kernel", "9.9.9-1-generic")
    assert code == 3
    assert "linux-headers-9.9.9-1-generic" in said
    assert fill(box, folder, "--verify")[0] == 0


def test_the_rig_is_cut_off(box):
    done = subprocess.run(
        ["ssh", "-F", str(box.fleet.ssh_config), box.name, "sudo sh -s"],
        input=CUT_OFF.read_bytes(), capture_output=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert box.ssh("ip route show default") == ""


def test_check_mode_says_that_the_bundle_would_come(box, folder):
    box.set(base_offline_bundle=str(folder))
    before = state_of(box)
    outcome = box.provision("--check", tags="", timeout_s=PROVISION_S)
    assert outcome.code == 0, outcome.said
    assert "would take" in outcome.log.lower()
    assert state_of(box) == before


def test_a_bundle_that_lacks_something_is_refused_before_anything_changes(box, folder):
    box.set(base_offline_bundle=str(folder), cuda_version="12.2", nvidia_driver_branch="535")
    before = state_of(box)
    outcome = box.provision(tags="", timeout_s=PROVISION_S)
    assert outcome.code == 4
    assert "lacks the driver 535 (desktop, dkms); it has 515.105.01" in outcome.said
    assert "CUDA 12.2; it has 11.7" in outcome.said
    assert "rigctl bundle DIR --from RIG" in outcome.hint
    assert state_of(box) == before


def test_a_bundle_for_another_system_is_refused_before_anything_changes(box, folder):
    other = spoilt(folder, "other")
    manifest = json.loads((other / "bundle.json").read_bytes())
    manifest["platform"]["version"] = "20.04"
    replaced(other / "bundle.json", json.dumps(manifest).encode())
    box.set(base_offline_bundle=str(other))
    before = state_of(box)
    outcome = box.provision(tags="", timeout_s=PROVISION_S)
    assert outcome.code == 4
    assert "The bundle is for ubuntu 20.04" in outcome.said
    assert state_of(box) == before


def test_a_damaged_bundle_is_refused_before_anything_changes(box, folder):
    damaged = spoilt(folder, "damaged")
    deb = next(damaged.glob("debs/stress-ng_*.deb"))
    data = deb.read_bytes()
    replaced(deb, data[:-1] + bytes([data[-1] ^ 1]))
    assert fill(box, damaged, "--verify")[0] == 1
    box.set(base_offline_bundle=str(damaged))
    before = state_of(box)
    outcome = box.provision(tags="", timeout_s=PROVISION_S)
    assert outcome.code == 4
    assert f"The bundle is damaged: debs/{deb.name}" in outcome.said
    assert state_of(box) == before


def test_a_rig_that_reaches_nothing_is_provisioned_whole(box, folder):
    box.set(base_offline_bundle=str(folder))
    outcome = box.provision(tags="", timeout_s=PROVISION_S)
    assert outcome.code == 0, outcome.said
    assert box.loaded == "515.105.01"
    assert box.ssh("ip route show default") == ""
    assert box.is_consistent()
    assert box.ssh("/opt/gpuburn/gpu_burn -h >/dev/null && echo runs") == "runs"
    assert (
        box.ssh("/opt/rigctl/torch/bin/python -c 'import torch; print(torch.ones(2).sum().item())' 2>/dev/null")
        == "2.0"
    )


def test_a_second_run_changes_nothing(box):
    outcome = box.provision(tags="", timeout_s=PROVISION_S)
    assert (outcome.code, outcome.rig["changed"]) == (0, 0)


def test_without_the_variable_the_rig_s_own_sources_count_again(box):
    box.ssh("sudo mv /srv/rigsim.away /srv/rigsim")
    listed = "deb [trusted=yes] file:///srv/rigsim/ubuntu/2022 jammy main restricted universe"
    box.ssh(f"echo '{listed}' | sudo tee /etc/apt/sources.list")
    box.set()
    outcome = box.provision(tags="base", timeout_s=PROVISION_S)
    assert outcome.code == 0, outcome.said
    assert "rigsim" in box.ssh("apt-get indextargets --format '$(REPO_URI)'")
    assert "bundle" not in box.ssh("apt-get indextargets --format '$(REPO_URI)'")
