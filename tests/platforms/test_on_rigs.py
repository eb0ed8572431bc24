"""Debian 12 and Ubuntu 24.04 as boxes that become rigs, and what is refused there."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from rigctl import sim
from tests.failures.box import RIGCTL, Box

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.rigs, pytest.mark.slow, pytest.mark.timeout(1800)]
LONG_S = 1200
"""Two whole provisionings, also where other tests load the machine."""
OS_RELEASE = "/usr/lib/os-release"


def one_rig(directory: Path, platform: str) -> Iterator[Box]:
    found = sim.up(sim.UpOptions(count=1, platform=platform, directory=directory, training=False))
    try:
        yield Box(found)
    finally:
        sim.down(directory)


@pytest.fixture(scope="module")
def debian(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    yield from one_rig(tmp_path_factory.mktemp("debian") / "state", "debian-12")


@pytest.fixture(scope="module")
def noble(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    yield from one_rig(tmp_path_factory.mktemp("noble") / "state", "ubuntu-24.04")


def test_1_debian_without_non_free_is_refused_with_what_to_add(debian: Box) -> None:
    debian.ssh("sudo sed -i.kept 's/ contrib non-free non-free-firmware$/ non-free-firmware/' /etc/apt/sources.list")
    refused = debian.provision(timeout_s=LONG_S)
    assert (refused.code, refused.rig["role"]) == (4, "nvidia_driver")
    assert "no configured package source has nvidia-driver: Debian keeps it in non-free" in refused.said
    debian.ssh("sudo mv /etc/apt/sources.list.kept /etc/apt/sources.list; sudo rm -rf /var/lib/apt/lists/*")


def test_2_a_branch_that_debian_does_not_have_is_refused_with_the_one_it_has(debian: Box) -> None:
    debian.set(nvidia_driver_branch="515", cuda_version="11.7")
    refused = debian.provision(timeout_s=LONG_S)
    assert refused.code == 4
    assert "debian does not have nvidia-driver of branch 515; on offer: 535.309.01, 535.261.03" in refused.said
    assert 'set nvidia_driver_branch: "535"' in refused.said
    assert "nvidia-driver" not in debian.packages()


def test_3_debian_s_driver_is_installed_built_loaded_and_held(debian: Box) -> None:
    debian.set()
    outcome = debian.provision(timeout_s=LONG_S)
    assert (outcome.code, outcome.said) == (0, "")
    assert debian.loaded == "535.309.01"
    assert debian.ssh("nvidia-smi -L | wc -l") == "2"
    built = "nvidia-current/535.309.01, 6.1.0-57-amd64, x86_64: installed"
    assert debian.ssh("sudo dkms status") == built
    assert {"nvidia-driver", "nvidia-kernel-dkms", "libcuda1", "libnvidia-ml1"} <= set(debian.holds().split())
    assert debian.is_consistent()


def test_4_a_second_run_changes_nothing_and_doctor_finds_nothing(debian: Box) -> None:
    assert debian.provision(timeout_s=LONG_S).rig["changed"] == 0
    words = [str(RIGCTL), "doctor", "-i", str(debian.fleet.inventory), "--json"]
    found = json.loads(subprocess.run(words, capture_output=True, text=True, check=False).stdout)
    assert [one for one in found["findings"] if not one["ok"]] == []


def test_5_the_open_module_brings_the_driver_to_its_own_version(debian: Box) -> None:
    debian.set(nvidia_driver_flavour="open", nvidia_driver_version="535.261.03")
    outcome = debian.provision(timeout_s=LONG_S)
    assert (outcome.code, outcome.said) == (0, "")
    assert debian.loaded == "535.261.03"
    assert "nvidia-kernel-dkms" not in [line.split()[0] for line in debian.packages().splitlines() if " ii" in line]
    assert "nvidia-current-open/535.261.03" in debian.ssh("sudo dkms status")
    assert debian.provision(timeout_s=LONG_S).rig["changed"] == 0


def test_6_the_driver_goes_again(debian: Box) -> None:
    words = ["ansible-playbook", "-i", str(debian.fleet.inventory), "playbooks/decommission.yml"]
    words[0] = str(RIGCTL.parent / words[0])
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "libcuda1" not in [line.split()[0] for line in debian.packages().splitlines() if line.endswith("ii ")]
    assert "No such file" in debian.loaded
    assert debian.is_consistent()


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        ("VERSION_ID=11 VERSION_CODENAME=bullseye", "Debian 11"),
        ("VERSION_ID=13 VERSION_CODENAME=trixie", "Debian 13"),
    ],
)
def test_7_a_release_that_the_roles_do_not_know_is_refused_before_anything_is_done(
    debian: Box, lines: str, named: str
) -> None:
    edits = " ".join(f"-e 's/^{line.split('=')[0]}=.*/{line}/'" for line in lines.split())
    major = named.split()[1]
    debian.ssh(f"sudo cp {OS_RELEASE} /tmp/kept; sudo sed -i {edits} -e 's/12/{major}/' {OS_RELEASE}")
    debian.ssh(f"sudo cp /etc/debian_version /tmp/kept_version; echo {major}.1 | sudo tee /etc/debian_version")
    try:
        refused = debian.provision(tags="", timeout_s=LONG_S)
    finally:
        debian.ssh(f"sudo cp /tmp/kept {OS_RELEASE}; sudo cp /tmp/kept_version /etc/debian_version")
    assert refused.code == 4
    assert f"{named} is not supported; the roles know Ubuntu 22.04, Ubuntu 24.04, Debian 12." in refused.said
    assert refused.rig["changed"] == 0


def test_8_ubuntu_24_04_never_had_515(noble: Box) -> None:
    noble.set(nvidia_driver_branch="515", cuda_version="11.7")
    refused = noble.provision(timeout_s=LONG_S)
    assert refused.code == 4
    assert "no configured package source has nvidia-driver-515" in refused.said
    assert "The nearest that are real: nvidia-driver-550, nvidia-driver-570, nvidia-driver-580" in refused.said


def test_9_ubuntu_24_04_with_550(noble: Box) -> None:
    noble.set()
    outcome = noble.provision(timeout_s=LONG_S)
    assert (outcome.code, outcome.said) == (0, "")
    assert noble.loaded == "550.163.01"
    assert noble.ssh("nvidia-smi -L | wc -l") == "2"
    assert noble.provision(timeout_s=LONG_S).rig["changed"] == 0
