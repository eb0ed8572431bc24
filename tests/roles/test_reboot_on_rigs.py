"""The role `reboot` on a simulated rig: refusals that change nothing, and a new kernel on trial."""

import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from rigctl import sim

from .roles_page import ROLES

pytestmark = [pytest.mark.rigs, pytest.mark.slow, pytest.mark.timeout(600)]
BIN = Path(sys.executable).parent
NEW = "5.15.0-105-generic"
TRIAL = "/etc/default/grub.d/90-gpu-rig-trial.cfg"
RISKS = {
    "encrypted_volume": (
        "echo 'root UUID=aa none luks' > /etc/crypttab",
        "rm /etc/crypttab",
    ),
    "missing_mount": (
        "echo 'UUID=gone /data ext4 defaults 0 2' >> /etc/fstab",
        "sed -i /gone/d /etc/fstab",
    ),
    "shifted_interface": (
        "printf '[Match]\\nName=enp5s0\\n' > /etc/systemd/network/10-lan.network",
        "rm /etc/systemd/network/10-lan.network",
    ),
    "small_boot": (
        "mount -t tmpfs -o size=8M none /boot; head -c 5M /dev/zero > /boot/initrd.img-$(uname -r)",
        "umount /boot",
    ),
    "unfinished_packages": (
        "dpkg --unpack /srv/rigsim/pool/debian/dmidecode_*.deb",
        "dpkg --configure -a",
    ),
}
"""What brings each risk about on a rig, and its remedy."""


@pytest.fixture(scope="module")
def rig(tmp_path_factory):
    state = sim.up(sim.UpOptions(count=1, directory=tmp_path_factory.mktemp("reboot") / "state", training=False))
    try:
        yield SimpleNamespace(state=state, playbook=state.directory / "reboot.yml")
    finally:
        sim.down(state.directory)


def on_rig(rig, command):
    """Run a command as root."""
    ssh = ["ssh", "-F", rig.state.ssh_config, "rig1", "sudo", "sh", "-s"]
    done = subprocess.run(ssh, input=command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def boot_id(rig):
    return on_rig(rig, "cat /proc/sys/kernel/random/boot_id")


def play(rig, part="main", **variables):
    """Apply the role's entry point by plain Ansible; the failed task's message, empty where all went well."""
    include = {"name": "reboot", "tasks_from": part}
    tasks = [{"ansible.builtin.include_role": include}]
    plays = [{"hosts": "all", "become": True, "gather_facts": False, "tasks": tasks}]
    rig.playbook.write_text(json.dumps(plays), encoding="utf-8")
    words = [BIN / "ansible-playbook", "-i", rig.state.inventory, rig.playbook, "-e", json.dumps(variables)]
    environment = {
        "PATH": f"{BIN}:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": str(rig.state.directory),
        "ANSIBLE_ROLES_PATH": str(ROLES),
        "ANSIBLE_CALLBACK_RESULT_FORMAT": "json",
        "ANSIBLE_CALLBACK_FORMAT_PRETTY": "False",
        "ANSIBLE_NOCOLOR": "1",
        "LC_ALL": "C.UTF-8",
    }
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
    failed = re.search(r"^fatal: \[rig1\]: FAILED! => (\{.*\})$", done.stdout, re.MULTILINE)
    assert bool(failed) == bool(done.returncode), done.stdout + done.stderr
    return json.loads(failed.group(1))["msg"] if failed else ""


def provision(rig, runs):
    """Exit code and the rig's outcome."""
    words = [BIN / "rigctl", "provision", "-i", rig.state.inventory, "--runs", runs, "--tags", "base,nvidia_driver"]
    done = subprocess.run([*words, "--json"], capture_output=True, text=True, check=False)
    return done.returncode, json.loads(done.stdout)["rigs"][0]


@pytest.mark.parametrize("name", RISKS)
def test_a_rig_that_would_not_come_back_is_refused_until_the_remedy(rig, name):
    happens, remedy = RISKS[name]
    boot = boot_id(rig)
    on_rig(rig, happens)
    try:
        message = play(rig)
        assert f"{name}: " in message
        assert f"reboot_accepted_risks: [{name}]" in message
        assert boot_id(rig) == boot
        assert play(rig, "look", reboot_accepted_risks=[name]) == ""
    finally:
        on_rig(rig, remedy)
    assert play(rig, "look") == ""


def test_provision_refuses_before_anything_is_installed(rig, tmp_path):
    happens, remedy = RISKS["encrypted_volume"]
    on_rig(rig, happens)
    try:
        code, outcome = provision(rig, tmp_path)
    finally:
        on_rig(rig, remedy)
    assert (code, outcome["state"], outcome["role"]) == (4, "failed", "reboot")
    assert "asks for its passphrase at the console" in outcome["message"]
    assert on_rig(rig, "dpkg-query -W -f '${Package}\\n' '*nvidia*' 2> /dev/null || true") == ""
    assert provision(rig, tmp_path)[0] == 0
    assert on_rig(rig, "cat /sys/module/nvidia/version").startswith("515.")


def test_the_controller_under_another_name_is_refused(rig, tmp_path):
    same = tmp_path / "boot_id"
    same.write_text(boot_id(rig), encoding="ascii")
    assert "would restart the controller" in play(rig, "look", __reboot_boot_id=str(same))


def test_a_local_connection_is_refused(rig):
    assert "The connection to rig1 is local" in play(rig, "look", ansible_connection="local", ansible_become=False)


def test_without_a_new_kernel_it_restarts(rig):
    boot = boot_id(rig)
    assert play(rig) == ""
    assert boot_id(rig) != boot


def test_new_kernels_are_started_on_trial(rig):
    old = on_rig(rig, "uname -r")
    small_grub = (Path(__file__).parent / "small_grub.sh").read_text(encoding="utf-8")
    on_rig(rig, f"set -- {NEW}\n{small_grub}")

    # It hangs: the rig comes back with the old one, which stays the default.
    on_rig(rig, f"echo {NEW} > /usr/local/lib/small-grub/broken")
    message = play(rig)
    assert f"The kernel {NEW} was started on trial, and the rig came back with {old}" in message
    assert on_rig(rig, f"grep -c saved_entry /boot/grub/grub.cfg; grep -c '{NEW}' {TRIAL}") == "1\n1"

    # It starts, and the check fails: it is not promoted.
    on_rig(rig, "rm /usr/local/lib/small-grub/broken")
    assert play(rig, reboot_check_command="false", reboot_check_timeout_s=2) != ""
    assert on_rig(rig, "uname -r") == NEW
    assert on_rig(rig, "systemctl reboot") == ""
    sim.rigs.wait_ready(rig.state, rig.state.rigs[0])
    assert on_rig(rig, "uname -r") == old

    # It starts, and the check passes: it is the default, and GRUB's settings are as before.
    assert play(rig) == ""
    assert on_rig(rig, "uname -r") == NEW
    assert on_rig(rig, f"ls {TRIAL} 2> /dev/null || grep -c 'set default=\"0\"' /boot/grub/grub.cfg") == "1"
    assert play(rig) == ""
    assert on_rig(rig, "uname -r") == NEW
