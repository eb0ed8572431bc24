"""`rigctl judge`: exit codes, the record written anew, words for people and for programs."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from rigctl.cli.app import main
from rigctl.store import RunDir

from .test_judge import fake, h, judge_run, run_of


@pytest.fixture
def judged(tmp_path):
    run = run_of(tmp_path, rig1=h.readings())
    run.write_record(judge_run(run, {"rig1": fake(run)}))
    return run


def call(monkeypatch, *words):
    monkeypatch.setattr("sys.argv", ["rigctl", "judge", *words])
    try:
        return main()
    except SystemExit as exit_:
        return exit_.code


def test_the_record_is_written_again_byte_for_byte(judged, monkeypatch, capfd):
    before = (judged.path / "record.json").read_bytes()
    (judged.path / "record.json").unlink()
    assert call(monkeypatch, judged.run_id, "--runs", str(judged.path.parent)) in (0, None)
    assert (judged.path / "record.json").read_bytes() == before
    assert "rig1" in capfd.readouterr().err
    assert "<html" in (judged.path / "report.html").read_text(encoding="utf-8")
    assert (judged.path / "junit.xml").is_file()


def test_json_and_the_exit_code_of_a_failed_rig(tmp_path, monkeypatch, capfd):
    hot = h.readings(samples=h.with_gpu_samples(lambda *_: {"temp_c": 80.0}))
    run = run_of(tmp_path, rig1=hot)
    judge_run(run, {"rig1": fake(run)})
    assert call(monkeypatch, str(run.path), "--json") == 1
    said = json.loads(capfd.readouterr().out)
    assert [rig["name"] for rig in said["rigs"]] == ["rig1"]
    assert RunDir(run.path).read_record().exit_code == 1


def test_latest_is_the_last_acceptance_whatever_ran_after_it(judged, monkeypatch, capfd):
    RunDir.create(judged.path.parent, "provision", now=datetime.now(UTC))
    assert call(monkeypatch, "latest", "--runs", str(judged.path.parent)) in (0, None)
    assert judged.run_id in capfd.readouterr().err


def test_a_run_that_does_not_exist(tmp_path, monkeypatch, capfd):
    assert call(monkeypatch, "2026-01-01T0000Z-0000", "--runs", str(tmp_path)) == 2
    lines = capfd.readouterr().err.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["error", "hint"]


def test_damaged_telemetry_is_said_with_its_line(judged, monkeypatch, capfd):
    path = judged.path / "rig1" / "telemetry.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:3], "garbage", *lines[3:]]) + "\n")
    assert call(monkeypatch, str(judged.path)) == 2
    assert "line 4" in capfd.readouterr().err
