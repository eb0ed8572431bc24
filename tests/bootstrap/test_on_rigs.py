"""A simulated rig as a fresh box: a password login, a sudo that asks. Bootstrap, then provision and accept with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from rigctl import sim

pytestmark = [pytest.mark.rigs, pytest.mark.slow, pytest.mark.timeout(600)]
BIN = Path(sys.executable).parent
PASSWORD = "fresh-box-s3cret"  # noqa: S105
FRESH = f"""
set -eu
echo 'ops:{PASSWORD}' | chpasswd
echo 'ops ALL=(ALL) ALL' > /etc/sudoers.d/ops
rm -f /home/ops/.ssh/authorized_keys
sed -i 's/^PasswordAuthentication no/PasswordAuthentication yes/' /etc/ssh/sshd_config.d/rigsim.conf
systemctl reload ssh
"""


@dataclass(frozen=True)
class Box:
    state: sim.State
    runs: Path

    def rigctl(self, *words: str, given: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command while every process's command line and environment is looked at for the secret."""
        ended = threading.Event()
        seen: list[str] = []
        watcher = threading.Thread(target=watch, args=(ended, seen))
        watcher.start()
        try:
            done = subprocess.run(
                [BIN / "rigctl", *words, "-i", str(self.state.inventory)],
                input=given,
                capture_output=True,
                text=True,
                check=False,
                cwd=self.runs,
                env=os.environ | environment,
            )
        finally:
            ended.set()
            watcher.join()
        assert seen == []
        assert PASSWORD not in done.stdout + done.stderr
        return done

    def podman(self, script: str) -> str:
        words = ["podman", "exec", self.state.rig("rig1").container, "sh", "-c", script]
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout

    def host_variables(self, name: str, variables: dict[str, str]) -> Path:
        path = self.state.inventory / "host_vars" / "rig1" / name
        path.write_text(yaml.safe_dump(variables), encoding="utf-8")
        return path


def watch(ended: threading.Event, seen: list[str]) -> None:
    """Look at every process of the machine, those in rigs included, until told to end."""
    secret = PASSWORD.encode()
    while not ended.wait(0.1):
        for process in Path("/proc").glob("[0-9]*"):
            for name in ("cmdline", "environ"):
                try:
                    found = (process / name).read_bytes()
                except OSError:  # it ended, or is not ours to read
                    continue
                if secret in found:
                    seen.append(f"{name}: {found!r}")


@pytest.fixture(scope="module")
def box(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fresh")
    state = sim.up(sim.UpOptions(count=1, directory=folder / "state", training=False))
    try:
        one = Box(state, folder / "runs")
        one.runs.mkdir()
        one.podman(FRESH)
        state.known_hosts.write_text("", encoding="utf-8")
        yield one
    finally:
        sim.down(state.directory)


def test_1_from_a_password_to_a_key(box):
    assert box.rigctl("check").returncode == 3
    done = box.rigctl("bootstrap", "rig1", "--ask-pass", "--yes", "--json", given=f"{PASSWORD}\n")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert (said["user"], said["key_installed"], said["sudo_asks"]) == ("ops", True, True)
    assert len(said["box"]["cards"]) == 2
    assert "imulat" in said["box"]["product"]
    assert box.podman("journalctl -u ssh | grep -c 'Accepted password'").strip() == "1"


def test_2_again_nothing_is_to_do(box):
    done = box.rigctl("bootstrap", "rig1", "--ask-become-pass", "--json", given=f"{PASSWORD}\n")
    assert done.returncode == 0, done.stderr
    assert not json.loads(done.stdout)["key_installed"]
    assert box.podman("wc -l < /home/ops/.ssh/authorized_keys").strip() == "1"


def test_3_doctor_by_prompt(box):
    """Both ways in become root: rigctl's own and Ansible's."""
    done = box.rigctl("doctor", "--json", "-K", given=f"{PASSWORD}\n")
    ok = {f["what"] for f in json.loads(done.stdout)["findings"] if f["subject"] == "rig1" and f["ok"]}
    assert {"sudo", "Ansible's way in"} <= ok, done.stdout


def test_4_provision_by_prompt(box):
    words = ("provision", "--tags", "base", "--json")
    without = json.loads(box.rigctl(*words).stdout)["rigs"][0]
    assert without["state"] == "failed"
    assert "password" in without["message"]
    done = box.rigctl(*words, "--ask-become-pass", given=f"{PASSWORD}\n")
    assert done.returncode == 0, done.stdout + done.stderr


def test_5_a_wrong_password_is_said(box):
    done = box.rigctl("provision", "--tags", "base", "--json", "-K", given="wrong\n")
    assert done.returncode == 4
    assert "password" in json.loads(done.stdout)["rigs"][0]["message"].lower()


def test_6_accept_by_prompt(box):
    started = time.monotonic()
    done = box.rigctl("accept", "--profile", "quick", "--json", "-K", given=f"{PASSWORD}\n")
    verdicts = json.loads(done.stdout)["rigs"][0]["verdicts"]
    # Nothing is installed yet: what counts is that root's questions were answered.
    reached = [v["verdict"] for v in verdicts if v["check"] == "measure.reached"]
    assert "error" not in reached, verdicts
    assert len(verdicts) > 5
    assert time.monotonic() - started < 120


def test_7_by_vault(box, tmp_path):
    key = tmp_path / "vault"
    key.write_text("vault-words", encoding="utf-8")
    box.host_variables("login.yml", {"ansible_become_password": "{{ vault_become }}"})
    secret = box.host_variables("vault.yml", {"vault_become": PASSWORD})
    vault = [BIN / "ansible-vault", "encrypt", "--vault-password-file", key, secret]
    subprocess.run(vault, check=True, capture_output=True)
    done = box.rigctl("provision", "--tags", "base", "--json", ANSIBLE_VAULT_PASSWORD_FILE=str(key))
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["rigs"][0]["changed"] == 0
    done = box.rigctl("check", "--json", ANSIBLE_VAULT_PASSWORD_FILE=str(key))
    assert len(json.loads(done.stdout)["rigs"][0]["verdicts"]) > 5


def test_8_no_run_directory_holds_the_secret(box):
    files = [path for path in box.runs.rglob("*") if path.is_file()]
    assert len(files) > 10
    assert [str(path) for path in files if PASSWORD.encode() in path.read_bytes()] == []
