"""`rigctl baseline`, as an operator uses it after a card was changed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from rigctl.store.decisions import FILE
from tests.cli.test_history import CHECK, ask
from tests.report.build_run import UUIDS, build_run

if TYPE_CHECKING:
    from pathlib import Path

    from rigctl.store import RunDir

WHY = ("--reason", "new card, ticket 4711")


@pytest.fixture
def good(tmp_path: Path) -> RunDir:
    return build_run(tmp_path / "runs", faulty=False)


@pytest.fixture
def bad(good: RunDir) -> RunDir:
    """Rig 2 fails in it, rig 3 is away."""
    return build_run(good.path.parent, unreached=True)


@pytest.fixture
def runs(bad: RunDir) -> Path:
    return bad.path.parent


def shown(capsys: pytest.CaptureFixture[str], runs: Path, *rigs: str) -> list[dict]:
    return json.loads(ask(capsys, "baseline", "show", *rigs, "--runs", str(runs), "--json"))


def test_what_makes_a_baseline_up(runs: Path, good: RunDir, capsys: pytest.CaptureFixture[str]) -> None:
    one, two, three = shown(capsys, runs)
    assert [len(rig["runs"]) for rig in (one, two, three)] == [2, 1, 0]
    assert (two["rig"], two["rig_class"], two["decision"]) == ("rig2", "dual_3090ti", None)
    assert [run["run_id"] for run in two["runs"]] == [good.run_id]
    assert two["since"] == two["runs"][0]["ended_at"]
    assert [card["uuid"] for card in two["parts"]["cards"]] == list(UUIDS["rig2"])
    assert (two["parts"]["driver"], two["parts"]["kernel"]) == ("515.105.01", "5.15.0-56-generic")
    settled = next(f for f in one["figures"] if f["check"] == CHECK and f["key"] == UUIDS["rig1"][0])
    assert (settled["n"], settled["unit"]) == (2, "°C")
    assert settled["lowest"] <= settled["median"] <= settled["highest"]
    assert (three["since"], three["parts"], three["figures"]) == (None, None, [])


def test_one_rig_is_shown_whole_and_several_in_a_row_each(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = ask(capsys, "baseline", "show", "rig1", "--runs", str(runs))
    for words in ("2 accepted runs; counts from 2026-11-30", "driver 515.105.01", "slot2 (…3e52)", CHECK, "median"):
        assert words in whole
    rows = ask(capsys, "baseline", "show", "rig*:!rig2", "--runs", str(runs))
    assert [line.split()[0] for line in rows.splitlines() if line.startswith("rig")] == ["rig", "rig1", "rig3"]
    assert "no baseline" in rows
    assert [rig["rig"] for rig in shown(capsys, runs, "class_dual_3090ti,&rig2")] == ["rig2"]


def test_a_run_is_accepted_and_history_says_so(runs: Path, bad: RunDir, capsys: pytest.CaptureFixture[str]) -> None:
    said = ask(capsys, "baseline", "accept", bad.run_id, "rig2", *WHY, "--runs", str(runs))
    assert f"rig2: compared from run {bad.run_id} on, which " in said
    assert "accepted as its reference on " in said
    assert f"failed in that run: {CHECK}[" in said
    (rig,) = shown(capsys, runs, "rig2")
    assert [run["run_id"] for run in rig["runs"]] == [bad.run_id]
    assert (rig["decision"]["reason"], rig["since"]) == ("new card, ticket 4711", bad.read_record().ended_at)
    assert rig["decision"]["who"].count("@") == 1
    assert len(shown(capsys, runs, "rig1")[0]["runs"]) == 2
    table = ask(capsys, "history", "rig2", "--runs", str(runs))
    assert "baseline" in table
    told = json.loads(ask(capsys, "history", "rig2", "--runs", str(runs), "--json"))
    assert [one["run"] for one in told["baseline"]] == [bad.run_id]
    assert json.loads(ask(capsys, "history", "rig1", "--runs", str(runs), "--json"))["baseline"] == []
    figures = ask(capsys, "history", "rig2", CHECK, "--runs", str(runs))
    assert "the baseline was accepted as the reference by " in figures


def test_the_past_is_forgotten(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    decided = json.loads(ask(capsys, "baseline", "reset", "rig1", *WHY, "--runs", str(runs), "--json"))
    assert (decided["action"], decided["rig"], decided["run"]) == ("reset", "rig1", None)
    out = ask(capsys, "baseline", "show", "rig1", "--runs", str(runs))
    assert "no baseline: the next accepted run is the first" in out
    assert "reset its baseline: new card, ticket 4711" in " ".join(out.split())
    assert "nothing to forget" in ask(capsys, "baseline", "reset", "rig1", *WHY, "--runs", str(runs), code=2)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["accept", "RUN", "rig3", *WHY], "rig3 was not measured whole in run RUN: measure.reached[rig]: no SSH"),
        (["accept", "RUN", *WHY], "rig3 was not measured whole"),
        (["accept", "RUN", "rig9", *WHY], "run RUN knows no rig 'rig9'"),
        (["accept", "RUN", "all:!all", *WHY], "'all:!all' leaves no rig"),
        (["accept", "RUN", "rig1", "--reason", " \n"], "--reason is empty"),
        (["accept", "2020-01-01T0000Z-0000", "rig1", *WHY], "there is no run"),
        (["accept", "RUN", "rig1"], "--reason"),
        (["reset", "rig9", *WHY], "knows 'rig9'"),
        (["reset", "rig3", *WHY], "rig3 has no baseline"),
        (["show", "rig9"], "knows no rig 'rig9'"),
    ],
)
def test_bad_input_changes_nothing(
    runs: Path, bad: RunDir, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    asked = [word.replace("RUN", bad.run_id) for word in words]
    err = ask(capsys, "baseline", *asked, "--runs", str(runs), code=2)
    assert said.replace("RUN", bad.run_id) in " ".join(err.split())
    assert "hint: " in err
    assert not (runs / FILE).exists()


def change(run: RunDir, file: str, **rig: object) -> None:
    """Change what a file of the run says of its first rig."""
    data = json.loads((run.path / file).read_bytes())
    data["rigs"][0] |= rig
    run.write_json_atomic(file, data)


def test_a_run_that_shows_nothing_to_compare_with_is_refused(
    good: RunDir, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    runs = good.path.parent
    accept = ("baseline", "accept", good.run_id, "rig1", *WHY, "--runs", str(runs))
    newer = build_run(runs, faulty=False)
    newer.write_record(newer.read_record().model_copy(update={"ended_at": "2026-12-01T23:03:42Z"}))
    change(newer, "record.json", rig_class="quad")
    assert "rig1 was a dual_3090ti in run" in ask(capsys, *accept, code=2)
    change(newer, "record.json", rig_class="dual_3090ti")
    (good.path / "rig1" / "facts.json").rename(tmp_path / "facts.json")
    assert "has no facts of rig1" in ask(capsys, *accept, code=2)
    (tmp_path / "facts.json").rename(good.path / "rig1" / "facts.json")
    profile = json.loads((good.path / "run.json").read_bytes())["rigs"][0]["profile"]
    change(good, "run.json", profile=profile | {"gpu_burn_seconds": 0})
    assert "burnt no card of rig1" in ask(capsys, *accept, code=2)
    change(good, "run.json", profile=profile)
    record = (good.path / "record.json").read_bytes()
    (good.path / "record.json").unlink()
    assert "has no record yet" in ask(capsys, *accept, code=2)
    data = json.loads(record)
    busy = {"name": "rig1", "rig_class": "dual_3090ti", "users": "bob trains", "fix": ""}
    data |= {"rigs": data["rigs"][1:], "busy": [busy]}
    (good.path / "record.json").write_text(json.dumps(data), encoding="utf-8")
    assert "rig1 was busy in run" in ask(capsys, *accept, code=2)
    (good.path / "record.json").write_bytes(record)
    elsewhere = ("baseline", "accept", str(good.path), "rig1", *WHY, "--runs", str(tmp_path))
    assert "does not lie in" in ask(capsys, *elsewhere, code=2)
    assert not (runs / FILE).exists()
    ask(capsys, *accept)
    assert "there is no folder of runs" in ask(capsys, "baseline", "show", "--runs", str(tmp_path / "no"), code=2)
