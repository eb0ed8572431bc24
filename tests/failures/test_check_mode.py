"""What `--check` announces on a fresh rig is all that the real run changes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from rigctl import sim

from .box import Box

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.rigs, pytest.mark.slow, pytest.mark.timeout(1800)]
SNAPSHOT = """
dpkg-query -W -f '${Package} ${Version} ${db:Status-Abbrev}\\n'; apt-mark showhold
cat /proc/sys/kernel/random/boot_id; sudo nvidia-smi --query-gpu=power.limit --format=csv
sudo find /etc /opt /usr/local /boot /var/lib/gpu-rig -type f ! -path '/usr/local/lib/rigsim/*' -print0 | sort -z \\
  | sudo xargs -0 sha256sum
"""
DRIVER, TOOLKIT, BURNER, TORCH = (
    "Say what would be done to the driver",
    "Say what would be installed and chosen",
    "Say what would be built",
    "Say what would become of the environment",
)
SPEAKERS = {
    "Make the folder for what this role remembers": (DRIVER,),
    "Remember what this role brings, so that it can be taken away again": (DRIVER,),
    "Install the driver in one transaction": (DRIVER,),
    "Build the module for every kernel that may boot": (DRIVER,),
    "Hold the driver's packages, or let them go": (DRIVER,),
    "Restart the rig": (DRIVER,),
    "Set them now": ("Set persistence and power limit at every boot",),
    "Install what it is built with": (BURNER,),
    "Clone it at the pinned commit": (BURNER, DRIVER),
    "Compile it for the rig's cards": (BURNER, DRIVER),
    "Record what it was built for": (BURNER, DRIVER),
    "Install the toolkits, and neither a driver nor a newer toolkit with them": (TOOLKIT,),
    "Let /usr/local/cuda be the toolkit of cuda_version": (TOOLKIT,),
    "Build the environment": (TORCH,),
    "Install PyTorch": (TORCH,),
    "Record what was tried": (TORCH, DRIVER),
    # Handlers are commands, which check mode leaves out; what notifies them it does announce.
    "Read the package lists again": ("Name the CUDA repository to apt",),
    "Build the initial RAM disk again": (
        "Take driver packages from one source only, and keep them from moving by themselves",
    ),
    "Read the linker's paths again": ("Put the toolkit on the path of programs and of the linker",),
}
"""Tasks that check mode leaves out → those that speak for them there."""

DRIFT = {
    "sudo apt-mark unhold nvidia-driver-515": "Hold the driver's packages, or let them go",
    "sudo rm -r /var/lib/dkms/nvidia/515.105.01/5.15.0-91-generic /lib/modules/5.15.0-91-generic/updates/dkms": (
        "Build the module for every kernel that may boot"
    ),
    "sudo update-alternatives --remove-all cuda": "Let /usr/local/cuda be the toolkit of cuda_version",
    "sudo rm /opt/gpuburn/build.json": "Compile it for the rig's cards",
    "sudo rm -r /opt/rigctl/torch/lib/python3*/site-packages/torch-*": "Install PyTorch",
    "sudo nvidia-smi -pl 300": "Set them now",
    "sudo sed -i /lib64/d /etc/ld.so.conf.d/nvidia-cuda.conf": "Put the toolkit on the path of programs and of the "
    "linker",
}
"""What people do to a rig by hand → the task that mends it."""


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    """A fresh rig that has PyTorch's wheels, too: all of site.yml is tried."""
    directory = tmp_path_factory.mktemp("check") / "state"
    try:
        yield Box(sim.up(sim.UpOptions(count=1, directory=directory)))
    finally:
        sim.down(directory)


def changed_tasks(log: str) -> set[str]:
    """The tasks that changed something, as Ansible's log tells."""
    found, task = set(), ""
    for line in log.splitlines():
        named = re.match(r"(?:TASK|RUNNING HANDLER) \[(?:\w+ : )?(.*)\] \*+", line)
        task = named.group(1) if named else task
        if line.startswith("changed: ["):
            found.add(task)
    return found


def unannounced(box: Box) -> tuple[set[str], set[str]]:
    """Check mode, which must change nothing, then the real run: what it did, and what of that was not announced."""
    before = box.ssh(SNAPSHOT)
    asked = box.provision("--check", "--diff", tags="", timeout_s=900)
    assert (asked.code, asked.said) == (0, "")
    assert box.ssh(SNAPSHOT) == before
    announced = changed_tasks(asked.log)
    assert announced
    done = box.provision(tags="", timeout_s=900)
    assert (done.code, done.said) == (0, "")
    changed = changed_tasks(done.log)
    return changed, {task for task in changed if not {task, *SPEAKERS.get(task, ())} & announced}


def test_1_on_a_fresh_rig_the_real_run_changes_nothing_that_check_mode_did_not_announce(box: Box) -> None:
    changed, silent = unannounced(box)
    assert changed >= {"Install the driver in one transaction", "Install PyTorch", "Compile it for the rig's cards"}
    assert silent == set()


def test_2_on_a_provisioned_rig_check_mode_announces_nothing(box: Box) -> None:
    assert box.provision("--check", tags="").rig["changed"] == 0


def test_3_what_was_changed_by_hand_is_announced_and_mended(box: Box) -> None:
    for command in DRIFT:
        box.ssh(command)
    box.fault("dpkg_interrupted")
    changed, silent = unannounced(box)
    assert {"Finish an installation that was interrupted", *DRIFT.values()} - changed == set()
    assert silent == set()
    assert box.provision("--check", tags="").rig["changed"] == 0


def test_4_a_restart_that_is_still_to_come_is_announced(box: Box) -> None:
    box.set(nvidia_driver_branch="525", nvidia_driver_reboot="never")
    assert box.provision(tags="nvidia_driver").said == ""
    assert box.loaded == "515.105.01"
    box.set(nvidia_driver_branch="525")
    changed, silent = unannounced(box)
    assert "Restart the rig" in changed
    assert silent == set()
    assert box.loaded == "525.105.17"
