"""What a login has that only OpenSSH's client knows is named, so that doctor can say why one way in fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rigctl.inventory.ansible_config import ConnectionDefaults
from rigctl.inventory.logins import build_login

if TYPE_CHECKING:
    from pathlib import Path


def only(options: str) -> tuple[str, ...]:
    values = {"ansible_host": "192.0.2.1", "ansible_ssh_common_args": f"-F none {options}"}
    return build_login("rig1", values, ConnectionDefaults()).openssh_only


def test_a_plain_login_has_nothing() -> None:
    assert only("") == ()


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ("-o IdentityAgent=/run/keys.sock", "IdentityAgent (run: export SSH_AUTH_SOCK=/run/keys.sock)"),
        ("-o CertificateFile=/etc/ops-cert.pub", "CertificateFile /etc/ops-cert.pub"),
        ("-o PKCS11Provider=/usr/lib/p11.so", "PKCS11Provider"),
    ],
)
def test_each_is_named(options: str, named: str) -> None:
    assert only(options) == (named,)


def test_kerberos_counts_where_there_is_a_ticket(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KRB5CCNAME", raising=False)
    assert only("-o GSSAPIAuthentication=yes") == ()
    monkeypatch.setenv("KRB5CCNAME", "KEYRING:persistent")
    assert only("-o GSSAPIAuthentication=yes") == ("GSSAPIAuthentication",)
    assert only("-o GSSAPIAuthentication=no") == ()


def test_the_agent_that_both_use_is_nothing_special(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
    assert only(f"-o IdentityAgent={tmp_path}/agent") == ()
    assert only("-o IdentityAgent=none") == ()
