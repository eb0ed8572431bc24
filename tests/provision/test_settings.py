"""Under which settings Ansible runs."""

import os

import pytest

from rigctl import assets
from rigctl.errors import UsageError
from rigctl.provision.settings import ansible_environment, find_config


@pytest.fixture
def inventory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "park" / "inventory").mkdir(parents=True)
    return tmp_path / "park" / "inventory"


def test_defaults_where_nobody_says_otherwise(inventory):
    environment = ansible_environment(inventory, {"PATH": "/bin"})
    assert environment["ANSIBLE_PIPELINING"] == "True"
    assert environment["ANSIBLE_HOST_KEY_CHECKING"] == "True"
    assert environment["ANSIBLE_ROLES_PATH"] == str(assets.roles_dir())
    assert "ANSIBLE_CONFIG" not in environment
    assert environment["PATH"].endswith(":/bin")


@pytest.mark.parametrize("section", ["defaults", "connection", "ssh_connection"])
def test_the_operator_s_own_config_counts(inventory, section):
    config = inventory.parent / "ansible.cfg"
    config.write_text(f"[{section}]\npipelining = False\n", encoding="utf-8")
    environment = ansible_environment(inventory, {})
    assert environment["ANSIBLE_CONFIG"] == str(config)
    assert "ANSIBLE_PIPELINING" not in environment
    assert environment["ANSIBLE_FORKS"] == "32"


def test_the_operator_s_environment_counts(inventory):
    assert "ANSIBLE_FORKS" not in ansible_environment(inventory, {"ANSIBLE_FORKS": "3"})


def test_host_keys_are_checked_whatever_a_config_says(inventory):
    (inventory / "ansible.cfg").write_text("[defaults]\nhost_key_checking = False\n", encoding="utf-8")
    environment = ansible_environment(inventory, {"ANSIBLE_HOST_KEY_CHECKING": "False"})
    assert environment["ANSIBLE_HOST_KEY_CHECKING"] == "True"


def test_the_operator_s_roles_stay_usable(inventory):
    (inventory / "ansible.cfg").write_text("[defaults]\nroles_path = mine:/opt/roles\n", encoding="utf-8")
    roles = ansible_environment(inventory, {})["ANSIBLE_ROLES_PATH"].split(os.pathsep)
    assert roles == [str(assets.roles_dir()), str(inventory / "mine"), "/opt/roles"]


def test_where_a_config_is_looked_for(inventory, tmp_path):
    assert find_config(inventory, {}) is None
    (tmp_path / "ansible.cfg").touch()
    assert find_config(inventory, {}) == tmp_path / "ansible.cfg"
    (inventory.parent / "ansible.cfg").touch()
    assert find_config(inventory, {}) == inventory.parent / "ansible.cfg"
    assert str(find_config(inventory, {"ANSIBLE_CONFIG": "/else.cfg"})) == "/else.cfg"


def test_a_config_that_cannot_be_read_is_a_usage_error(inventory):
    (inventory / "ansible.cfg").write_text("no section\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"ansible\.cfg: cannot be read"):
        ansible_environment(inventory, {})
