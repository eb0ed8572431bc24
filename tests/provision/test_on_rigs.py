"""A rig whose archive has turned 515 into 580: refused, then taken from the other source, then moved to 580."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

pytestmark = [pytest.mark.rigs, pytest.mark.timeout(600)]
RIGCTL = Path(sys.executable).parent / "rigctl"


@pytest.fixture(scope="module")
def rig(tmp_path_factory):
    folder = tmp_path_factory.mktemp("provision")
    state = folder / "state"
    try:
        subprocess.run([RIGCTL, "sim", "up", "-n", "1", "--archive", "2026", "--state", state], check=True)
        yield SimpleNamespace(state=state, inventory=state / "inventory", runs=folder / "runs")
    finally:
        subprocess.run([RIGCTL, "sim", "down", "--state", state], check=True)


def provision(rig, *options, **variables):
    """Provision with role variables of the rig's own; exit code and outcome."""
    own = rig.inventory / "host_vars" / "rig1" / "software.yml"
    own.write_text(json.dumps(variables), encoding="utf-8")
    words = ["provision", "-i", rig.inventory, "--runs", rig.runs, "--tags", "base,nvidia_driver", "--json", *options]
    done = subprocess.run([RIGCTL, *words], capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)["rigs"][0]


def on_rig(rig, command):
    ssh = ["ssh", "-F", rig.state / "ssh_config", "rig1", command]
    return subprocess.run(ssh, capture_output=True, text=True, check=False).stdout.strip()


def driver_packages(rig):
    status = on_rig(rig, "dpkg-query -W -f '${Package} ${db:Status-Abbrev}\\n' '*nvidia*' | grep -E 'ii|hi'")
    return [line.strip() for line in status.splitlines()]


def test_1_a_transitional_package_is_refused_and_nothing_is_installed(rig):
    code, outcome = provision(rig)
    assert (code, outcome["state"], outcome["role"]) == (4, "failed", "nvidia_driver")
    assert "it would have become 580" in outcome["message"]
    assert "The source cuda_repo has the real one: nvidia-driver-515 515.105.01" in outcome["message"]
    assert "nvidia_driver_source: cuda_repo" in outcome["message"]
    assert driver_packages(rig) == []


def test_2_check_mode_changes_nothing(rig):
    code, outcome = provision(rig, "--check", nvidia_driver_source="cuda_repo")
    assert (code, outcome["state"]) == (0, "changed")
    assert driver_packages(rig) == []


def test_3_the_other_source_has_the_real_one(rig):
    # As after a run that was broken off between naming the source and reading its lists.
    on_rig(rig, "sudo sh -c 'rm /var/lib/apt/lists/*rigsim_cuda*'")
    assert "rigsim/cuda" not in on_rig(rig, "apt-cache policy")
    boot = on_rig(rig, "cat /proc/sys/kernel/random/boot_id")
    code, outcome = provision(rig, nvidia_driver_source="cuda_repo")
    assert (code, outcome["state"], outcome["message"]) == (0, "changed", "")
    assert on_rig(rig, "cat /sys/module/nvidia/version") == "515.105.01"
    assert on_rig(rig, "cat /proc/sys/kernel/random/boot_id") != boot


def test_4_again_nothing_is_to_do(rig):
    code, outcome = provision(rig, nvidia_driver_source="cuda_repo")
    assert (code, outcome["state"], outcome["changed"]) == (0, "ok", 0)


def test_5_a_power_limit_outside_the_card_s_range_is_refused(rig):
    code, outcome = provision(rig, nvidia_driver_source="cuda_repo", nvidia_driver_power_limit_w=600)
    assert (code, outcome["state"]) == (4, "failed")
    assert "nvidia_driver_power_limit_w: 600 is outside the range of card 0" in outcome["message"]
    limits = on_rig(rig, "nvidia-smi --query-gpu=power.limit --format=csv,noheader,nounits").split()
    assert limits == ["480.00", "480.00"]


def test_6_a_changed_setting_of_a_card_is_set_right_again(rig):
    on_rig(rig, "sudo nvidia-smi -pl 300")
    code, outcome = provision(rig, nvidia_driver_source="cuda_repo")
    assert (code, outcome["changed"]) == (0, 1)
    limits = on_rig(rig, "nvidia-smi --query-gpu=power.limit --format=csv,noheader,nounits").split()
    assert limits == ["480.00", "480.00"]


def test_7_where_a_reboot_is_to_be_asked_for_the_rig_is_not_restarted(rig):
    boot = on_rig(rig, "cat /proc/sys/kernel/random/boot_id")
    code, outcome = provision(rig, nvidia_driver_branch="580", nvidia_driver_reboot="ask")
    assert (code, outcome["state"]) == (4, "failed")
    assert "515.105.01 is loaded. Restart the rig" in outcome["message"]
    assert on_rig(rig, "cat /proc/sys/kernel/random/boot_id") == boot


def test_8_another_branch_replaces_the_first_one_whole(rig):
    code, outcome = provision(rig, nvidia_driver_branch="580")
    assert (code, outcome["message"]) == (0, "")
    assert on_rig(rig, "cat /sys/module/nvidia/version").startswith("580.")
    packages = driver_packages(rig)
    assert [package for package in packages if "-515" in package] == []
    assert all(package.endswith("hi") for package in packages if "-580" in package)
