"""`rigctl check --list` says of every check what it requires, how long it takes, whence its limit and what to do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rigctl.checks.catalogue import CATALOGUE
from rigctl.cli.app import main

FLEET = str(Path(__file__).parents[2] / "inventory")


def listed(capsys, *words):
    assert main(["check", "--list", *words]) == 0
    return capsys.readouterr().out


def test_every_check_is_listed_without_an_inventory(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = json.loads(listed(capsys, "--json"))
    assert [one["check"] for one in found] == list(CATALOGUE)
    assert all(one["limit_from"] and one["fix"] and one["seconds"] is None for one in found)


def test_a_profile_lists_its_own_checks_with_their_time(capsys):
    found = {
        one["check"]: one for one in json.loads(listed(capsys, "rig1", "-i", FLEET, "--profile", "smoke", "--json"))
    }
    assert "throughput.p2p_one_way" not in found, "this profile copies nothing between cards"
    assert found["thermals.resistance"]["seconds"] == 60
    assert found["thermals.throttle"] | {"seconds": 80, "steps": ["gpu_burn", "all_burn"]} == found["thermals.throttle"]
    assert found["topology.gpu_count"] | {"seconds": 0, "steps": []} == found["topology.gpu_count"]


def test_words_name_all_four(capsys):
    text = listed(capsys, "rig1", "-i", FLEET, "--profile", "standard")
    part = text[text.index("throughput.cpu_burn:") :].splitlines()[:5]
    assert [line.split()[0] for line in part[1:]] == ["requires", "takes", "limit", "do"]
    assert "stress-ng" in part[1]
    assert "about 3 min, judged on cpu_burn, all_burn" in part[2]


def test_words_about_a_check_without_load(capsys):
    text = listed(capsys)
    assert "judged on what is read in any case" in text[text.index("topology.gpu_count:") :].splitlines()[2]


@pytest.mark.parametrize("words", [["--profile", "smoke"], ["--list", "-i", FLEET, "--profile", "nightly"]])
def test_a_profile_that_is_not_there_or_not_meant_is_a_usage_error(words, capsys):
    assert main(["check", *words]) == 2
    assert "profile" in capsys.readouterr().err
