"""What doctor says of a rig that is fit, of one that is not, and which step it names."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from rigctl import sim
from rigctl.sim import faults
from rigctl.sim.rigs import wait_ready

pytestmark = [pytest.mark.rigs, pytest.mark.slow, pytest.mark.timeout(400)]
RIGCTL = Path(sys.executable).parent / "rigctl"

FRESH = {
    "apt_lock_held": ("apt lock", "/var/lib/dpkg/lock-frontend is held by process", "never delete"),
    "boot_full": ("disk /boot", "0 MiB free", "remove old kernels"),
    "card_missing": ("cards", "1 on the PCI bus, the spec asks for 2", "reseat"),
    "dpkg_interrupted": ("packages", "dpkg was interrupted", "dpkg --configure -a"),
    "secure_boot": ("Secure Boot", "on, and", "mokutil"),
    "sudo_password": ("sudo", "wants a password", "ansible_become_password"),
}
"""Fault of a rig that nothing was provisioned on → step, what is found, the fix."""
LEFT_TO_PROVISIONING = ("compiler_missing", "headers_missing", "nouveau_bound")
WITH_DRIVER = {
    "card_missing": ("cards", "1 on the PCI bus", "reseat"),
    "driver_library_mismatch": ("driver", "asked for is 515", "rigctl provision rig1"),
}


@pytest.fixture(scope="module")
def state(tmp_path_factory):
    state = sim.up(sim.UpOptions(count=1, training=False, directory=tmp_path_factory.mktemp("doctor") / "state"))
    yield state
    sim.down(state.directory)


@pytest.fixture(scope="module")
def driver(state):
    done = rigctl(state, "provision", "--tags", "base,nvidia_driver")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def rig(state):
    """The rig, without any fault before and after a test."""
    yield state.rigs[0]
    faults.clear(state.directory, "rig1")
    wait_ready(state, state.rigs[0])


def rigctl(state, *words: str) -> subprocess.CompletedProcess[str]:
    command = [RIGCTL, *words, "-i", str(state.inventory), "--runs", str(state.directory / "runs")]
    return subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


def doctor(state) -> tuple[int, list[tuple[str, str, str]], set[str]]:
    """Exit code, findings to be fixed, causes of what was left out."""
    done = rigctl(state, "doctor", "--json")
    data = json.loads(done.stdout)
    todo = [(f["what"], f["found"], f["fix"]) for f in data["findings"] if not f["ok"]]
    return done.returncode, todo, {one["because"] for one in data["left_out"]}


def assert_named(state, fault: str, step: str, found: str, fix: str) -> None:
    faults.apply(state.directory, "rig1", fault, {})
    code, todo, causes = doctor(state)
    assert [what for what, _, _ in todo] == [step]
    assert found in todo[0][1]
    assert fix in todo[0][2]
    assert causes <= {step}
    assert code == 1


class TestFresh:
    """Before anything was provisioned."""

    def test_fit(self, state, rig):
        assert doctor(state) == (0, [], set())

    @pytest.mark.parametrize("fault", FRESH)
    def test_the_step_is_named(self, state, rig, fault):
        assert_named(state, fault, *FRESH[fault])

    @pytest.mark.parametrize("fault", LEFT_TO_PROVISIONING)
    def test_what_provisioning_puts_right_is_no_finding(self, state, rig, fault):
        faults.apply(state.directory, "rig1", fault, {})
        assert doctor(state) == (0, [], set())


@pytest.mark.usefixtures("driver")
class TestWithDriver:
    """With the driver in it; after the tests above."""

    def test_fit(self, state, rig):
        assert doctor(state) == (0, [], set())

    @pytest.mark.parametrize("fault", WITH_DRIVER)
    def test_the_step_is_named(self, state, rig, fault):
        assert_named(state, fault, *WITH_DRIVER[fault])

    def test_cards_hidden_from_the_login(self, state, rig):
        script = "echo 'export CUDA_VISIBLE_DEVICES=0' > /etc/profile.d/narrow.sh"
        subprocess.run(["podman", "exec", rig.container, "sh", "-c", script], check=True)
        try:
            _, todo, _ = doctor(state)
        finally:
            subprocess.run(["podman", "exec", rig.container, "rm", "/etc/profile.d/narrow.sh"], check=True)
        assert [what for what, _, _ in todo] == ["cards of the login"]
        assert "CUDA_VISIBLE_DEVICES=0 hides 1 of 2 from ops" in todo[0][1]

    def test_a_kernel_that_waits_for_its_boot(self, state, rig):
        newer = "5.15.0-999-generic"
        script = f"touch /boot/vmlinuz-{newer}; mkdir -p /lib/modules/{newer}/build"
        subprocess.run(["podman", "exec", rig.container, "sh", "-c", script], check=True)
        try:
            _, todo, causes = doctor(state)
        finally:
            tidy = f"rm -r /boot/vmlinuz-{newer} /lib/modules/{newer}"
            subprocess.run(["podman", "exec", rig.container, "sh", "-c", tidy], check=True)
        assert [(what, found) for what, found, _ in todo] == [
            ("DKMS", f"not built for {newer} (next)"),
            ("pending reboot", f"pending: kernel 5.15.0-91-generic runs, {newer} is next"),
        ]
        assert causes == set()
