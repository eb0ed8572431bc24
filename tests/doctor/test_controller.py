"""The machine that rigctl runs on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rigctl.doctor import controller, examine_controller

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from rigctl.doctor import Finding


def found(tmp_path: Path, what: str) -> Finding:
    (finding,) = [finding for finding in examine_controller(tmp_path) if finding.what == what]
    return finding


def test_fit(tmp_path: Path) -> None:
    findings = {finding.what: finding for finding in examine_controller(tmp_path / "runs")}
    assert list(findings) == ["Python", "ansible-core", "OpenSSH client", "locale", "disk"]
    assert all(finding.ok for finding in findings.values() if finding.what != "locale")


def test_no_openssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    finding = found(tmp_path, "OpenSSH client")
    assert (finding.ok, finding.fix) == (False, "run: apt-get install openssh-client")


def test_old_ansible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller, "version", lambda _name: "2.9.27")
    finding = found(tmp_path, "ansible-core")
    assert not finding.ok
    assert "pip install 'ansible-core>=2.17'" in finding.fix


def test_ansible_without_its_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller.sys, "executable", str(tmp_path / "python"))
    assert "without its programs" in found(tmp_path, "ansible-core").found


def test_wrong_locale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller.locale, "getpreferredencoding", lambda do_setlocale: "ANSI_X3.4-1968")
    assert "LC_ALL=C.UTF-8" in found(tmp_path, "locale").fix


def test_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller, "_MIN_FREE_BYTES", 1 << 60)
    finding = found(tmp_path, "disk")
    assert not finding.ok
    assert "--runs" in finding.fix
