"""Sudo's password for Ansible: readable by it while it runs, nowhere else and not afterwards."""

from __future__ import annotations

import io
import os
import stat
import subprocess
import sys
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
SUDO = """\
#!/bin/sh
# Asks as sudo does, and runs the command for the right password.
while [ $# -gt 0 ]; do case $1 in -p) prompt=$2; shift 2;; -u) shift 2;; -*) shift;; *) break;; esac; done
printf %s "$prompt" >&2
read -r given
[ "$given" = "s3cret word" ] || { echo "Sorry, try again." >&2; exit 1; }
exec "$@"
"""


def test_it_goes_to_one_reader_and_stays_nowhere():
    with become_settings(SECRET) as variables:
        assert SECRET.get_secret_value() not in "".join(variables.values())
        place = Path(variables["ANSIBLE_BECOME_PASSWORD_FILE"])
        assert stat.S_ISFIFO(place.stat().st_mode)
        assert place.stat().st_mode & 0o777 == 0o600
        assert place.parent.stat().st_mode & 0o777 == 0o700
        assert place.read_text() == "s3cret word"
        assert list(place.parent.iterdir()) == [place]
    assert not place.parent.exists()


def test_nobody_has_to_read_it():
    with become_settings(SECRET) as variables:
        place = Path(variables["ANSIBLE_BECOME_PASSWORD_FILE"])
    assert not place.exists()


def test_ansible_reads_it(tmp_path):
    program = tmp_path / "sudo"
    program.write_text(SUDO)
    program.chmod(0o755)
    words = ["localhost", "-c", "local", "-b", "-m", "ansible.builtin.command", "-a", "echo done"]
    with become_settings(SECRET) as variables:
        asked = subprocess.run(
            [Path(sys.executable).parent / "ansible", *words, "-e", f"ansible_become_exe={program}"],
            env=os.environ | variables,
            capture_output=True,
            text=True,
            check=False,
        )
    assert "done" in asked.stdout, asked.stdout + asked.stderr
    assert "s3cret" not in asked.stdout + asked.stderr


def test_without_one_nothing_is_set():
    with become_settings(None) as variables:
        assert variables == {}


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
