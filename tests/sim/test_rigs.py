"""Tests on real simulated rigs: boot, packages, faults, repair."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rigctl import sim
from rigctl.errors import RigctlError
from rigctl.sim import faults, podman, rigs, snapshot

if TYPE_CHECKING:
    from collections.abc import Callable

    from rigctl.sim import State

    Ssh = Callable[[str], str]

pytestmark = pytest.mark.rigs

INSTALL = "sudo DEBIAN_FRONTEND=noninteractive apt-get -qq install"
LOADED = "cat /sys/module/nvidia/version"
LIBRARY = "readlink /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"
BOOT_ID = "cat /proc/sys/kernel/random/boot_id"
BOOTS = "sudo journalctl --list-boots --no-pager | grep -c '^ *-\\?[0-9]'"
CUT_S = 3
REPAIR_S = 60


def reboot(state: State, ssh: Ssh) -> None:
    """Reboot rig1 and wait until it has another boot id."""
    before = ssh(BOOT_ID)
    # The connection ends with the rig; what ssh says about that is no concern.
    subprocess.run(["ssh", "-F", state.ssh_config, "rig1", "sudo systemctl reboot"], capture_output=True, check=False)
    deadline = time.monotonic() + REPAIR_S
    while True:
        rigs.wait_ready(state, state.rigs[0])
        if ssh(BOOT_ID) != before:
            return
        assert time.monotonic() < deadline, "the rig did not reboot"


def test_a_rig_is_ubuntu_2204_and_says_that_it_is_simulated(ssh: Ssh) -> None:
    assert ssh(". /etc/os-release; echo $ID $VERSION_ID $VERSION_CODENAME") == "ubuntu 22.04 jammy"
    assert ssh("lsb_release -rs") == "22.04"
    assert "imulated" in ssh("cat /sys/class/dmi/id/product_name")
    assert "imulated" in ssh("cat /sys/devices/virtual/dmi/id/product_name")
    assert ssh("uname -r").startswith("5.15.0-")
    assert ssh("uname -r") == ssh("cat /proc/sys/kernel/osrelease")


def test_ansible_takes_it_for_ubuntu(fleet: State) -> None:
    ansible = Path(sys.executable).with_name("ansible")
    words = [ansible, "-i", fleet.inventory, "all", "-m", "ansible.builtin.setup", "-a", "filter=ansible_distribution"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "Ubuntu" in done.stdout


def test_every_unit_starts(ssh: Ssh) -> None:
    assert ssh("systemctl --failed --no-legend") == ""


def test_what_roles_install_is_there_without_a_network(ssh: Ssh) -> None:
    packages = "stress-ng lm-sensors python3-venv dkms linux-headers-$(uname -r)"
    ssh(f"sudo apt-get -qq update && apt-get --simulate install {packages}")


def test_installed_becomes_loaded_at_a_reboot_and_an_upgrade_without_one_is_a_mismatch(fleet: State, ssh: Ssh) -> None:
    ssh(f"sudo apt-get -qq update && {INSTALL} nvidia-driver-515 >/dev/null")
    assert ssh("test -e /sys/module/nvidia/version || echo none") == "none"
    assert ssh("dkms status").startswith("nvidia/515.105.01, 5.15.0-")
    reboot(fleet, ssh)
    assert ssh(LOADED) == "515.105.01"
    assert ssh("nvidia-smi -L | wc -l") == "2"

    faults.apply(fleet.directory, "rig1", "driver_library_mismatch", {})
    assert ssh(LOADED) == "515.105.01"
    assert ssh(LIBRARY) == "libnvidia-ml.so.535.129.03"
    assert "Driver/library version mismatch" in ssh("nvidia-smi || true")

    assert faults.clear(fleet.directory, "rig1") == ["driver_library_mismatch"]
    assert ssh(LIBRARY) == "libnvidia-ml.so.515.105.01"
    assert ssh("nvidia-smi -L | wc -l") == "2"


def test_a_reboot_keeps_the_rig_and_its_journal(fleet: State, ssh: Ssh) -> None:
    same = "cat /etc/machine-id; hostname; sudo cat /etc/ssh/ssh_host_ed25519_key.pub"
    before, boots = ssh(same), int(ssh(BOOTS))
    reboot(fleet, ssh)
    assert ssh(same) == before
    assert int(ssh(BOOTS)) == boots + 1


def test_ssh_down_breaks_sessions_and_comes_back_by_itself(fleet: State, ssh: Ssh) -> None:
    session = subprocess.Popen(["ssh", "-F", fleet.ssh_config, "rig1", "sleep 60"], stderr=subprocess.DEVNULL)
    ssh("true")
    began = time.monotonic()
    faults.apply(fleet.directory, "rig1", "ssh_down", {"seconds": str(CUT_S)})
    assert session.wait(timeout=CUT_S) != 0
    with pytest.raises(RigctlError, match="did not become ready"):
        rigs.wait_ready(fleet, fleet.rigs[0], timeout_s=1)
    rigs.wait_ready(fleet, fleet.rigs[0], timeout_s=REPAIR_S)
    assert time.monotonic() - began >= CUT_S
    assert faults.applied(fleet.directory, "rig1") == []


def test_up_again_repairs_and_down_leaves_nothing(tmp_path: Path) -> None:
    directory = tmp_path / "state"
    options = sim.UpOptions(count=2, archive="2026", directory=directory, training=False)
    first = sim.up(options)
    host_keys = [rig.host_key for rig in first.rigs]
    # As a crash leaves it: one rig gone, one container without processes.
    pod = podman.find()
    pod.remove([first.rigs[0].container])
    pod.call("stop", "--time=0", first.rigs[1].container)
    assert {one.status for one in sim.list_rigs(directory)} == {"gone", "exited"}

    second = sim.up(options)
    assert [rig.host_key for rig in second.rigs] == host_keys
    words = ["ssh", "-F", second.ssh_config, "rig2", "sudo apt-get -qq update; apt-cache show nvidia-driver-515"]
    shown = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert "Transitional package for nvidia-driver-535" in shown
    assert {one.status for one in sim.list_rigs(directory)} == {"running"}

    assert len(sim.down(directory)) == 2
    assert not directory.exists()
    assert sim.list_rigs(directory) == []
    assert sim.down(directory) == []


def test_a_kept_rig_starts_as_a_rig_of_its_own(fleet: State, ssh: Ssh, tmp_path: Path) -> None:
    ssh("echo kept | sudo tee /opt/kept")
    kept = snapshot.take(fleet, "rig1", key=str(tmp_path))
    assert snapshot.find(str(tmp_path)) == kept
    directory = tmp_path / "state"
    other = sim.up(sim.UpOptions(count=1, directory=directory, image=kept, training=False, seed=7))
    try:
        words = ["ssh", "-F", other.ssh_config, "rig1", "cat /opt/kept /etc/machine-id"]
        reply = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
        assert reply[0] == "kept"
        assert reply[1] != ssh("cat /etc/machine-id")
        assert other.rigs[0].host_key != fleet.rigs[0].host_key
    finally:
        sim.down(directory)
        podman.find().call("image", "rm", kept)
