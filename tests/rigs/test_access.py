"""One rig that cannot be reached or used is an error with its remedy; the other rig goes on."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
import yaml

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Fleet

pytestmark = [pytest.mark.rigs, pytest.mark.timeout(300, func_only=True)]


@pytest.fixture
def inventory(fleet: Fleet, tmp_path: Path) -> Path:
    """A copy of the rigs' inventory, to be changed."""
    return shutil.copytree(fleet.state.inventory, tmp_path / "inventory")


def change_rig2(inventory: Path, **variables) -> None:
    path = inventory / "host_vars" / "rig2" / "login.yml"
    path.write_text(yaml.safe_dump(variables), encoding="utf-8")


def check(fleet: Fleet, inventory: Path) -> tuple[int, dict[str, dict]]:
    """Exit code, and per rig its record."""
    done = fleet.rigctl("check", "-i", str(inventory), "--json")
    return done.returncode, {rig["name"]: rig for rig in json.loads(done.stdout)["rigs"]}


def only_error(rig: dict) -> dict:
    assert [v["check"] for v in rig["verdicts"]] == ["measure.reached"]
    assert rig["verdicts"][0]["verdict"] == "error"
    return rig["verdicts"][0]


def assert_rig1_went_on(rigs: dict[str, dict]) -> None:
    verdicts = {v["verdict"] for v in rigs["rig1"]["verdicts"]}
    assert verdicts <= {"pass", "blind", "skip"}
    assert len(rigs["rig1"]["verdicts"]) > 5


def as_root(fleet: Fleet, script: str) -> None:
    words = ["podman", "exec", fleet.state.rig("rig2").container, "sh", "-c", script]
    subprocess.run(words, check=True, capture_output=True)


def test_all_well(fleet, inventory):
    code, rigs = check(fleet, inventory)
    assert code == 0
    assert_rig1_went_on(rigs)


def test_unreachable(fleet, inventory):
    change_rig2(inventory, ansible_port=1)
    code, rigs = check(fleet, inventory)
    assert code == 3
    assert "refused" in only_error(rigs["rig2"])["reason"]
    assert_rig1_went_on(rigs)


def test_wrong_key(fleet, inventory, tmp_path):
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "other"], check=True)
    change_rig2(inventory, ansible_ssh_private_key_file=str(tmp_path / "other"))
    code, rigs = check(fleet, inventory)
    assert code == 3
    error = only_error(rigs["rig2"])
    assert "key" in error["reason"]
    assert error["fix"]
    assert_rig1_went_on(rigs)


def test_unknown_host_key_and_how_it_is_trusted(fleet, inventory, tmp_path):
    known = tmp_path / "known_hosts"
    known.touch()
    options = f"-o UserKnownHostsFile={known} -o GlobalKnownHostsFile=/dev/null -o IdentitiesOnly=yes"
    change_rig2(inventory, ansible_ssh_common_args=options)
    code, rigs = check(fleet, inventory)
    assert code == 3
    assert "rigctl doctor rig2 --trust" in only_error(rigs["rig2"])["fix"]
    assert_rig1_went_on(rigs)

    shown = fleet.rigctl("doctor", "rig2", "--trust", "--yes", "-i", str(inventory))
    assert "SHA256:" in shown.stdout + shown.stderr
    assert known.read_text(encoding="utf-8")
    assert check(fleet, inventory)[0] == 0


def test_sudo_that_wants_a_password(fleet, inventory):
    as_root(fleet, "mkdir /var/tmp/sudoers && mv /etc/sudoers.d/* /var/tmp/sudoers/")
    as_root(fleet, "echo 'ops ALL=(ALL) ALL' > /etc/sudoers.d/ops")
    try:
        code, rigs = check(fleet, inventory)
    finally:
        as_root(fleet, "mv /var/tmp/sudoers/* /etc/sudoers.d/ && rmdir /var/tmp/sudoers")
    assert code == 3
    error = only_error(rigs["rig2"])
    assert "sudo" in error["reason"]
    assert "password" in error["reason"] + error["fix"]
    assert_rig1_went_on(rigs)


def test_plain_ssh_and_plain_ansible_use_the_same_rigs(fleet, inventory):
    words = ["ssh", "-F", str(fleet.state.ssh_config), "rig1", "hostname"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL)
    assert done.stdout.strip() == "rig1"
