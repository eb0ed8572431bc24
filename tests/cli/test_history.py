"""`rigctl history` and `rigctl compare`, as an operator asks them."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rigctl.cli.app import main
from tests.report.build_run import build_run

if TYPE_CHECKING:
    from pathlib import Path

CHECK = "thermals.settled_gpu_temp"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    folder = tmp_path / "runs"
    build_run(folder, faulty=False)
    build_run(folder, unreached=True)
    return folder


def ask(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert main(list(words)) == code
    told = capsys.readouterr()
    return told.out if code == 0 else told.err


def test_one_row_a_rig(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = json.loads(ask(capsys, "history", "--runs", str(runs), "--json"))
    assert [(row["newest"]["rig"], row["runs"]) for row in rows] == [("rig1", 2), ("rig2", 2), ("rig3", 1)]
    out = ask(capsys, "history", "--runs", str(runs))
    assert [line.split()[0] for line in out.splitlines() if line.startswith("rig")] == ["rig", "rig1", "rig2", "rig3"]
    assert " ok " in out.splitlines()[1]


def test_one_row_a_run_and_what_changed(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = json.loads(ask(capsys, "history", "rig2", "--runs", str(runs), "--json"))
    assert sorted(run["verdict"] for run in told["runs"]) == ["blind", "fail"]
    assert told["trends"] == []
    assert json.loads(ask(capsys, "history", "rig2", "--runs", str(runs), "--json", "--limit", "1"))["runs"]
    only = ask(capsys, "history", "rig2", "--runs", str(runs), "--json", "--verdict", "fail")
    assert [run["verdict"] for run in json.loads(only)["runs"]] == ["fail"]
    assert json.loads(ask(capsys, "history", "rig2", "--runs", str(runs), "--json", "--profile", "soak"))["runs"] == []
    assert "since the last pass: " in ask(capsys, "history", "rig2", "--runs", str(runs))


def test_one_row_a_figure_and_what_would_show(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    series = json.loads(ask(capsys, "history", "rig2", CHECK, "--runs", str(runs), "--json"))
    assert [len(one["points"]) for one in series] == [2, 2]
    assert all(one["detectable"] > 0 for one in series)
    out = ask(capsys, "history", "rig2", CHECK, "--runs", str(runs))
    assert "over 2 runs; a change of " in out
    assert ask(capsys, "history", "rig1", CHECK, "--runs", str(runs), "--since", "2030-01-01", code=2)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["rig9"], "knows 'rig9'"),
        (["rig1", "no.check"], "no.check found no figure on rig1"),
        (["rig1", "--since", "yesterday"], "--since 'yesterday' is no day"),
    ],
)
def test_bad_input(runs: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str) -> None:
    err = ask(capsys, "history", *words, "--runs", str(runs), code=2)
    assert said in err
    assert "hint: " in err


def test_everything_is_read_again_where_that_is_asked_for(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["history", "rig1", "--runs", str(runs), "--json"]
    first = json.loads(ask(capsys, *words))["runs"]
    path = runs / first[0]["run_id"] / "rig1" / "facts.json"
    path.write_bytes(path.read_bytes().replace(b"515.105.01", b"515.105.02"))
    assert json.loads(ask(capsys, *words))["runs"] == first
    assert main([*words, "--rebuild"]) == 0
    told = capsys.readouterr()
    assert told.err == "the index was made anew: 2 runs\n"
    assert [run["parts"]["driver"] for run in json.loads(told.out)["runs"]] == ["515.105.02", "515.105.01"]


def test_no_runs_at_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "there is no folder of runs" in ask(capsys, "history", "--runs", str(tmp_path / "none"), code=2)
    assert not (tmp_path / "none").exists()


def test_a_damaged_run_is_named(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = min(path for path in runs.iterdir() if path.is_dir())
    (bad / "record.json").write_text("{", encoding="utf-8")
    assert main(["history", "--runs", str(runs)]) == 0
    assert f"left out: {bad.name}: " in capsys.readouterr().err


@pytest.mark.parametrize("words", [["rig1"], ["rig1", CHECK], ["rig1", "--json"]])
def test_it_loads_no_more_than_it_asks(runs: Path, words: list[str]) -> None:
    """Where no run is new; the models of readings and specs, and other commands, take longer than all the rest."""
    argv = ["history", *words, "--runs", str(runs)]
    assert main(argv) == 0
    heavy = ("rigctl.model.reading", "rigctl.model.spec", "rigctl.store.rundir", "rigctl.sim", "alembic", "plotly")
    program = (
        f"import sys; from rigctl.cli.app import main; main({argv}); print([m for m in {heavy} if m in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout.splitlines()[-1] == "[]"


def test_two_runs_side_by_side(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = {path.name: json.loads((path / "record.json").read_text()) for path in runs.iterdir() if path.is_dir()}
    good = next(name for name, record in told.items() if len(record["rigs"]) == 2)
    bad = next(name for name in told if name != good)
    one, two = json.loads(ask(capsys, "compare", good, bad, "--runs", str(runs), "--json"))
    assert one == {"rig": "rig1", "parts": [], "verdicts": [], "figures": []}
    changed = {(v["check"], v["before"], v["after"]) for v in two["verdicts"]}
    assert (CHECK, "pass", "fail") in changed
    hotter = next(f for f in two["figures"] if f["check"] == CHECK)
    assert hotter["share"] > 0.3
    out = ask(capsys, "compare", good, bad, "--runs", str(runs))
    assert "rig1: no difference but what repeats have" in out
    assert CHECK[:12] in out
    assert "there is no run 'x'" in ask(capsys, "compare", "x", bad, "--runs", str(runs), code=2)
