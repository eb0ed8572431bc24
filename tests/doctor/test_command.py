"""`rigctl doctor` against a real server, by both ways in: findings, trust, exit codes."""

from __future__ import annotations

import io
import json
import os
import re
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rigctl.cli.app import main
from rigctl.doctor import RigExamination, controller, examine_rigs
from rigctl.doctor import rig as rig_part
from rigctl.fleet import commands
from rigctl.inventory.ansible_config import ConnectionDefaults
from rigctl.inventory.logins import build_login
from tests.fleet.conftest_sshd import free_port, make_key
from tests.fleet.rigs import rig

from .fit import BARE, VIEW, system

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rigctl.model.rig import Login, Rig
    from tests.fleet.conftest_sshd import Server

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the stand-in for sudo cannot make anybody root")


@dataclass
class Park:
    """An inventory on disk, for Ansible, and the same rigs as rigctl reads them."""

    folder: Path
    server: Server
    monkeypatch: pytest.MonkeyPatch

    def write(self, logins: dict[str, Login], **extra: str) -> tuple[Rig, ...]:
        lines = []
        for name, login in logins.items():
            options = " ".join(f"-o UserKnownHostsFile={file}" for file in login.known_hosts_files)
            options += " -o GlobalKnownHostsFile=/dev/null -o IdentitiesOnly=yes"
            if login.proxy_jump:
                options += f" -o ProxyCommand='ssh -i {login.identity_files[0]} {options} -W %h:%p "
                options += f"-p {self.server.port} {login.user}@127.0.0.1'"
            lines.append(
                f"{name} ansible_host={login.address} ansible_port={login.port} ansible_user={login.user} "
                f'ansible_ssh_private_key_file={login.identity_files[0]} ansible_ssh_common_args="{options}"'
                + "".join(f" {key}={value}" for key, value in extra.items())
            )
        (self.folder / "hosts.ini").write_text("\n".join(lines) + "\n")
        fleet = tuple(rig(name, login) for name, login in logins.items())
        self.monkeypatch.setattr("rigctl.inventory.load_fleet", lambda _inventory, _pattern: fleet)
        return fleet

    @property
    def inventory(self) -> Path:
        return self.folder / "hosts.ini"

    def doctor(self, *words: str) -> int:
        return main(["doctor", "-i", str(self.inventory), *words])


@pytest.fixture
def park(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sshd: Server) -> Park:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    monkeypatch.setattr(commands, "ROOT", "nobody-is-root")
    sshd.sudo_mode("nopasswd")
    (tmp_path / "inventory").mkdir()
    return Park(tmp_path / "inventory", sshd, monkeypatch)


@pytest.fixture
def fit_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine behind the server is this one; what it is like is not the matter here."""
    look = f"import sys; sys.stdout.write({json.dumps(system(**BARE, cards_on_bus=['0a:00.0']).model_dump_json())})"
    monkeypatch.setattr(rig_part, "_LOOK", _Text(look))


@dataclass
class _Text:
    text: str

    def read_bytes(self) -> bytes:
        return self.text.encode()


def examine(park: Park, fleet: Sequence[Rig]) -> dict[str, RigExamination]:
    return {one.rig.name: one for one in examine_rigs(fleet, park.inventory)}


def todo(one: RigExamination) -> list[tuple[str, str, str]]:
    return [(finding.what, finding.found, finding.fix) for finding in one.findings if not finding.ok]


@pytest.mark.usefixtures("fit_system")
class TestBothWays:
    def test_fit(self, park: Park, sshd: Server, tmp_path: Path) -> None:
        fleet = park.write({"rig1": sshd.login(sshd.known_hosts(tmp_path))})
        (one,) = examine(park, fleet).values()
        assert todo(one) == []
        assert [f.what for f in one.findings[:6]] == [
            "reachable", "host key", "login", "sudo", "Ansible's way in", "python3"
        ]  # fmt: skip
        assert one.left_out == ()

    def test_through_a_jump_host(self, park: Park, sshd: Server, tmp_path: Path) -> None:
        jump = f"root@127.0.0.1:{sshd.port}"
        fleet = park.write({"rig1": sshd.login(sshd.known_hosts(tmp_path), proxy_jump=jump)})
        (one,) = examine(park, fleet).values()
        assert todo(one) == []

    def test_by_an_ipv6_address(self, park: Park, sshd: Server, tmp_path: Path) -> None:
        with socket.socket(socket.AF_INET6) as probe:
            if probe.connect_ex(("::1", sshd.port)) != 0:
                pytest.skip("no IPv6 on this machine")
        known = sshd.known_hosts(tmp_path, f"[::1]:{sshd.port} {sshd.host_key}\n")
        fleet = park.write({"rig1": sshd.login(known, address="::1")})
        (one,) = examine(park, fleet).values()
        assert todo(one) == []

    def test_ansible_alone_is_kept_out(self, park: Park, sshd: Server, tmp_path: Path) -> None:
        login = sshd.login(sshd.known_hosts(tmp_path))
        fleet = park.write({"rig1": login})
        other = make_key(tmp_path / "other")
        park.inventory.write_text(park.inventory.read_text().replace(login.identity_files[0], str(other)))
        (one,) = examine(park, fleet).values()
        ((what, found, fix),) = todo(one)
        assert what == "Ansible's way in"
        assert "Permission denied" in found
        assert fix.endswith("-vvv")

    def test_rigctl_alone_is_kept_out(self, park: Park, sshd: Server, tmp_path: Path) -> None:
        login = sshd.login(sshd.known_hosts(tmp_path))
        park.write({"rig1": login})
        wrong = login.model_copy(update={"identity_files": (str(make_key(tmp_path / "other")),)})
        (one,) = examine(park, [rig("rig1", wrong)]).values()
        ((what, _, fix),) = todo(one)
        assert what == "login"
        assert fix.startswith("Ansible's ssh gets in, rigctl's own way does not: it takes key files and the agent")

    def test_an_agent_that_only_openssh_is_told_of(self, park: Park, sshd: Server, tmp_path: Path) -> None:
        login = sshd.login(sshd.known_hosts(tmp_path))
        park.write({"rig1": login})
        agent = f"IdentitiesOnly=no -o IdentityAgent={tmp_path}/agent"
        text = park.inventory.read_text().replace(login.identity_files[0], str(make_key(tmp_path / "other")))
        park.inventory.write_text(text.replace("IdentitiesOnly=yes", agent))
        values = dict(re.findall(r"""(ansible_\w+)=("[^"]*"|\S+)""", park.inventory.read_text()))
        seen = build_login("rig1", {name: value.strip('"') for name, value in values.items()}, ConnectionDefaults())
        with subprocess.Popen(["ssh-agent", "-D", "-a", f"{tmp_path}/agent"], stdout=subprocess.DEVNULL) as process:
            try:
                keep(sshd.key_file, tmp_path / "agent")
                (one,) = examine(park, [rig("rig1", seen)]).values()
                ((what, _, fix),) = todo(one)
                assert what == "login"
                remedy = f"it knows no IdentityAgent (run: export SSH_AUTH_SOCK={tmp_path}/agent)"
                assert fix.startswith(f"Ansible's ssh gets in, rigctl's own way does not: {remedy}; ")
                park.monkeypatch.setenv("SSH_AUTH_SOCK", f"{tmp_path}/agent")
                (one,) = examine(park, [rig("rig1", seen)]).values()
                assert todo(one) == []
            finally:
                process.terminate()


def keep(key: Path, agent: Path) -> None:
    """Give a key to an SSH agent, once it listens."""
    deadline = time.monotonic() + 10
    while not agent.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    environment = {**os.environ, "SSH_AUTH_SOCK": str(agent)}
    subprocess.run(["ssh-add", "-q", str(key)], check=True, capture_output=True, env=environment)


class TestRig:
    def test_wrong_key_keeps_both_out(self, park: Park, sshd: Server, tmp_path: Path) -> None:
        wrong = make_key(tmp_path / "wrong")
        login = sshd.login(sshd.known_hosts(tmp_path), identity_files=(str(wrong),))
        (one,) = examine(park, park.write({"rig1": login})).values()
        ((what, _, fix),) = todo(one)
        assert (what, fix.split()[1]) == ("login", "ssh-copy-id")
        assert "Ansible's way in" in [left.what for left in one.left_out]

    def test_sudo_with_password(self, park: Park, sshd: Server, tmp_path: Path) -> None:
        sshd.sudo_mode("password")
        (one,) = examine(park, park.write({"rig1": sshd.login(sshd.known_hosts(tmp_path))})).values()
        ((what, found, fix),) = todo(one)
        assert what == "sudo"
        assert "wants a password" in found
        assert "ansible_become_password" in fix
        assert [left.what for left in one.left_out] == ["python3", "its system"]

    def test_one_unreachable_rig_does_not_hold_the_others(
        self, park: Park, sshd: Server, tmp_path: Path, fit_system: None
    ) -> None:
        known = sshd.known_hosts(tmp_path)
        seen = examine(park, park.write({"rig1": sshd.login(known, port=free_port()), "rig2": sshd.login(known)}))
        assert [what for what, _, _ in todo(seen["rig1"])] == ["reachable"]
        assert todo(seen["rig2"]) == []

    def test_a_look_that_breaks_says_its_last_line(
        self, park: Park, sshd: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(rig_part, "_LOOK", _Text("raise MemoryError('no more')"))
        (one,) = examine(park, park.write({"rig1": sshd.login(sshd.known_hosts(tmp_path))})).values()
        ((what, found, _),) = todo(one)
        assert what == "look"
        assert "MemoryError: no more" in found

    def test_cards_are_asked_as_the_login_sees_them(
        self, park: Park, sshd: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shown = system().model_dump_json()
        monkeypatch.setattr(rig_part, "_LOOK", _Text(f"import sys; sys.stdout.write({json.dumps(shown)})"))
        monkeypatch.setattr(rig_part, "_LOGIN_CARDS", f"echo '{VIEW}'; echo CUDA_VISIBLE_DEVICES=1")
        (one,) = examine(park, park.write({"rig1": sshd.login(sshd.known_hosts(tmp_path))})).values()
        assert ("cards of the login", "CUDA_VISIBLE_DEVICES=1 hides 1 of 2 from root") in [
            (what, found) for what, found, _ in todo(one)
        ]


class TestCommand:
    @pytest.fixture
    def known(self, park: Park, sshd: Server, tmp_path: Path) -> Path:
        known = sshd.known_hosts(tmp_path, "")
        park.write({"rig1": sshd.login(known)})
        return known

    def test_untrusted_is_a_finding(self, park: Park, known: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert park.doctor() == 1
        out = capsys.readouterr().out
        assert "FIX  host key" in out
        assert "rigctl doctor rig1 --trust" in out
        assert "follows from it: Ansible's way in, login, sudo, python3, its system" in out
        assert "doctor: 0 of 1 rigs fit · findings: 1" in out
        assert known.read_text() == ""

    def test_trust_shows_the_key_and_records_it(
        self, park: Park, sshd: Server, known: Path, fit_system: None, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert park.doctor("--trust", "--yes", "--json") == 0
        said = capsys.readouterr()
        assert "shows ssh-ed25519 SHA256:" in said.err
        assert known.read_text() == f"[127.0.0.1]:{sshd.port} {sshd.host_key}\n"
        data: dict[str, Any] = json.loads(said.out)
        assert data["counts"]["finding"] == 0
        assert data["counts"]["ok"] == len(data["findings"])
        assert data["left_out"] == []
        assert {"subject": "rig1", "what": "host key", "ok": True, "found": "trusted", "fix": ""} in data["findings"]

    def test_no_answer_is_a_no(
        self, park: Park, known: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with Path(os.devnull).open() as nothing:
            monkeypatch.setattr("sys.stdin", nothing)
            assert park.doctor("--trust") == 1
        assert "SHA256:" in capsys.readouterr().err
        assert known.read_text() == ""

    def test_ctrl_c_is_no_answer_but_an_end(
        self, park: Park, known: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Interrupted(io.StringIO):
            def readline(self, *_: object) -> str:
                raise KeyboardInterrupt

        monkeypatch.setattr("sys.stdin", Interrupted())
        assert park.doctor("--trust") == 130
        assert capsys.readouterr().err.splitlines()[-1] == "error: interrupted"
        assert known.read_text() == ""

    def test_changed_key_is_never_overwritten(
        self, park: Park, sshd: Server, known: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        other = make_key(tmp_path / "other").with_suffix(".pub").read_text()
        known.write_text(f"[127.0.0.1]:{sshd.port} {other}")
        before = known.read_text()
        assert park.doctor("--trust", "--yes") == 1
        out = capsys.readouterr().out
        assert out.count("SHA256:") == 2
        assert "ssh-keygen -R" in out
        assert known.read_text() == before

    def test_known_hosts_that_keeps_nothing(self, park: Park, sshd: Server, capsys: pytest.CaptureFixture[str]) -> None:
        park.write({"rig1": sshd.login(Path("/dev/null"))})
        assert park.doctor("--trust", "--yes") == 1
        assert "/dev/null keeps no host keys" in capsys.readouterr().out

    def test_without_ansible_no_rig_is_asked(
        self, park: Park, known: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(controller, "version", lambda _name: "2.9.27")
        assert park.doctor("--json") == 1
        data = json.loads(capsys.readouterr().out)
        assert {finding["subject"] for finding in data["findings"]} == {"controller"}
        assert data["left_out"] == [{"subject": "rigs", "what": "every rig", "because": "ansible-core"}]

    def test_wrong_inventory_is_usage(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["doctor", "-i", str(tmp_path / "none")]) == 2
        assert capsys.readouterr().err.startswith("error: no inventory at ")
