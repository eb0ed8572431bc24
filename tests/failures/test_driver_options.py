"""What keeps a driver's version, its module's options and the kernel's series as they were asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .meets import meets

if TYPE_CHECKING:
    from .box import Box

pytestmark = [pytest.mark.rigs, pytest.mark.slow, pytest.mark.timeout(1800)]
LATER = "deb [trusted=yes] file:///srv/rigsim/ubuntu/2023 jammy-updates restricted"
LATER_LIST = "/etc/apt/sources.list.d/later.list"
PINS = "/etc/apt/preferences.d/gpu-rig-nvidia-driver"
BLACKLIST = "/etc/apt/apt.conf.d/52gpu-rig-nvidia-driver"
ALLOWED = 'Unattended-Upgrade::Allowed-Origins { "Ubuntu:jammy-updates"; };'
ALLOWED_FILE = "/etc/apt/apt.conf.d/99allowed"
GSP_OFF = {"nvidia": {"NVreg_EnableGpuFirmware": 0}, "nvidia_uvm": {"uvm_disable_hmm": 1}}
IN_FORCE = "grep EnableGpuFirmware: /proc/driver/nvidia/params; cat /sys/module/nvidia_uvm/parameters/uvm_disable_hmm"


def to_be_upgraded(box: Box) -> str:
    """What unattended-upgrades says that it would upgrade."""
    said = box.ssh("sudo unattended-upgrade --debug --dry-run 2>&1", timeout_s=300)
    assert "Packages that will be upgraded:" in said or "No packages found that can be upgraded" in said, said
    return said.partition("Packages that will be upgraded:")[2].partition("\n")[0]


def test_1_a_kernel_of_another_series_is_refused_before_anything_is_changed(box: Box) -> None:
    box.set(nvidia_driver_kernel_series="6.5")
    refused = box.provision()
    assert (refused.code, refused.rig["role"]) == (4, "nvidia_driver")
    assert "boots 5.15.0-91-generic next" in refused.said
    assert "set nvidia_driver_kernel_series to what it boots" in refused.said
    assert "nvidia" not in box.packages()
    box.set()


@meets("index_stale")
def test_2_a_package_that_was_withdrawn_is_named_and_after_the_remedy_an_older_one_comes(box: Box) -> None:
    box.fault("index_stale")
    refused = box.provision()
    assert (refused.code, refused.rig["role"]) == (4, "nvidia_driver")
    assert "404" in refused.log
    assert "sudo apt-get update" in refused.hint
    assert box.is_consistent()
    box.ssh("sudo apt-get -qq update")
    outcome = box.provision()
    assert (outcome.code, outcome.said) == (0, "")
    assert box.loaded == "515.86.01"
    assert box.is_consistent()
    box.clear()


def test_3_unattended_upgrades_leave_the_driver_alone(box: Box) -> None:
    box.ssh("sudo apt-get -qq install --no-install-recommends unattended-upgrades", timeout_s=600)
    # The archive moves on, and neither a hold nor a pin is left: the blacklist alone has to do it.
    box.ssh(f"echo '{LATER}' | sudo tee {LATER_LIST}; echo '{ALLOWED}' | sudo tee {ALLOWED_FILE}")
    box.ssh(f"sudo apt-mark unhold $(apt-mark showhold); sudo mv {PINS} /var/backups/; sudo apt-get -qq update")
    packages = box.packages()
    assert "nvidia" not in to_be_upgraded(box)
    box.ssh(f"sudo mv {BLACKLIST} /var/backups/")
    assert "nvidia-driver-515" in to_be_upgraded(box)
    assert box.packages() == packages
    box.ssh(f"sudo mv /var/backups/gpu-rig-nvidia-driver {PINS}")
    box.ssh(f"sudo mv /var/backups/52gpu-rig-nvidia-driver {BLACKLIST}")
    box.ssh(f"sudo rm {LATER_LIST} {ALLOWED_FILE}; sudo apt-get -qq update")


def test_4_options_of_the_module_are_in_force_after_one_run(box: Box) -> None:
    assert box.ssh(IN_FORCE).split() == ["EnableGpuFirmware:", "18", "N"]
    box.set(nvidia_driver_module_options=GSP_OFF, nvidia_driver_reboot="ask")
    asked = box.provision()
    assert (asked.code, asked.rig["role"]) == (4, "nvidia_driver")
    assert "nvidia NVreg_EnableGpuFirmware is 18, asked 0" in asked.said
    box.set(nvidia_driver_module_options=GSP_OFF, nvidia_driver_kernel_series="5.15")
    outcome = box.provision()
    assert (outcome.code, outcome.said) == (0, "")
    assert box.ssh(IN_FORCE).split() == ["EnableGpuFirmware:", "0", "Y"]
    assert "Pin: version 5.15.*" in box.ssh("cat /etc/apt/preferences.d/gpu-rig-kernel")
    assert box.holds()
    assert box.provision().rig["changed"] == 0
    box.set(nvidia_driver_module_options=GSP_OFF, nvidia_driver_flavour="open")
    refused = box.provision()
    assert (refused.code, refused.rig["changed"]) == (4, 0)
    assert "open kernel modules work only with the GSP firmware" in refused.said
    box.set()


def test_5_a_branch_whose_packages_do_not_carry_its_name_is_refused_with_the_reason(box: Box) -> None:
    box.set(nvidia_driver_branch="590", cuda_version="13.0")
    packages = box.packages()
    refused = box.provision()
    assert (refused.code, refused.rig["changed"]) == (4, 0)
    assert "NVIDIA's packages do not carry the branch in their names" in refused.said
    assert "575, 580" in refused.said
    assert box.packages() == packages
    box.set()
