"""`rigctl report`: where each format goes, and bad input."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from rigctl.cli.app import main
from rigctl.store import RunDir

from .build_run import build_run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return build_run(tmp_path / "runs")


def report(run: RunDir, *words: str) -> int:
    return main(["report", *words, "--runs", str(run.path.parent)])


def test_the_page_goes_into_the_run_directory(run: RunDir, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(run, "latest") == 0
    assert capsys.readouterr().out == f"{run.path / 'report.html'}\n"
    assert (run.path / "report.html").read_text().startswith("<!DOCTYPE html>")
    assert report(run, run.run_id, "--format", "junit") == 0
    assert (run.path / "junit.xml").read_text().startswith("<?xml")


def test_data_goes_to_stdout_or_where_asked(run: RunDir, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(run, str(run.path), "--format", "json") == 0
    out = capsys.readouterr().out
    assert json.loads(out)["run_id"] == run.run_id
    assert out.encode() == (run.path / "record.json").read_bytes()
    assert report(run, "latest", "--format", "md", "--output", str(tmp_path / "night.md")) == 0
    assert (tmp_path / "night.md").read_text().startswith("# 1 of 2 rigs failed")
    capsys.readouterr()
    assert report(run, "latest", "--format", "junit", "--output", "-") == 0
    assert capsys.readouterr().out.startswith("<?xml")


def refused(capsys: pytest.CaptureFixture[str]) -> list[str]:
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["error", "hint"]
    return lines


def test_bad_input_is_one_error_and_one_hint(run: RunDir, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(run, "2026-11-30T2300Z-zzzz") == 2
    assert run.run_id in refused(capsys)[1]
    assert report(run, "latest", "--output", str(tmp_path / "absent" / "x.html")) == 2
    refused(capsys)
    assert report(run, "latest", "--format", "pdf") == 2
    refused(capsys)


def test_a_damaged_record_is_refused(run: RunDir, capsys: pytest.CaptureFixture[str]) -> None:
    path = run.path / "record.json"
    path.write_bytes(path.read_bytes()[:200])
    assert report(run, "latest") == 2
    error, hint = refused(capsys)
    assert "record.json is damaged" in error
    assert "rigctl judge" in hint


def test_a_run_that_measured_nothing_has_no_report(run: RunDir, capsys: pytest.CaptureFixture[str]) -> None:
    other = RunDir.create(run.path.parent, "provision")
    assert report(run, "latest") == 0
    assert capsys.readouterr().out == f"{run.path / 'report.html'}\n"
    assert report(run, other.run_id) == 2
    error, hint = refused(capsys)
    assert "is of kind provision: it measured nothing" in error
    assert str(other.path) in hint
