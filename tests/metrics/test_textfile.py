"""The textfile, and the command that writes it."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families as read_text

from rigctl.cli.app import main
from rigctl.errors import RigctlError, UsageError
from rigctl.metrics import registry_of, require_place, write_textfile
from rigctl.starter import Starter, StarterRig, write_starter
from tests.metrics.fleet import fleet
from tests.report.build_run import build_run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    build_run(tmp_path / "runs")
    return tmp_path / "runs"


@pytest.fixture
def careful() -> Iterator[None]:
    before = os.umask(0o077)
    yield
    os.umask(before)


@pytest.mark.usefixtures("careful")
def test_whoever_runs_node_exporter_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "rigctl.prom"
    write_textfile(path, registry_of(fleet()))
    assert path.stat().st_mode & 0o777 == 0o644
    assert [one.name for one in tmp_path.iterdir()] == ["rigctl.prom"]
    assert len(list(read_text(path.read_text(encoding="utf-8")))) > 20


def test_it_is_replaced_in_one_step_and_its_draft_is_no_prom_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rigctl.prom"
    path.write_text("old 1\n", encoding="utf-8")
    seen: list[list[str]] = []

    def full(_handle: int, _data: object) -> int:
        seen.append(sorted(one.name for one in tmp_path.iterdir() if one.suffix == ".prom"))
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("rigctl.store.files.os.write", full)
    with pytest.raises(RigctlError, match="no room left"):
        write_textfile(path, registry_of(fleet()))
    assert seen == [["rigctl.prom"]]
    assert [one.name for one in tmp_path.iterdir()] == ["rigctl.prom"]
    assert path.read_text(encoding="utf-8") == "old 1\n"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("rigctl.txt", "does not end in .prom"),
        ("none/rigctl.prom", "there is no folder"),
        ("d.prom", "cannot be written"),
    ],
)
def test_places_that_are_refused(tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / "d.prom").mkdir()
    with pytest.raises(UsageError, match=words):
        require_place(tmp_path / name)


def test_the_command_prints_or_writes(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["metrics", "--runs", str(runs)]) == 0
    printed = capsys.readouterr().out
    assert 'rigctl_rig_verdict{rig="rig2",verdict="fail"} 1.0\n' in printed
    assert main(["metrics", "--runs", str(runs), "--output", "-"]) == 0
    assert capsys.readouterr().out == printed
    path = tmp_path / "rigctl.prom"
    assert main(["metrics", "values", "--runs", str(runs), "-o", str(path)]) == 0
    assert capsys.readouterr().out == f"{path}\n"
    assert path.read_text(encoding="utf-8") == printed


def test_an_inventory_says_which_rigs(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inventory = tmp_path / "inventory"
    write_starter(inventory, Starter((StarterRig("rig2", "192.0.2.2"), StarterRig("rig9", "192.0.2.9")), "ops"))
    assert main(["metrics", "--runs", str(runs), "-i", str(inventory)]) == 0
    printed = capsys.readouterr().out
    info = [one for family in read_text(printed) for one in family.samples if one.name == "rigctl_rig_info"]
    assert [(one.labels["rig"], one.labels["rig_class"], one.labels["driver"]) for one in info] == [
        ("rig2", "dual_3090ti", "515.105.01"), ("rig9", "dual_3090ti", ""),
    ]  # fmt: skip


def test_what_cannot_be_read_is_counted_and_said(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    build_run(runs)
    (min(runs.glob("*Z-*")) / "record.json").write_text("{", encoding="utf-8")
    assert main(["metrics", "--runs", str(runs)]) == 0
    said = capsys.readouterr()
    assert "rigctl_index_unreadable_runs 1.0" in said.out
    assert said.err.startswith("left out: ")


def test_wrong_words_are_refused_before_anything(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["metrics", "--runs", str(runs / "none")]) == 2
    assert "there is no folder of runs" in capsys.readouterr().err
    assert main(["metrics", "--runs", str(runs), "-o", str(runs / "x.txt")]) == 2
    assert "does not end in .prom" in capsys.readouterr().err
    assert not list(runs.glob("index.sqlite*")), "the index was touched"
    assert main(["metrics", "figures"]) == 2


def test_dashboard_and_rules(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["metrics", "dashboard"]) == 0
    assert json.loads(capsys.readouterr().out)["uid"] == "rigctl"
    assert main(["metrics", "rules", "--output", str(tmp_path / "rigctl.rules.yml")]) == 0
    assert yaml.safe_load((tmp_path / "rigctl.rules.yml").read_text(encoding="utf-8"))["groups"]
    assert main(["metrics", "rules", "--output", str(tmp_path / "none/rules.yml")]) == 2
