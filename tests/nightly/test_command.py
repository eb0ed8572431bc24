"""`rigctl nightly` as an operator uses it, with a starter inventory and runs that are there."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest
import yaml

from rigctl.cli import nightly as command
from rigctl.cli.app import main
from rigctl.model.verdict import BusyRig
from rigctl.nightly.night import Carried, Night
from rigctl.starter import Starter, StarterRig, write_starter
from tests.nightly.test_sending import pytestmark, server
from tests.report.build_run import build_run

if TYPE_CHECKING:
    from pathlib import Path

    from tests.nightly.test_sending import Server

__all__ = ["pytestmark", "server"]
AT = datetime(2026, 12, 1, 2, 0).astimezone()


class Park:
    """An inventory of two rigs, their runs, and the command."""

    def __init__(self, folder: Path) -> None:
        self.inventory, self.runs = folder / "inventory", folder / "runs"
        rigs = (StarterRig("rig1", "192.0.2.1"), StarterRig("rig2", "192.0.2.2"))
        write_starter(self.inventory, Starter(rigs, "ops"))
        self.put()

    def put(self, **changes: object) -> None:
        wishes = {"window": {"begin": "22:00", "end": "06:00"}} | changes
        variables = {"rig_nightly": wishes, "rig_circuits": {"b4": {"max_w": 2300}}, "rig_circuit": "b4"}
        path = self.inventory / "group_vars" / "all" / "zz_night.yml"
        path.write_text(yaml.safe_dump(variables), encoding="utf-8")

    def ask(self, *words: str) -> int:
        return main(["nightly", *words, "-i", str(self.inventory), "--runs", str(self.runs)])


@pytest.fixture
def park(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Park:
    monkeypatch.setattr(command, "_local", lambda: AT)
    return Park(tmp_path)


@pytest.fixture
def carried(park: Park, monkeypatch: pytest.MonkeyPatch) -> None:
    """A night in which two rigs are accepted, one with a dead pump, and a third is not; no rig is asked."""

    def carry_out(_night: Night, wishes: list, _left_s: float) -> list[Carried]:
        run = build_run(park.runs)
        first, _second = sorted(wishes, key=lambda wish: wish.rig)
        third = replace(first, rig="rig3")
        return [Carried(first, run.run_id, 1), Carried(third, None, 3, "rigctl accept ended with 3")]

    monkeypatch.setattr(Night, "carry_out", carry_out)


def test_the_plan(park: Park, capsys: pytest.CaptureFixture[str]) -> None:
    assert park.ask("plan", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    first, second = told["rigs"]
    assert {first["profile"], second["profile"]} == {"full", "standard"}, "one of two gets the deep one tonight"
    assert second["begin_s"] == pytest.approx(first["seconds"]), "two of 1240 W on a breaker of 2300 W"
    assert told["left_out"] == []
    assert park.ask("plan") == 0
    assert "all done after" in capsys.readouterr().out


def test_a_window_that_is_too_short_says_what_fits(park: Park, capsys: pytest.CaptureFixture[str]) -> None:
    park.put(window={"begin": "02:00", "end": "02:45"})
    assert park.ask("plan") == 1
    out = capsys.readouterr().out
    assert "left out rig" in out
    assert "do: a longer window" in out


def test_outside_the_window_nothing_is_begun(park: Park, capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    monkeypatch.setattr(command, "_local", lambda: AT.replace(hour=12))
    assert park.ask("run") == 2
    assert "outside the window" in capsys.readouterr().err
    assert park.ask("run", "--catch-up") == 0
    assert "the next night is the next chance" in capsys.readouterr().err


@pytest.mark.usefixtures("carried")
def test_a_night_is_told_and_beaten(park: Park, server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    park.put(notify=[{"env": "TEST_NOTIFY"}], heartbeat={"env": "TEST_BEAT"})
    assert park.ask("run") == 1
    out = capsys.readouterr().out
    assert out.startswith("rigctl: 1 of 2 FAILED")
    assert "  since last pass: never accepted before\n" in out
    assert "left out rig3: rigctl accept ended with 3" in out
    paths = [path for _, path, _ in server.got]
    assert paths == ["/ping/x/start", "/hook", "/ping/x"]
    assert json.loads(server.got[1][2])["message"].endswith("\nleft out rig3: rigctl accept ended with 3")
    assert server.got[2][2] == b"1 runs, 1 left out"
    server.got.clear()
    assert park.ask("run", "--json") == 1
    assert [path for _, path, _ in server.got] == ["/ping/x/start", "/ping/x"], "the same fault is not told twice"
    assert json.loads(capsys.readouterr().out)["left_out"] == {"rig3": "rigctl accept ended with 3"}


@pytest.mark.usefixtures("carried")
def test_a_message_that_does_not_go_out_is_said_and_tried_the_next_night(
    park: Park, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    park.put(notify=[{"env": "TEST_NOTIFY"}])
    server.status = 500
    assert park.ask("run") == 1
    assert "did not take the message" in capsys.readouterr().err
    server.status = 200
    server.got.clear()
    assert park.ask("run") == 1
    assert [path for _, path, _ in server.got] == ["/hook"]


def test_a_night_that_measured_nothing_is_no_success(
    park: Park, server: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def nobody(_night: Night, wishes: list, _left_s: float) -> list[Carried]:
        return [Carried(wish, None, 3, "rigctl accept ended with 3") for wish in wishes]

    monkeypatch.setattr(Night, "carry_out", nobody)
    park.put(notify=[{"env": "TEST_NOTIFY"}], heartbeat={"env": "TEST_BEAT"})
    assert park.ask("run") == 3
    assert "no rig was measured tonight\nleft out rig1: rigctl accept ended with 3" in capsys.readouterr().out
    assert [path for _, path, _ in server.got] == ["/ping/x/start", "/hook", "/ping/x/fail"]


def test_a_night_in_which_every_rig_was_busy_measured_nothing(
    park: Park, server: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def in_use(_night: Night, wishes: list, _left_s: float) -> list[Carried]:
        run = build_run(park.runs)
        busy = tuple(BusyRig(name=one.rig, rig_class="dual_3090ti", users="alice") for one in wishes)
        run.write_record(run.read_record().model_copy(update={"rigs": (), "busy": busy}))
        return [Carried(wishes[0], run.run_id, 3, "busy: alice")]

    monkeypatch.setattr(Night, "carry_out", in_use)
    park.put(notify=[{"env": "TEST_NOTIFY"}], heartbeat={"env": "TEST_BEAT"})
    for nights in ("", " (2 nights in a row)"):
        assert park.ask("run", "--json") == 3
        told = json.loads(capsys.readouterr().out)
        assert told["left_out"] == {"rig1": "busy: alice", "rig2": "busy: alice"}
        assert told["morning"].splitlines()[1] == f"left out rig1: busy: alice{nights}"
        assert [path for _, path, _ in server.got] == ["/ping/x/start", "/hook", "/ping/x/fail"], "each time"
        server.got.clear()
        monkeypatch.setattr(command, "_local", lambda: AT + timedelta(days=1))


@pytest.mark.usefixtures("carried")
def test_a_night_that_cannot_be_told_is_no_success(
    park: Park, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    park.put(heartbeat={"env": "TEST_BEAT"})
    park.runs.mkdir()
    (park.runs / "nightly.json").write_text("{", encoding="utf-8")
    assert park.ask("run") == 2
    assert "nightly.json is damaged" in capsys.readouterr().err
    assert [path for _, path, _ in server.got] == ["/ping/x/start", "/ping/x/fail"]


@pytest.mark.usefixtures("carried")
def test_reminders(park: Park, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    park.put(notify=[{"env": "TEST_NOTIFY"}])
    park.ask("run")
    server.got.clear()
    assert park.ask("remind") == 0
    assert server.got == []
    monkeypatch.setattr(command, "_local", lambda: AT + timedelta(hours=12))
    assert park.ask("remind") == 0
    assert server.titles == ["rigctl: 1 rig still bad: rig2"]


@pytest.mark.usefixtures("carried")
def test_a_secret_that_is_not_there_stops_the_night_before_it_begins(
    park: Park, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_SUCH_SECRET", raising=False)
    park.put(heartbeat={"env": "NO_SUCH_SECRET"})
    assert park.ask("run") == 2
    assert "the environment has no NO_SUCH_SECRET" in capsys.readouterr().err
    assert not list(park.runs.glob("*Z-*")) if park.runs.exists() else True


def test_silence_is_not_health(park: Park, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    build_run(park.runs, faulty=False)
    assert park.ask("status", "--json") == 0
    assert [row["stale"] for row in json.loads(capsys.readouterr().out)["rigs"]] == [False, False]
    monkeypatch.setattr(command, "_local", lambda: AT + timedelta(days=3))
    assert park.ask("status") == 1
    assert "too long ago; is the timer running" in capsys.readouterr().out


def test_a_rig_that_was_never_judged_is_a_finding(park: Park, capsys: pytest.CaptureFixture[str]) -> None:
    assert park.ask("status") == 1
    assert "rig1: never accepted" in capsys.readouterr().out


def test_units_are_shown(park: Park, capsys: pytest.CaptureFixture[str]) -> None:
    assert park.ask("install", "--show") == 0
    out = capsys.readouterr().out
    assert f"-i {park.inventory} --runs {park.runs}" in out
    assert "OnCalendar=*-*-* 22:00:00" in out
