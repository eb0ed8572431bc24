"""`rigctl power` as it is typed: what is asked before, and which exit code says what."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING

import pytest

from rigctl.cli import one, power
from rigctl.cli.app import main
from rigctl.errors import UsageError
from rigctl.model.power import Plug, Power
from rigctl.power import control, system
from rigctl.power.system import Use
from tests.measure.test_rig import RIG

if TYPE_CHECKING:
    from pathlib import Path


class Away:
    """A system that does not answer, or one that somebody uses."""

    used: Use | None = None

    def __init__(self, _rig: object) -> None:
        return

    def use(self) -> Use | None:
        return self.used

    def boot_id(self) -> str | None:
        return None

    def shut_down(self) -> None:
        return

    def answers(self) -> bool:
        return False


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> type[Away]:
    """A rig whose plug is not there."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    plug = Plug(form="tasmota", url=f"http://127.0.0.1:{port}")
    known = RIG.model_copy(update={"power": Power(plug=plug)})
    monkeypatch.setattr(power, "one_rig", lambda _inventory, _name: known)
    made = type("OneAway", (Away,), {})
    monkeypatch.setattr(system, "SshSystem", made)
    monkeypatch.setattr(control, "SHUTDOWN_S", 0.1)
    return made


def test_a_status_that_nobody_can_tell_is_unmeasured(rig: type[Away], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["power", "rig1", "status"]) == 3
    said = capsys.readouterr().err
    assert said.count("Connection refused") == 1
    assert "hint: " in said


def test_a_change_that_does_not_come_about_is_incomplete(rig: type[Away], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["power", "rig1", "off", "--yes"]) == 4
    assert "Connection refused" in capsys.readouterr().err


def test_a_rig_in_use_is_named_and_keeps_its_current(rig: type[Away], capsys: pytest.CaptureFixture[str]) -> None:
    rig.used = Use((), ("alice computes on slot1: train.py",))
    assert main(["power", "rig1", "cycle", "--yes"]) == 4
    said = capsys.readouterr().err
    assert "alice computes on slot1" in said
    assert "--evict-users" in said


def test_without_a_person_and_without_yes_nothing_is_switched(
    rig: type[Away], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(one.sys, "stdin", type("In", (), {"isatty": lambda _self: False})())
    assert main(["power", "rig1", "off"]) == 2
    assert "hint: add --yes" in capsys.readouterr().err


@pytest.mark.parametrize(("typed", "goes_on"), [("rig1", True), ("rig2", False), ("", False), ("y", False)])
def test_the_rigs_name_must_be_typed(typed: str, goes_on: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one.sys, "stdin", type("In", (), {"isatty": lambda _self: True})())
    monkeypatch.setattr(one.typer, "prompt", lambda *_args, **_more: typed)
    if goes_on:
        one.confirm("rig1 is about to lose its power", "rig1", yes=False)
    else:
        with pytest.raises(UsageError, match="nothing was done"):
            one.confirm("rig1 is about to lose its power", "rig1", yes=False)


def test_a_rig_without_a_described_supply_is_a_usage_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(power, "one_rig", lambda _inventory, _name: RIG)
    assert main(["power", "rig1", "on"]) == 2
    assert "docs/power.md" in capsys.readouterr().err


def test_several_rigs_are_not_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("rigctl.inventory.load_fleet", lambda _inventory, _name: (RIG, RIG))
    with pytest.raises(UsageError, match="means 2 rigs: rig1, rig1"):
        one.one_rig(tmp_path, "all")


def test_data_is_json(rig: type[Away], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("rigctl.power.switch.PlugSwitch.state", lambda _self: "on")
    assert main(["power", "rig1", "status", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["rig"], told["action"], told["state"]) == ("rig1", "status", "on")
