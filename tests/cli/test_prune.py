"""`rigctl prune`, as an operator asks for it, and what the other commands say of a pruned run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from rigctl.cli.app import main
from tests.prune.old_runs import files, old_run

if TYPE_CHECKING:
    from pathlib import Path

    from rigctl.store import RunDir


@pytest.fixture(autouse=True)
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    old_run(tmp_path / "runs", 1)
    return tmp_path / "runs"


def ask(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert main(list(words)) == code
    return capsys.readouterr().out


def test_a_dry_run_shows_what_would_be_freed_per_run_and_in_total(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    thin, drop = old_run(runs, 40), old_run(runs, 400)
    before = files(runs)
    out = ask(capsys, "prune", "--dry-run")
    assert files(runs) == before
    rows = [line.split() for line in out.splitlines()]
    assert rows[0] == ["run", "days", "what", "would", "be", "before", "after"]
    assert {(row[0], row[1], row[2], row[3]) for row in rows[1:5]} == {
        (run.path.name, days, rig, action)
        for run, days, action in ((thin, "40", "thinned"), (drop, "400", "dropped"))
        for rig in ("rig1", "rig2")
    }
    assert "kB would be freed of" in rows_end(out)
    assert rows_end(out).endswith("in 2 runs")


def rows_end(out: str) -> str:
    return out.splitlines()[-1]


def test_json_says_bytes_and_who_is_kept(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = old_run(runs, 40)
    told = json.loads(ask(capsys, "prune", "--whole-days", "1", "--json"))
    assert (told["dry_run"], told["whole_days"], told["thin_days"]) == (False, 1, 365)
    assert {one["run"] for one in told["files"]} == {run.path.name}
    assert told["bytes_freed"] == sum(one["bytes_before"] - one["bytes_after"] for one in told["files"]) > 0
    (kept,) = told["kept"]
    assert "baseline" in kept["why"]
    assert ask(capsys, "prune").splitlines() == ["nothing is old enough to be pruned"]


def test_judge_refuses_and_report_says_so(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    thin, drop = old_run(runs, 40), old_run(runs, 400)
    ask(capsys, "prune")
    for run, word in ((thin, "thinned"), (drop, "dropped")):
        record = (run.path / "record.json").read_bytes()
        assert main(["judge", run.run_id]) == 2
        said = capsys.readouterr().err.splitlines()
        assert said[0].startswith(f"error: run {run.run_id} cannot be judged any more: telemetry of rig1 was {word} on")
        assert said[1].startswith(f"hint: its verdicts stand: `rigctl report {run.run_id}`")
        assert (run.path / "record.json").read_bytes() == record
        page = page_of(run, capsys)
        assert page.count(f"telemetry was {word} on") == 2
        assert "settled" in page
    assert "No curves: telemetry was dropped" in page_of(drop, capsys)
    assert "hottest</th>" not in page_of(drop, capsys)


def page_of(run: RunDir, capsys: pytest.CaptureFixture[str]) -> str:
    path = ask(capsys, "report", run.run_id).splitlines()[-1]
    return (run.path / path.rpartition("/")[2]).read_text(encoding="utf-8")


def test_means_are_not_said_of_what_is_thinned(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = old_run(runs, 40)
    assert "mean power" in page_of(run, capsys)
    ask(capsys, "prune")
    # The page with all of its curves stays where it is; one of what is left is written elsewhere.
    assert "mean power" in page_of(run, capsys)
    (run.path / "report.html").unlink()
    page = page_of(run, capsys)
    assert "mean power" not in page
    assert "highest power" in page
    assert "Wall highest" in page


def test_learning_from_a_pruned_run_is_refused(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = old_run(runs, 40)
    ask(capsys, "prune")
    assert main(["spec", "learn", "rig1", "--run", run.run_id]) == 2
    assert "cannot be judged any more" in capsys.readouterr().err


def test_what_could_not_be_pruned_is_said(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = old_run(runs, 40)
    (run.path / "rig1" / "telemetry.jsonl.gz").write_bytes(b"no gzip")
    assert main(["prune"]) == 4
    said = capsys.readouterr().err
    assert f"error: {run.path.name} was left out: " in said
    assert "telemetry.jsonl.gz is damaged" in said
    assert "hint: " in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--whole-days", "40", "--thin-days", "30"), "--thin-days 30 is less than --whole-days 40"),
        (("--whole-days", "0"), "greater than or equal to 1"),
        (("--runs", "absent"), "there is no folder of runs absent"),
    ],
)
def test_bad_input(words: tuple[str, ...], said: str, runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = files(runs)
    assert main(["prune", *words]) == 2
    assert said in capsys.readouterr().err
    assert files(runs) == before
