"""Tachometers and critical temperatures as hwmon lays them out; what people on the rig are told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rigctl.agent import announce, unit
from rigctl.agent.claim import run_words
from rigctl.agent.cpu import cpu_critical_temp_c, fans_rpm
from rigctl.agent.people import command_of, unit_of, user_of
from rigctl.agent.places import Places, write_atomically
from rigctl.agent.plan import parse_plan

if TYPE_CHECKING:
    from pathlib import Path

PLAN = (
    '{"run_id": "r1", "sample_hz": 1, "controller_lost_s": 60, "max_gpu_temp_c": 85, "stale_sample_s": 5, '
    '"expected_gpus": [], "gpu_burn_dir": "/opt/x", "torch_venv": "/opt/y", "asked_by": "alice@desk", '
    '"steps": [{"name": "gpu_burn", "seconds": 600, "loads": ["gpu"]}, {"name": "idle", "seconds": 30, "loads": []}]}'
)


def chip(sys: Path, number: int, name: str, **files: str) -> None:
    folder = sys / f"class/hwmon/hwmon{number}"
    folder.mkdir(parents=True)
    for file, text in {"name": name, **files}.items():
        (folder / file).write_text(f"{text}\n")


def test_tachometers_by_chip_and_label(tmp_path: Path) -> None:
    chip(tmp_path, 0, "k10temp", temp1_input="50000")
    chip(tmp_path, 1, "nct6798", fan1_input="0", fan2_input="1240", fan2_label="CPU fan", fan7_input="garbage")
    chip(tmp_path, 2, "d5next", fan1_input="2410", fan1_label="Pump speed", fan2_input="-1")
    assert fans_rpm(tmp_path) == {"nct6798 fan1": 0, "nct6798 CPU fan": 1240, "d5next Pump speed": 2410}
    assert fans_rpm(tmp_path / "nowhere") == {}


@pytest.mark.parametrize(
    ("chips", "found"),
    [
        ([("coretemp", {"temp1_crit": "100000", "temp2_crit": "100000"})], 100.0),
        ([("k10temp", {"temp1_input": "50000"})], None),
        ([("coretemp", {"temp1_crit": "100000"}), ("coretemp", {"temp1_crit": "95000"})], 95.0),
        ([("coretemp", {"temp1_crit": "0"})], None),
        ([("coretemp", {"temp1_crit": "65261850"})], None),
        ([("nvme", {"temp1_crit": "84850"})], None),
    ],
)
def test_what_the_processors_sensor_calls_critical(
    tmp_path: Path, chips: list[tuple[str, dict[str, str]]], found: float | None
) -> None:
    for number, (name, files) in enumerate(chips):
        chip(tmp_path, number, name, **files)
    assert cpu_critical_temp_c(tmp_path) == found


def wall(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> Path:
    program = tmp_path / "wall"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path / "told"


def test_people_are_told_by_wall(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = wall(tmp_path, monkeypatch, f'printf "%s\\n" "$*" >{tmp_path}/words; cat >{tmp_path}/told')
    plan = parse_plan(PLAN)
    assert announce.tell(announce.begins(plan)) is None
    assert (tmp_path / "words").read_text() == "-n\n"
    assert told.read_text() == (
        "rigctl: run r1, asked for by alice@desk, puts this rig under full load from now on, for 10 min at most.\n"
        "What runs here will be slow. To stop it: sudo systemctl stop rigctl-r1.service\n"
    )
    assert "The rig is free again" in announce.ends(plan, None)
    assert "the guard stopped it (temperature)" in announce.ends(plan, "temperature")
    assert "is ended in 10 s, and you are logged out" in announce.leave(plan, 10)


@pytest.mark.parametrize(
    ("script", "problem"),
    [("echo 'wall: no tty' >&2; exit 1", "wall: wall: no tty"), ("exec sleep 20", "wall: Command")],
)
def test_a_wall_that_fails_is_said_and_never_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, problem: str
) -> None:
    wall(tmp_path, monkeypatch, script)
    monkeypatch.setattr(announce, "TIMEOUT_S", 0.3)
    told = announce.tell("x")
    assert told is not None
    assert told.startswith(problem)


def test_a_rig_without_wall_says_so(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    announce.tell_aside("x").join(5)
    assert "wall is not installed here" in caplog.text


def test_a_run_that_is_under_way_is_named_with_whose_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = Places(tmp_path / "spool", tmp_path / "run")
    monkeypatch.setattr(unit, "state", lambda _run: {"status": "step gpu_burn"})
    assert run_words("r1", places) == "run r1 is under way on this rig"
    places.spool("r1").mkdir(parents=True)
    write_atomically(places.plan("r1"), PLAN)
    words = run_words("r1", places)
    assert words.startswith("run r1 of alice@desk is under way on this rig since 20")
    assert words.endswith("UTC (step gpu_burn)")


def test_a_process_that_is_gone_is_nobodys(tmp_path: Path) -> None:
    assert user_of(4_000_001, tmp_path) is None
    assert command_of(4_000_001, tmp_path) == ""
    assert unit_of(4_000_001, tmp_path) is None
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "cmdline").write_bytes(b"x" * 200)
    assert len(command_of(7, tmp_path)) == 60
