"""`rigctl doctor` against a real server: findings, trust, exit codes."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rigctl import doctor as examination
from rigctl.cli.app import main
from rigctl.doctor import examine_controller, examine_rig, examine_rigs
from rigctl.fleet import commands

from .conftest_sshd import Server, free_port, make_key
from .rigs import rig

if TYPE_CHECKING:
    from rigctl.model.rig import Rig


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch, sshd: Server) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    monkeypatch.setattr(commands, "ROOT", "nobody-is-root")
    sshd.sudo_mode("nopasswd")


def steps(one: Rig) -> dict[str, bool]:
    return {finding.what: finding.ok for finding in examine_rig(one).findings}


def failed(one: Rig) -> tuple[str, str, str]:
    *passed, last = examine_rig(one).findings
    assert all(finding.ok for finding in passed)
    assert not last.ok
    return last.what, last.found, last.fix


class TestRig:
    def test_fit(self, sshd: Server, tmp_path: Path) -> None:
        one = rig("rig1", sshd.login(sshd.known_hosts(tmp_path)))
        if os.geteuid() != 0:
            pytest.skip("the stand-in for sudo cannot make anybody root")
        assert steps(one) == dict.fromkeys(("reachable", "host key", "login", "sudo", "python3"), True)

    def test_unknown_key(self, sshd: Server, tmp_path: Path) -> None:
        what, found, fix = failed(rig("rig1", sshd.login(sshd.known_hosts(tmp_path, ""))))
        assert what == "host key"
        assert "SHA256:" in found
        assert "rigctl doctor rig1 --trust" in fix

    def test_wrong_key(self, sshd: Server, tmp_path: Path) -> None:
        wrong = make_key(tmp_path / "wrong")
        login = sshd.login(sshd.known_hosts(tmp_path), identity_files=(str(wrong),))
        what, _, fix = failed(rig("rig1", login))
        assert (what, fix.split()[1]) == ("login", "ssh-copy-id")

    def test_sudo_with_password(self, sshd: Server, tmp_path: Path) -> None:
        sshd.sudo_mode("password")
        what, found, fix = failed(rig("rig1", sshd.login(sshd.known_hosts(tmp_path))))
        assert what == "sudo"
        assert "wants a password" in found
        assert "ansible_become_password" in fix

    def test_one_unreachable_rig_does_not_hold_the_others(self, sshd: Server, tmp_path: Path) -> None:
        known = sshd.known_hosts(tmp_path)
        rigs = [rig("rig1", sshd.login(known, port=free_port())), rig("rig2", sshd.login(known))]
        seen = {one.rig.name: one.findings[0] for one in examine_rigs(rigs)}
        assert seen["rig1"].what == "reachable"
        assert not seen["rig1"].ok
        assert seen["rig2"].ok


class TestController:
    def test_fit(self, tmp_path: Path) -> None:
        findings = {finding.what: finding for finding in examine_controller(tmp_path / "runs")}
        assert list(findings) == ["Python", "ansible-core", "OpenSSH client", "locale", "disk"]
        assert findings["disk"].ok

    def test_no_openssh(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", str(tmp_path))
        (finding,) = [f for f in examine_controller(tmp_path) if f.what == "OpenSSH client"]
        assert (finding.ok, finding.fix) == (False, "run: apt-get install openssh-client")

    def test_old_ansible(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(examination, "version", lambda _name: "2.9.27")
        (finding,) = [f for f in examine_controller(tmp_path) if f.what == "ansible-core"]
        assert not finding.ok
        assert "pip install 'ansible-core>=2.17'" in finding.fix

    def test_full_disk(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(examination, "_MIN_FREE_BYTES", 1 << 60)
        (finding,) = [f for f in examine_controller(tmp_path) if f.what == "disk"]
        assert not finding.ok
        assert "--runs" in finding.fix


class TestCommand:
    @pytest.fixture
    def known(self, sshd: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        known = sshd.known_hosts(tmp_path, "")
        fleet = (rig("rig1", sshd.login(known)),)
        monkeypatch.setattr("rigctl.inventory.load_fleet", lambda _inventory, _pattern: fleet)
        return known

    def test_untrusted_is_a_finding(self, known: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["doctor"]) == 1
        out = capsys.readouterr().out
        assert "FIX  host key" in out
        assert "doctor: 0 of 1 rigs fit · findings: 1" in out
        assert known.read_text() == ""

    def test_trust_shows_the_key_and_records_it(
        self, sshd: Server, known: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        code = main(["doctor", "--trust", "--yes", "--json"])
        said = capsys.readouterr()
        assert "shows ssh-ed25519 SHA256:" in said.err
        assert known.read_text() == f"[127.0.0.1]:{sshd.port} {sshd.host_key}\n"
        data = json.loads(said.out)
        assert code == (1 if data["counts"]["finding"] else 0)
        assert {"subject": "rig1", "what": "host key", "ok": True, "found": "trusted", "fix": ""} in data["findings"]

    def test_no_answer_is_a_no(
        self, known: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with Path(os.devnull).open() as nothing:
            monkeypatch.setattr("sys.stdin", nothing)
            assert main(["doctor", "--trust"]) == 1
        assert "SHA256:" in capsys.readouterr().err
        assert known.read_text() == ""

    def test_ctrl_c_is_no_answer_but_an_end(
        self, known: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Interrupted(io.StringIO):
            def readline(self, *_: object) -> str:
                raise KeyboardInterrupt

        monkeypatch.setattr("sys.stdin", Interrupted())
        assert main(["doctor", "--trust"]) == 130
        assert capsys.readouterr().err.splitlines()[-1] == "error: interrupted"
        assert known.read_text() == ""

    def test_changed_key_is_never_overwritten(
        self, sshd: Server, known: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        other = make_key(tmp_path / "other").with_suffix(".pub").read_text()
        known.write_text(f"[127.0.0.1]:{sshd.port} {other}")
        before = known.read_text()
        assert main(["doctor", "--trust", "--yes"]) == 1
        out = capsys.readouterr().out
        assert out.count("SHA256:") == 2
        assert "ssh-keygen -R" in out
        assert known.read_text() == before

    def test_known_hosts_that_keeps_nothing(
        self, sshd: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        fleet = (rig("rig1", sshd.login("/dev/null")),)
        monkeypatch.setattr("rigctl.inventory.load_fleet", lambda _inventory, _pattern: fleet)
        assert main(["doctor", "--trust", "--yes"]) == 1
        assert "/dev/null keeps no host keys" in capsys.readouterr().out
