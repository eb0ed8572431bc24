"""Molecule's scenarios: each is whole, CI's are among them, and the developer's targets find all."""

from __future__ import annotations

import json
import re
import subprocess

import pytest
import yaml

from .source_tree import REPO

FOLDER = REPO / "molecule"
SCENARIOS = sorted(path.parent.name for path in FOLDER.glob("*/molecule.yml"))
SHARED = yaml.safe_load((REPO / ".config/molecule/config.yml").read_text(encoding="utf-8"))


def commands(*words: str) -> str:
    """What `make` would run."""
    done = subprocess.run(["make", "-n", *words], cwd=REPO, capture_output=True, text=True, check=True)
    return done.stdout


def test_every_scenario_converges_twice_and_is_asked_by_testinfra():
    order = SHARED["scenario"]["test_sequence"]
    assert order.index("converge") < order.index("idempotence") < order.index("verify")
    assert SHARED["verifier"]["name"] == "testinfra"
    assert list((FOLDER / "resources/tests").glob("test_*.py"))


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_is_whole(name):
    own = yaml.safe_load((FOLDER / name / "molecule.yml").read_text(encoding="utf-8"))
    assert {"dependency", "driver", "platforms", "scenario"} & set(own) == set()
    assert own.get("verifier", {}).get("name", "testinfra") == "testinfra"
    expected = json.loads((FOLDER / name / "expected.json").read_text(encoding="utf-8"))
    assert set(expected) >= {"driver", "toolkit"}
    assert list((FOLDER / name / "tests").glob("test_*.py"))


def test_all_scenarios_are_run_where_all_are_asked_for():
    asked = re.findall(r"--scenario-name (\w+)", commands("molecule", "SCENARIOS=all"))
    assert sorted(asked) == SCENARIOS
    assert "SCENARIOS=all" in (REPO / "Makefile").read_text(encoding="utf-8").partition("test-all:")[2]


def test_ci_runs_scenarios_that_exist():
    asked = set(re.findall(r"--scenario-name (\w+)", commands("molecule")))
    assert asked
    assert asked <= set(SCENARIOS)
