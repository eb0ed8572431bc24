"""Under which settings Ansible runs."""

import os

import pytest

from rigctl import assets
from rigctl.errors import UsageError
from rigctl.inventory.ansible_config import config_file
from rigctl.provision.settings import ansible_environment


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The current folder; the user has no settings."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path


def test_defaults_where_nobody_says_otherwise(here):
    environment = ansible_environment({"PATH": "/bin"})
    assert environment["ANSIBLE_PIPELINING"] == "True"
    assert environment["ANSIBLE_HOST_KEY_CHECKING"] == "True"
    assert environment["ANSIBLE_ROLES_PATH"] == str(assets.roles_dir())
    assert environment["PATH"].endswith(":/bin")


@pytest.mark.parametrize("section", ["defaults", "connection", "ssh_connection"])
def test_the_operator_s_own_config_counts(here, section):
    config = here / "ansible.cfg"
    config.write_text(f"[{section}]\npipelining = False\n", encoding="utf-8")
    environment = ansible_environment({})
    assert environment["ANSIBLE_CONFIG"] == str(config)
    assert "ANSIBLE_PIPELINING" not in environment
    assert environment["ANSIBLE_FORKS"] == "32"


def test_the_operator_s_environment_counts(here):
    assert "ANSIBLE_FORKS" not in ansible_environment({"ANSIBLE_FORKS": "3"})


def test_host_keys_are_checked_whatever_a_config_says(here):
    (here / "ansible.cfg").write_text("[defaults]\nhost_key_checking = False\n", encoding="utf-8")
    environment = ansible_environment({"ANSIBLE_HOST_KEY_CHECKING": "False"})
    assert environment["ANSIBLE_HOST_KEY_CHECKING"] == "True"


def test_the_operator_s_roles_stay_usable(here):
    (here / "ansible.cfg").write_text("[defaults]\nroles_path = mine:/opt/roles\n", encoding="utf-8")
    roles = ansible_environment({})["ANSIBLE_ROLES_PATH"].split(os.pathsep)
    assert roles == [str(assets.roles_dir()), str(here / "mine"), "/opt/roles"]


def test_a_config_is_looked_for_where_ansible_does(here):
    """Else provisioning would log in otherwise than acceptance, which asks Ansible itself."""
    (here / "home" / ".ansible.cfg").touch()
    assert config_file({}) == here / "home" / ".ansible.cfg"
    (here / "ansible.cfg").touch()
    assert config_file({}) == here / "ansible.cfg"
    (here / "else.cfg").touch()
    assert config_file({"ANSIBLE_CONFIG": str(here / "else.cfg")}) == here / "else.cfg"
    here.chmod(0o777)
    assert config_file({}) == here / "home" / ".ansible.cfg"


def test_a_config_that_cannot_be_read_is_a_usage_error(here):
    (here / "ansible.cfg").write_text("no section\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"ansible\.cfg: cannot be read"):
        ansible_environment({})
