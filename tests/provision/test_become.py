"""Sudo's password for Ansible: readable by it while it runs, nowhere else and not afterwards."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from pydantic import SecretStr

from rigctl.cli.common import ask_secret, with_sudo_password
from rigctl.errors import UsageError
from rigctl.model.rig import Login
from rigctl.provision.become import become_settings
from rigctl.provision.run import ProvisionOptions, _asked
from tests.fleet.rigs import rig

SECRET = SecretStr("s3cret word")


def test_it_is_in_memory_alone_and_gone_afterwards():
    with become_settings(SECRET) as variables:
        assert SECRET.get_secret_value() not in "".join(variables.values())
        place = Path(variables["ANSIBLE_BECOME_PASSWORD_FILE"])
        assert place.read_text() == "s3cret word"
        assert place.stat().st_mode & 0o777 == 0o600
        assert str(place.readlink()).startswith("/memfd:")
    assert not place.exists()


def test_without_one_nothing_is_set():
    with become_settings(None) as variables:
        assert variables == {}


def test_a_controller_without_files_in_memory(monkeypatch):
    monkeypatch.delattr(os, "memfd_create")
    with pytest.raises(UsageError, match="needs Linux"), become_settings(SECRET):
        pass


def test_the_run_directory_never_holds_it(tmp_path):
    options = ProvisionOptions(inventory=None, runs=tmp_path, become_password=SECRET)
    assert "s3cret" not in repr(options) + repr(_asked(options))


def test_it_is_a_line_of_standard_input_where_there_is_no_terminal(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("one\ntwo\n"))
    assert [ask_secret("first").get_secret_value(), ask_secret("second").get_secret_value()] == ["one", "two"]
    with pytest.raises(UsageError, match="no answer to: third"):
        ask_secret("third")


def test_the_inventory_s_own_password_is_stronger(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("asked\n"))
    own = rig("rig1", Login(address="192.0.2.1", become_password=SecretStr("own")))
    fleet = with_sudo_password((own, rig("rig2")), asked=True)
    assert [one.login.become_password.get_secret_value() for one in fleet] == ["own", "asked"]


def test_nothing_is_asked_unless_wanted():
    fleet = (rig("rig1"),)
    assert with_sudo_password(fleet, asked=False) == fleet
