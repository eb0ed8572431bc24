"""Known hosts: names, fingerprints, recording."""

from __future__ import annotations

import base64
import stat
import subprocess
from typing import TYPE_CHECKING

import pytest

from rigctl.errors import RigError
from rigctl.fleet.trust import HostKey, find_keys, forget_command, known_name, record_key
from rigctl.model.rig import Login

from .conftest_sshd import make_key

if TYPE_CHECKING:
    from pathlib import Path

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE1t3NdPkuNaJmcVmJ3s9y6ZJXyJ0VvYVZ9Fq3mTzW5K"


@pytest.mark.parametrize(
    ("line", "name", "matches"),
    [
        (f"192.0.2.1 {KEY}", "192.0.2.1", True),
        (f"192.0.2.1 {KEY}", "192.0.2.2", False),
        (f"rig1,192.0.2.1 {KEY} comment", "192.0.2.1", True),
        (f"[192.0.2.1]:2201 {KEY}", "[192.0.2.1]:2201", True),
        (f"[192.0.2.1]:2201 {KEY}", "192.0.2.1", False),
        (f"[192.0.2.*]:2201 {KEY}", "[192.0.2.7]:2201", True),
        (f"*.lab,!bad.lab {KEY}", "rig1.lab", True),
        (f"*.lab,!bad.lab {KEY}", "bad.lab", False),
        (f"RIG1 {KEY}", "rig1", True),
        (f"# 192.0.2.1 {KEY}", "192.0.2.1", False),
        (f"@cert-authority * {KEY}", "192.0.2.1", False),
        ("192.0.2.1 ssh-ed25519 not*base64", "192.0.2.1", False),
        ("192.0.2.1 ssh-ed25519", "192.0.2.1", False),
        (f"|1|damaged {KEY}", "192.0.2.1", False),
    ],
)
def test_which_lines_stand_for_a_name(tmp_path: Path, line: str, name: str, matches: bool) -> None:
    file = tmp_path / "known_hosts"
    file.write_text(f"\n{line}\n")
    assert [k.line for k in find_keys([tmp_path / "absent", file], name)] == ([2] if matches else [])


def test_openssh_agrees_on_hashes_and_fingerprints(tmp_path: Path) -> None:
    public = make_key(tmp_path / "key").with_suffix(".pub")
    file = tmp_path / "known_hosts"
    file.write_text(f"[192.0.2.1]:2201 {public.read_text()}")
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(file)], check=True, capture_output=True)
    (found,) = find_keys([file], "[192.0.2.1]:2201")
    said = subprocess.run(["ssh-keygen", "-lf", str(public)], capture_output=True, text=True, check=True).stdout
    assert found.key.fingerprint == said.split()[1]


def test_recorded_key_is_found_by_openssh(tmp_path: Path) -> None:
    file = tmp_path / "new" / "known_hosts"
    login = Login(address="192.0.2.1", port=2201, known_hosts_files=(str(file),))
    kind, blob = make_key(tmp_path / "key").with_suffix(".pub").read_text().split()[:2]
    assert record_key(login, HostKey(kind, base64.b64decode(blob))) == file
    said = subprocess.run(["ssh-keygen", "-F", known_name(login), "-f", str(file)], capture_output=True, check=False)
    assert said.returncode == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_recording_keeps_a_file_without_a_last_line_break(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    file.write_text(f"other {KEY}")
    record_key(Login(address="rig1", known_hosts_files=(str(file),)), HostKey("ssh-ed25519", b"x"))
    assert file.read_text().splitlines() == [f"other {KEY}", "rig1 ssh-ed25519 eA=="]


def test_dev_null_keeps_nothing() -> None:
    login = Login(address="rig1", known_hosts_files=("/dev/null",))
    with pytest.raises(RigError, match="keeps no host keys"):
        record_key(login, HostKey("ssh-ed25519", b"x"))


def test_forgetting_is_a_command_for_people(tmp_path: Path) -> None:
    login = Login(address="rig1", port=2201)
    assert forget_command(login, tmp_path) == f"ssh-keygen -R '[rig1]:2201' -f {tmp_path}"
