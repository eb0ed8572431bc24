"""What a night leaves for monitoring."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from prometheus_client.parser import text_string_to_metric_families as read_text
from pydantic import ValidationError

from rigctl.model.verdict import BusyRig, Record
from rigctl.nightly import last
from rigctl.nightly.night import Night
from tests.metrics.fleet import NOW
from tests.nightly.park import record, spec
from tests.nightly.test_command import Park, carried, park
from tests.report.build_run import build_run

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["carried", "park"]


def values(path: Path, name: str) -> dict[tuple[str, ...], float]:
    families = read_text(path.read_text(encoding="utf-8"))
    return {tuple(one.labels.values()): one.value for family in families for one in family.samples if one.name == name}


@pytest.mark.usefixtures("carried")
def test_a_night_writes_the_textfile(park: Park, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rigctl.prom"
    park.put(metrics_file=str(path))
    assert park.ask("run") == 1
    assert values(path, "rigctl_nightly_last_run_outcome")["failed",] == 1
    assert values(path, "rigctl_nightly_last_run_rigs") == {("judged",): 2, ("left_out",): 1}
    assert values(path, "rigctl_rig_accepted") == {("rig1",): 1, ("rig2",): 0}
    assert json.loads((park.runs / "last-night.json").read_text(encoding="utf-8"))["outcome"] == "failed"
    assert capsys.readouterr().err.count("error:") == 0


def test_a_night_that_breaks_says_so(park: Park, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rigctl.prom"
    park.put(metrics_file=str(path))

    def carry_out(*_: object) -> list:
        raise KeyboardInterrupt

    monkeypatch.setattr(Night, "carry_out", carry_out)
    assert park.ask("run") == 130
    assert values(path, "rigctl_nightly_last_run_outcome")["broken",] == 1
    assert values(path, "rigctl_rig_busy") == {("rig1",): 0, ("rig2",): 0}, "rigs without any run are there too"


def test_a_night_of_one_rig_keeps_the_others_in_the_file(
    park: Park, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rigctl.prom"
    park.put(metrics_file=str(path))
    build_run(park.runs)
    monkeypatch.setattr(Night, "carry_out", lambda *_: [])
    park.ask("run", "rig1")
    assert values(path, "rigctl_rig_accepted") == {("rig1",): 1, ("rig2",): 0}


@pytest.mark.usefixtures("carried")
def test_a_place_that_cannot_be_written_ends_the_night_before_it_begins(
    park: Park, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    park.put(metrics_file=str(tmp_path / "none/rigctl.prom"))
    assert park.ask("run") == 2
    assert "there is no folder" in capsys.readouterr().err
    assert not park.runs.exists()


@pytest.mark.usefixtures("carried")
def test_a_folder_that_went_away_is_said_and_the_night_is_not_lost(
    park: Park, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "textfiles"
    folder.mkdir()
    park.put(metrics_file=str(folder / "rigctl.prom"))
    real = Night.carry_out

    def carry_out(*words) -> list:
        folder.rmdir()
        return real(*words)

    monkeypatch.setattr(Night, "carry_out", carry_out)
    assert park.ask("run") == 1
    said = capsys.readouterr()
    assert "there is no folder" in said.err
    assert "1 of 2" in said.out


@pytest.mark.parametrize("wrong", ["rigctl.prom", "/var/lib/rigctl.txt", "", 7])
def test_wrong_settings(wrong: object) -> None:
    with pytest.raises(ValidationError):
        spec(metrics_file=wrong)


def busy(base: Record) -> Record:
    return base.model_copy(update={"rigs": (), "busy": (BusyRig(name="rig3", rig_class="x", users="jo"),)})


@pytest.mark.parametrize(
    ("records", "left_out", "wanted"),
    [
        ([record(("rig1", "")), record(("rig2", ""))], [], ("ok", 2, 0)),
        ([record(("rig1", "")), record(("rig2", "hot"))], ["rig3"], ("failed", 2, 1)),
        ([record(("rig1", ""))], ["rig2"], ("unmeasured", 1, 1)),
        ([record(("rig1", "")), busy(record())], ["rig3"], ("unmeasured", 1, 1)),
        ([], ["rig1", "rig2"], ("unmeasured", 0, 2)),
        ([], [], ("unmeasured", 0, 0)),
    ],
)
def test_what_became_of_a_night(records: list[Record], left_out: list[str], wanted: tuple[str, int, int]) -> None:
    found = last.ended(records, left_out, NOW, NOW)
    assert (found.outcome, found.judged, found.left_out) == wanted
