"""Slurm's HealthCheckProgram on a rig: installed while it is well, silent then, and loud when a card is gone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from rigctl.sim import faults
from rigctl.sim.rigs import wait_ready

from .conftest import Fleet

if TYPE_CHECKING:
    from rigctl import sim

pytestmark = [pytest.mark.rigs, pytest.mark.slow, pytest.mark.timeout(400, func_only=True)]
RIG = "rig1"
PROGRAM = "/usr/local/sbin/rigctl-health"


def test_installed_tried_found_out_and_removed(running: sim.State, tmp_path) -> None:
    fleet = Fleet(running, tmp_path)
    inventory = str(running.inventory)
    said = fleet.rigctl("health", "install", RIG, "-i", inventory, "--json")
    assert said.returncode == 0, said.stderr
    (one,) = json.loads(said.stdout)["rigs"]
    assert (one["rig"], one["node"], len(one["cards"])) == (RIG, RIG, 2)
    assert on_rig(fleet, PROGRAM) == (0, "")
    faults.apply(running.directory, RIG, "card_missing", {})
    wait_ready(running, running.rig(RIG))
    status, lines = on_rig(fleet, PROGRAM)
    assert status == 1
    assert "is gone" in lines
    assert "not drained: scontrol: " in lines
    refused = fleet.rigctl("health", "install", RIG, "-i", inventory)
    assert refused.returncode == 4
    assert "is not as its spec says" in refused.stderr
    faults.clear(running.directory, RIG)
    wait_ready(running, running.rig(RIG))
    assert on_rig(fleet, PROGRAM) == (0, "")
    assert fleet.rigctl("health", "remove", RIG, "-i", inventory).stdout == f"{RIG}: removed\n"
    assert fleet.rigctl("health", "remove", RIG, "-i", inventory).stdout == f"{RIG}: there was none\n"


def on_rig(fleet: Fleet, command: str) -> tuple[int, str]:
    done = fleet.rigctl("sim", "ssh", RIG, "--state", str(fleet.state.directory), "--", "sudo", command)
    return done.returncode, done.stdout
