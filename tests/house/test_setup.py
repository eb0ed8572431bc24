"""What sets a fresh machine up: the lock, the setup script, CI's entry."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from .source_tree import REPO

REQUIREMENTS = (REPO / "requirements.txt").read_text(encoding="utf-8")
PINS = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", REQUIREMENTS, flags=re.MULTILINE))


def canonical(requirement: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[<>=!~ \[;]", requirement)[0]).lower()


def test_lock_covers_everything_that_is_asked_for():
    project = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    # `make fuzz` and `make mutants` install their own: nothing else needs it; atheris has no wheel for every Python.
    own = {"fuzz", "mutants"}
    asked = [*project["dependencies"], *(one for name, extra in extras.items() if name not in own for one in extra)]
    assert [name for name in map(canonical, asked) if name not in PINS] == []


def test_every_pin_has_hashes_and_no_index_is_named():
    entries = re.split(r"^(?=[a-z])", REQUIREMENTS, flags=re.MULTILINE)[1:]
    assert len(entries) > 50
    assert [entry.splitlines()[0] for entry in entries if "--hash=sha256:" not in entry] == []
    assert re.findall(r"://|--(?:extra-)?index-url|--find-links|--trusted-host", REQUIREMENTS) == []


def test_torch_and_the_clashing_pytest_plugin_are_not_in_it():
    assert {"torch", "pytest-ansible", "pynvml", "testinfra"} & set(PINS) == set()


@pytest.mark.parametrize("script", ["tools/setup.sh", "tools/lock.sh"])
def test_scripts_are_posix(script):
    subprocess.run(["dash" if Path("/bin/dash").exists() else "sh", "-n", script], cwd=REPO, check=True)
    assert os.access(REPO / script, os.X_OK)


def test_ci_runs_lint_and_the_readmes_test_command():
    text = (REPO / ".ci/run").read_text(encoding="utf-8")
    assert os.access(REPO / ".ci/run", os.X_OK)
    assert "make lint" in text
    assert "make test" in text
    assert "\nmake test\n" in (REPO / "README.md").read_text(encoding="utf-8")
    subprocess.run(["bash", "-n", REPO / ".ci/run"], check=True)


def test_setup_refuses_an_unknown_word():
    done = subprocess.run([REPO / "tools/setup.sh", "nonsense"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("error: unknown word: nonsense\nhint: ")


def test_hooks_are_local():
    config = yaml.safe_load((REPO / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    assert [repo["repo"] for repo in config["repos"]] == ["local"]
