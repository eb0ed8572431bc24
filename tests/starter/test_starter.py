"""`rigctl init`: what it writes is an inventory as it stands; what is wrong is said and nothing is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from rigctl.cli.app import main
from rigctl.errors import UsageError
from rigctl.inventory import load_fleet
from rigctl.starter import StarterRig, meter_url, parse_rig, shipped_classes

if TYPE_CHECKING:
    from pathlib import Path

RIGS = ["--rig", "rig1=192.0.2.11", "--rig", "rig2=[2001:db8::1]:2222"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "inventory"


def test_what_it_writes_is_a_whole_inventory(folder, capsys):
    words = ["--user", "jo", "--driver", "580", "--cuda", "13.0", "--wall-meter", "rig1=192.0.2.101"]
    assert main(["init", str(folder), *RIGS, *words]) == 0
    said = capsys.readouterr()
    assert str(folder / "rigs.yml") in said.out.splitlines()
    assert f"next: rigctl bootstrap rig1 -i {folder}" in said.err
    one, two = load_fleet(folder)
    assert (one.login.address, one.login.port, one.login.user) == ("192.0.2.11", 22, "jo")
    assert (two.login.address, two.login.port) == ("2001:db8::1", 2222)
    assert (one.spec.software.driver_branch, one.spec.software.cuda_version) == ("580", "13.0")
    assert one.spec.wall_meter.url == "http://192.0.2.101/cm?cmnd=Status%208"
    assert one.spec.wall_meter.required
    assert (two.spec.wall_meter.url, two.spec.wall_meter.required) == (None, False)
    assert {"quick", "standard"} <= set(one.profiles)


def test_without_words_the_class_decides(folder):
    assert main(["init", str(folder), *RIGS[:2]]) == 0
    (rig,) = load_fleet(folder)
    assert rig.spec.software.driver_branch == "515"
    assert rig.spec.software.power_limit_w == 480


def test_it_is_commented_and_small(folder):
    assert main(["init", str(folder), *RIGS]) == 0
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) < 10
    assert [path for path in files if "#" not in path.read_text()] == []


def test_an_example_in_a_comment_is_an_ansible_variable(folder):
    """Who takes the comment signs away has a valid file."""
    assert main(["init", str(folder), *RIGS[:2]]) == 0
    lines = (folder / "rigs.yml").read_text().splitlines()
    opened = "\n".join(line.replace("# ansible_", "ansible_") for line in lines)
    variables = yaml.safe_load(opened)["all"]["vars"]
    assert "vault_become_password" in variables["ansible_become_password"]
    assert variables["ansible_ssh_common_args"].startswith("-o ProxyJump=")


def test_nothing_is_overwritten(folder, capsys):
    folder.mkdir()
    (folder / "mine").write_text("kept")
    assert main(["init", str(folder), *RIGS]) == 2
    assert "is there already and is never overwritten" in capsys.readouterr().err
    assert [path.name for path in folder.iterdir()] == ["mine"]
    assert [path.name for path in folder.parent.iterdir()] == ["inventory"]


def test_an_empty_folder_will_do(folder):
    folder.mkdir()
    assert main(["init", str(folder), *RIGS]) == 0
    assert (folder / "rigs.yml").is_file()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "no rig is named, and there is no terminal"),
        (["--wall-meter", "rig1=192.0.2.101"], "--wall-meter without --rig"),
        (["--rig", "rig1"], "no address"),
        (["--rig", "rig1="], "is no address"),
        (["--rig", "rig1=192.0.2.1:0"], "is no address"),
        (["--rig", "rig1=192.0.2.1:70000"], "is no address"),
        (["--rig", "all=192.0.2.1"], "cannot be a rig's name"),
        (["--rig", "class_a=192.0.2.1"], "cannot be a rig's name"),
        (["--rig", "a b=192.0.2.1"], "cannot be a rig's name"),
        ([*RIGS, "--rig", "rig1=192.0.2.3"], "rig1 is named twice"),
        ([*RIGS, "--rig", "rig3=192.0.2.11"], "rig1 and rig3 have one address"),
        ([*RIGS, "--rig-class", "nosuch"], "no rig class nosuch is shipped"),
        ([*RIGS, "--user", "jo: x"], "is no login name"),
        ([*RIGS, "--driver", "latest"], "is no driver branch"),
        ([*RIGS, "--cuda", "11"], "is no CUDA version"),
        ([*RIGS, "--wall-meter", "rig9=192.0.2.101"], "no such rig"),
    ],
)
def test_wrong_words_write_nothing(folder, capsys, words, said):
    assert main(["init", str(folder), *words]) == 2
    error, hint = capsys.readouterr().err.splitlines()
    assert said in error
    assert hint.startswith("hint: ")
    assert list(folder.parent.iterdir()) == []


def test_a_folder_that_cannot_be_made(tmp_path, capsys):
    (tmp_path / "file").touch()
    assert main(["init", str(tmp_path / "file" / "inventory"), *RIGS]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_it_asks_on_a_terminal_and_again_after_a_wrong_answer(folder, monkeypatch, capsys):
    answers = iter(
        [
            *("bad name", "rig1", "192.0.2.11:99999", "192.0.2.11:2222", "192.0.2.101"),
            *("rig2", "rig2.example", "", ""),
            *("jo", "535", "12.2"),
        ]
    )
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.prompt", lambda _question, **_options: next(answers))
    assert main(["init", str(folder)]) == 0
    said = capsys.readouterr().err
    assert "cannot be a rig's name" in said
    assert "is no address" in said
    one, two = load_fleet(folder)
    assert (one.login.port, one.login.user, one.spec.wall_meter.required) == (2222, "jo", True)
    assert two.login.address == "rig2.example"
    assert (two.spec.software.driver_branch, two.spec.software.cuda_version) == ("535", "12.2")


@pytest.mark.parametrize(
    ("text", "address", "port"),
    [
        ("r=192.0.2.1", "192.0.2.1", 22),
        ("r=rig.example:2222", "rig.example", 2222),
        ("r=2001:db8::1", "2001:db8::1", 22),
        ("r=[2001:db8::1]", "2001:db8::1", 22),
        ("r=[fe80::1%eth0]:24", "fe80::1%eth0", 24),
    ],
)
def test_addresses(text, address, port):
    assert parse_rig(text) == StarterRig("r", address, port)


def test_a_meter_by_its_address_or_by_its_url():
    assert meter_url("192.0.2.101") == "http://192.0.2.101/cm?cmnd=Status%208"
    assert meter_url("meter:8080") == "http://meter:8080/cm?cmnd=Status%208"
    assert meter_url("http://meter/x") == "http://meter/x"
    with pytest.raises(UsageError):
        meter_url("no meter")


def test_classes_are_those_of_the_shipped_inventory():
    assert "dual_3090ti" in shipped_classes()
