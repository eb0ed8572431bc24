"""`rigctl bootstrap` against a server that takes a password: what it does, says, and leaves nowhere."""

from __future__ import annotations

import getpass
import io
import json
import subprocess
import time

import pytest

from rigctl.bootstrap import steps
from rigctl.cli.app import main
from rigctl.fleet import commands
from tests.fleet.conftest_sshd import make_key
from tests.fleet.rigs import rig

from .fresh_box import PASSWORD, fresh_box


@pytest.fixture
def box(tmp_path, monkeypatch):
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    monkeypatch.setattr(commands, "ROOT", "nobody-is-root")
    with fresh_box(tmp_path / "home") as one:
        yield one


@pytest.fixture
def key(tmp_path):
    return make_key(tmp_path / "id_ed25519")


@pytest.fixture
def known(tmp_path):
    return tmp_path / "known_hosts"


@pytest.fixture
def login(box, key, known, monkeypatch):
    """Lets a test say how the inventory logs in; by default as it should be."""

    def prepare(**changes):
        words = {
            "address": "127.0.0.1",
            "port": box.port,
            "user": "jo",
            "identity_files": (str(key),),
            "known_hosts_files": (str(known),),
            "connect_timeout_s": 5,
        }
        fleet = (rig("rig1", commands_login({**words, **changes})),)
        monkeypatch.setattr("rigctl.inventory.load_fleet", lambda _inventory, _pattern: fleet)

    prepare()
    return prepare


def commands_login(words):
    return rig("any").login.model_validate(words)


@pytest.fixture
def bootstrap(login, monkeypatch, capsys):
    """The command: exit code, its two outputs; standard input gives the passwords."""

    def run(*words, given=f"{PASSWORD}\n"):
        monkeypatch.setattr("sys.stdin", io.StringIO(given))
        code = main(["bootstrap", "rig1", *words])
        said = capsys.readouterr()
        assert PASSWORD not in said.out + said.err
        return code, said.out, said.err

    return run


class TestTheWholeWay:
    def test_from_a_password_to_a_key(self, box, bootstrap, key, known):
        code, out, err = bootstrap("--yes", "--ask-pass")
        assert code == 0, err
        assert "shows ecdsa-sha2-nistp256 SHA256:" in err
        assert len(known.read_text().splitlines()) == 1
        assert box.authorized == [key.with_suffix(".pub").read_text().strip()]
        assert [a for a in box.attempts if a.startswith("password")] == ["password jo"]
        assert box.attempts[-1] == "publickey jo"
        assert "01:00.0 VGA compatible controller: NVIDIA Corporation GA102 [GeForce RTX 3090 Ti]" in out
        assert "Audio" not in out
        for word in ("system", "CPU", "GPU", "disk", "Secure Boot", "python3"):
            assert f"\n  {word} " in out
        for step in ("host key", "key", "login", "cloud-init", "sudo"):
            assert f"  ok   {step} " in err

    def test_again_nothing_is_to_do(self, box, bootstrap, known):
        assert bootstrap("--yes", "--ask-pass")[0] == 0
        before = (box.authorized, known.read_text())
        box.attempts.clear()
        code, _, err = bootstrap()
        assert code == 0
        assert set(box.attempts) == {"publickey jo"}
        assert (box.authorized, known.read_text()) == before
        assert "by a key that it had already" in err

    def test_as_data(self, bootstrap):
        code, out, _ = bootstrap("--yes", "--ask-pass", "--json")
        data = json.loads(out)
        assert code == 0
        assert (data["rig"], data["user"], data["key_installed"], data["sudo_asks"]) == ("rig1", "jo", True, False)
        assert data["box"]["memory_gib"] > 0
        assert data["box"]["disks"][0]["place"] == "/"

    def test_no_secret_is_in_a_command_line(self, box, bootstrap):
        box.sudo_mode("password")
        assert bootstrap("--yes", "--ask-pass")[0] == 0
        assert [line for line in box.lines if PASSWORD in line] == []
        assert any("sudo -k -S" in line for line in box.lines)

    def test_keys_that_are_there_stay(self, box, bootstrap, key):
        (box.home / ".ssh").mkdir()
        (box.home / ".ssh" / "authorized_keys").write_text("ssh-ed25519 AAAA other")  # no line end
        assert bootstrap("--yes", "--ask-pass")[0] == 0
        assert box.authorized == ["ssh-ed25519 AAAA other", key.with_suffix(".pub").read_text().strip()]
        assert (box.home / ".ssh" / "authorized_keys").stat().st_mode & 0o022 == 0


class TestHostKey:
    def test_no_terminal_and_no_word_is_a_no(self, box, bootstrap, known):
        code, _, err = bootstrap("--ask-pass")
        assert code == 3
        assert "host key unknown" in err
        assert not known.exists()
        assert box.attempts == []

    def test_the_expected_one(self, bootstrap, known):
        _, _, err = bootstrap("--ask-pass")
        shown = next(word for word in err.split() if word.startswith("SHA256:"))
        assert bootstrap("--ask-pass", "--fingerprint", shown)[0] == 0
        assert known.exists()

    def test_another_than_expected(self, box, bootstrap, known):
        code, _, err = bootstrap("--ask-pass", "--fingerprint", "SHA256:other")
        assert code == 3
        assert "not the expected SHA256:other" in err
        assert not known.exists()
        assert box.attempts == []


class TestLogin:
    def test_without_a_password_the_remedy_names_it(self, bootstrap):
        code, _, err = bootstrap("--yes")
        assert code == 3
        assert "--ask-pass" in err.splitlines()[-1]

    def test_a_wrong_password_is_tried_once(self, box, bootstrap):
        code, _, err = bootstrap("--yes", "--ask-pass", given="wrong\n")
        assert code == 3
        assert "did not accept the password" in err
        assert box.attempts.count("password jo") == 1
        assert box.authorized == []

    def test_no_passwords_taken(self, box, bootstrap):
        box.methods = "publickey"
        code, _, err = bootstrap("--yes", "--ask-pass")
        assert code == 3
        assert "takes no password (it takes: publickey)" in err
        assert "console" in err

    def test_a_password_that_is_asked_for_as_a_question(self, box, bootstrap):
        box.methods = "publickey,keyboard-interactive"
        code, _, err = bootstrap("--yes", "--ask-pass")
        assert code == 0, err
        assert box.attempts.count("interactive jo") == 1

    def test_a_second_factor(self, box, bootstrap):
        box.methods, box.questions = "publickey,keyboard-interactive", 2
        code, _, err = bootstrap("--yes", "--ask-pass")
        assert code == 3
        assert "asks for more than a password: 'Code:'" in err
        assert f"ssh-copy-id -p {box.port} jo@127.0.0.1" in err
        assert box.answers == [["", ""]]

    def test_through_a_jump_host(self, box, bootstrap, login, known, sshd):
        """That one is logged in to by key; both host keys are shown and recorded, each once."""
        jump = f"{getpass.getuser()}@127.0.0.1:{sshd.port}"
        login(proxy_jump=jump, identity_files=(str(sshd.key_file),))
        code, _, err = bootstrap("--yes", "--ask-pass")
        assert code == 0, err
        assert [line.split()[0] for line in known.read_text().splitlines()] == [
            f"[127.0.0.1]:{sshd.port}",
            f"[127.0.0.1]:{box.port}",
        ]

    def test_a_jump_host_that_refuses_is_named(self, box, bootstrap, login, key, sshd):
        login(proxy_jump=f"{getpass.getuser()}@127.0.0.1:{sshd.port}")
        code, _, err = bootstrap("--yes", "--ask-pass")
        assert code == 3
        assert "rig1: jump host 127.0.0.1" in err
        assert "--ask-pass" not in err.splitlines()[-1]
        assert box.attempts == []

    def test_an_expired_password(self, box, bootstrap):
        box.answer = (1, b"Password change required but no TTY available.\n")
        code, _, err = bootstrap("--yes", "--ask-pass")
        assert code == 3
        assert "the password of jo has expired" in err

    def test_a_home_that_cannot_be_written(self, box, bootstrap):
        (box.home / ".ssh").touch()
        code, _, err = bootstrap("--yes", "--ask-pass")
        assert code == 3
        assert "the key cannot be installed: mkdir:" in err

    def test_a_key_with_a_passphrase(self, box, login, bootstrap, tmp_path):
        locked = make_key(tmp_path / "locked", "words")
        login(identity_files=(str(locked),))
        code, _, err = bootstrap("--yes", "--ask-pass")
        assert code == 3
        assert "although the key is installed" in err
        assert f"ssh-add {locked}" in err

    def test_no_key_anywhere(self, box, login, bootstrap, tmp_path):
        login(identity_files=(str(tmp_path / "none"),))
        code, _, err = bootstrap("--yes", "--ask-pass")
        assert code == 2
        assert "ssh-keygen -t ed25519" in err
        assert box.attempts == []

    def test_another_user_than_the_inventory_s(self, login, bootstrap):
        login(user="stranger")
        code, _, err = bootstrap("--yes", "--ask-pass", "--user", "jo")
        assert code == 3
        assert "rig1 is ready for jo, but the inventory logs in otherwise" in err
        assert "set ansible_user: jo for rig1" in err

    def test_another_key_than_the_inventory_s(self, box, login, bootstrap, tmp_path, key):
        other = make_key(tmp_path / "other")
        code, _, err = bootstrap("--yes", "--ask-pass", "--key", str(other))
        assert code == 3
        assert f"ansible_ssh_private_key_file: {other}" in err
        assert box.authorized == [other.with_suffix(".pub").read_text().strip()]

    def test_a_public_key_is_computed_where_its_file_is_missing(self, box, bootstrap, key):
        public = key.with_suffix(".pub")
        blob = public.read_text().split()[1]
        public.unlink()
        assert bootstrap("--yes", "--ask-pass")[0] == 0
        assert box.authorized[0].split()[1] == blob


class TestSudo:
    def test_the_login_s_password_is_sudo_s(self, box, bootstrap):
        box.sudo_mode("password")
        code, _, err = bootstrap("--yes", "--ask-pass")
        assert code == 0
        assert "root, with a password" in err
        assert "--ask-become-pass" in err

    def test_a_password_of_its_own(self, box, bootstrap):
        assert bootstrap("--yes", "--ask-pass")[0] == 0
        box.sudo_mode("password")
        assert bootstrap("--ask-become-pass")[0] == 0
        code, _, err = bootstrap("--ask-become-pass", given="wrong\n")
        assert code == 3
        assert "sudo did not accept the password" in err

    def test_none_is_known(self, box, bootstrap):
        assert bootstrap("--yes", "--ask-pass")[0] == 0
        box.sudo_mode("password")
        code, _, err = bootstrap()
        assert code == 3
        assert "sudo wants a password" in err

    def test_nobody_may_use_it(self, box, bootstrap):
        box.sudo_mode("forbidden")
        code, _, err = bootstrap("--yes", "--ask-pass")
        assert code == 3
        assert "not in the sudoers file" in err


class TestCloudInit:
    def test_it_is_waited_for(self, box, bootstrap, monkeypatch):
        monkeypatch.setattr(steps, "_POLL_S", 0.05)
        count = box.home / "count"
        box.program(
            "cloud-init",
            f"#!/bin/sh\necho x >> {count}\n"
            f"[ $(wc -l < {count}) -gt 3 ] && echo status: done || echo status: running\n",
        )
        code, _, err = bootstrap("--yes", "--ask-pass")
        assert code == 0
        assert len(count.read_text().splitlines()) == 4
        assert "cloud-init   done" in err

    def test_it_does_not_end(self, box, bootstrap):
        box.program("cloud-init", "#!/bin/sh\necho status: running\n")
        started = time.monotonic()
        code, _, err = bootstrap("--yes", "--ask-pass", "--cloud-init-timeout", "0")
        assert code == 3
        assert "cloud-init has not ended after 0 s" in err
        assert time.monotonic() - started < 10

    def test_it_failed(self, box, bootstrap):
        box.program("cloud-init", "#!/bin/sh\necho status: error\nexit 1\n")
        code, _, err = bootstrap("--yes", "--ask-pass")
        assert code == 3
        assert "cloud-init ended with an error" in err

    def test_there_is_none(self, box, bootstrap):
        (box.home / "bin" / "cloud-init").unlink()
        code, _, err = bootstrap("--yes", "--ask-pass")
        assert code == 0
        assert "cloud-init   not installed" in err


def test_one_rig_at_a_time(monkeypatch, capsys):
    monkeypatch.setattr("rigctl.inventory.load_fleet", lambda _inventory, _pattern: (rig("rig1"), rig("rig2")))
    assert main(["bootstrap", "all"]) == 2
    assert "'all' is 2 rigs: rig1, rig2" in capsys.readouterr().err


def test_the_install_script_is_shell(tmp_path):
    done = subprocess.run(["sh", "-n", "-c", steps.INSTALL + steps.LOOK], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
