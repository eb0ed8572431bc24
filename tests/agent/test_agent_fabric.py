"""What the agent knows of the fabric manager: systemd's words and the program's own version."""

from __future__ import annotations

import pytest

from rigctl.agent import fabric
from rigctl.model.reading import FabricManagerFacts


@pytest.fixture
def programs(tmp_path, monkeypatch):
    def put(**scripts: str) -> None:
        for name, script in scripts.items():
            program = tmp_path / name.replace("_", "-")
            program.write_text(f"#!/bin/sh\n{script}\n")
            program.chmod(0o755)

    monkeypatch.setenv("PATH", str(tmp_path))
    return put


def read():
    return FabricManagerFacts.model_validate(fabric.fabric_manager())


RUNS = "echo LoadState=loaded; echo ActiveState=active; echo SubState=running"


def test_one_that_runs(programs):
    programs(systemctl=RUNS, nv_fabricmanager="echo 'Fabric Manager version is : 535.129.03'")
    found = read()
    assert (found.installed, found.state, found.version) == (True, "active (running)", "535.129.03")
    assert found.reason is None


def test_one_that_is_not_installed_is_asked_for_no_version(programs):
    programs(systemctl="echo LoadState=not-found; echo ActiveState=inactive; echo SubState=dead")
    assert (read().installed, read().version, read().reason) == (False, None, None)


@pytest.mark.parametrize("version", ["exit 1", "echo nothing"])
def test_a_version_that_is_not_told(programs, version):
    programs(systemctl=RUNS, nv_fabricmanager=version)
    assert (read().installed, read().version) == (True, None)


def test_a_rig_without_systemd_tells_nothing(programs):
    assert read().installed is None
    assert "systemctl" in (read().reason or "")
    programs(systemctl="exit 1")
    assert read().reason
