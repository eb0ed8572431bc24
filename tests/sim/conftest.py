"""Rigs for the tests of rigs themselves: one bare rig and one with a driver, brought up once."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from rigctl import sim

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rigctl.sim import State


@pytest.fixture(scope="session")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[State]:
    """One rig as `rigctl sim up` leaves it; tests may install and reboot, and must not rely on it being bare."""
    if os.geteuid() != 0 or shutil.which("podman") is None:
        pytest.fail("tests marked `rigs` need podman and root: sudo make rigs, or: pytest -m 'not rigs'")
    directory = tmp_path_factory.mktemp("rigs") / "state"
    state = sim.up(sim.UpOptions(count=1, directory=directory, training=False))
    yield state
    sim.down(directory)


@pytest.fixture
def ssh(fleet: State) -> Callable[[str], str]:
    """Run a command on rig1 over plain OpenSSH and return what it printed."""

    def run(command: str) -> str:
        words = ["ssh", "-F", str(fleet.ssh_config), "-o", "BatchMode=yes", "rig1", command]
        done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run
