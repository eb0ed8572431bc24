"""A rig through flavours and origins of its driver: open, signed, a build that fails, a deb cache, and none again."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from .roles_page import ROOT

pytestmark = [pytest.mark.rigs, pytest.mark.slow, pytest.mark.timeout(900)]
BIN = ROOT / ".venv" / "bin"
RIGCTL = BIN / "rigctl"
CACHE = "/srv/driver-debs"


@pytest.fixture(scope="module")
def rig(tmp_path_factory):
    folder = tmp_path_factory.mktemp("driver")
    state = folder / "state"
    up = "from rigctl.sim import UpOptions, up\nimport sys, pathlib\n"
    up += "up(UpOptions(count=1, archive='2022', directory=pathlib.Path(sys.argv[1]), training=False))"
    try:
        subprocess.run([sys.executable, "-c", up, state], check=True)
        found = SimpleNamespace(state=state, inventory=state / "inventory", runs=folder / "runs")
        assert provision(found, "--tags", "base")[0] == 0
        found.packages = packages(found)
        found.preferences = on_rig(found, "ls /etc/apt/preferences.d")
        yield found
    finally:
        subprocess.run([RIGCTL, "sim", "down", "--state", state], check=True)


def provision(rig, *options, **variables):
    """Provision with role variables of the rig's own; exit code and outcome."""
    write_variables(rig, variables)
    words = ["provision", "-i", rig.inventory, "--runs", rig.runs, "--json", *options]
    done = subprocess.run([RIGCTL, *words], capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)["rigs"][0]


def driver(rig, **variables):
    return provision(rig, "--tags", "base,nvidia_driver", **variables)


def write_variables(rig, variables):
    own = rig.inventory / "host_vars" / "rig1" / "software.yml"
    own.write_text(json.dumps(variables), encoding="utf-8")


def fault(rig, *words, command="fault"):
    subprocess.run([RIGCTL, "sim", command, "--state", rig.state, "rig1", *words], check=True, capture_output=True)


def on_rig(rig, command):
    ssh = ["ssh", "-F", rig.state / "ssh_config", "rig1", command]
    return subprocess.run(ssh, capture_output=True, text=True, check=False).stdout.strip()


def packages(rig):
    return on_rig(rig, "dpkg-query -W -f '${Package} ${Version} ${db:Status-Abbrev}\\n' | grep -v 'rc $'").splitlines()


def names(rig):
    return {line.split()[0] for line in packages(rig)}


def loaded(rig):
    return on_rig(rig, "cat /sys/module/nvidia/version")


def test_1_open_modules_from_the_first_source_that_has_the_branch(rig):
    code, outcome = driver(rig, nvidia_driver_branch="525", nvidia_driver_source="auto", nvidia_driver_flavour="open")
    assert (code, outcome["message"]) == (0, "")
    assert loaded(rig) == "525.105.17"
    assert {"nvidia-driver-525-open", "nvidia-dkms-525-open", "nvidia-utils-525"} <= names(rig)
    assert "o=Ubuntu" in on_rig(rig, "cat /etc/apt/preferences.d/gpu-rig-nvidia-driver")


def test_2_a_power_supply_that_is_too_small_is_refused(rig):
    code, outcome = driver(rig, nvidia_driver_branch="525", nvidia_driver_flavour="open", nvidia_driver_psu_w=1000)
    assert code == 4
    assert "more than 0.85 of nvidia_driver_psu_w: 1000" in outcome["message"]


def test_3_a_build_that_fails_is_taken_back(rig):
    before = packages(rig)
    fault(rig, "dkms_build_fails", "branch=525")
    code, outcome = driver(rig, nvidia_driver_branch="515")
    fault(rig, "dkms_build_fails", command="clear")
    assert (code, outcome["state"]) == (4, "failed")
    assert "module does not compile for the kernel 5.15.0-91-generic" in outcome["message"]
    assert "/var/lib/gpu-rig/dkms-make.log" in outcome["hint"]
    assert "dumb_destroy" in on_rig(rig, "cat /var/lib/gpu-rig/dkms-make.log")
    assert on_rig(rig, "sudo dpkg --audit") == ""
    assert packages(rig) == before
    assert loaded(rig) == "525.105.17"


def test_4_under_secure_boot_only_signed_modules_are_taken(rig):
    fault(rig, "secure_boot")
    code, outcome = driver(rig, nvidia_driver_flavour="server")
    assert code == 4
    assert "Secure Boot is on" in outcome["message"]
    assert "set nvidia_driver_modules: signed" in outcome["message"]
    code, outcome = driver(rig, nvidia_driver_flavour="server", nvidia_driver_modules="signed")
    assert (code, outcome["message"]) == (0, "")
    assert loaded(rig) == "515.105.01"
    assert "nvidia-driver-515-server" in names(rig)
    assert not [name for name in names(rig) if name.startswith("nvidia-dkms")]
    fault(rig, "secure_boot", command="clear")


def test_5_a_folder_of_packages_is_a_source(rig):
    on_rig(rig, f"sudo mkdir -p {CACHE} && sudo sh -c 'cp /srv/rigsim/pool/cuda/*-535[_-]* {CACHE}'")
    code, outcome = driver(rig, nvidia_driver_branch="535", nvidia_driver_source="deb_cache",
                           nvidia_driver_deb_cache=CACHE, nvidia_driver_kernel_series="5.15")  # fmt: skip
    assert (code, outcome["message"]) == (0, "")
    assert loaded(rig) == "535.183.01"
    assert "l=gpu-rig deb cache" in on_rig(rig, "cat /etc/apt/preferences.d/gpu-rig-nvidia-driver")
    code, outcome = driver(rig, nvidia_driver_branch="535", nvidia_driver_source="deb_cache",
                           nvidia_driver_deb_cache=CACHE, nvidia_driver_kernel_series="5.15")  # fmt: skip
    assert (code, outcome["changed"]) == (0, 0)


def test_6_decommissioned_the_rig_is_as_before(rig):
    playbook = [BIN / "ansible-playbook", "-i", rig.inventory, ROOT / "playbooks" / "decommission.yml"]
    environment = {**os.environ, "ANSIBLE_ROLES_PATH": str(ROOT / "roles"), "PATH": f"{BIN}:{os.environ['PATH']}"}
    done = subprocess.run(playbook, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout
    assert packages(rig) == rig.packages
    assert loaded(rig) == ""
    assert (
        on_rig(
            rig, "sudo find /etc /var/lib/gpu-rig -name '*gpu-rig-n*' -o -name 'gpu-rig-deb*' -o -name 'nvidia-card*'"
        )
        == ""
    )
    again = subprocess.run(playbook, capture_output=True, text=True, check=False, env=environment)
    assert "changed=0" in again.stdout
