"""A short command on a rig: rigctl's own connection against the OpenSSH client, fresh and multiplexed."""

from __future__ import annotations

import subprocess
import time
from typing import TYPE_CHECKING

from bench.figure import Figure, figure
from rigctl.fleet.ssh import RigConnection
from rigctl.inventory import load_fleet

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.stage import Stage
    from rigctl.model.rig import Rig

NAME = "ssh"
TIMES, FRESH_TIMES = 200, 10
HOW = f"`true` on one simulated rig, alternating; median of {TIMES}, of fresh connections {FRESH_TIMES}"


def measure(stage: Stage) -> list[Figure]:
    """Return round trips and connection times of both, milliseconds."""
    (rig,) = load_fleet(stage.inventory, "rig1")
    client = ["ssh", "-F", str(stage.state / "ssh_config")]
    shared = [
        *client,
        "-o",
        f"ControlPath={stage.folder / 'mux'}",
        "-o",
        "ControlMaster=auto",
        "-o",
        "ControlPersist=60",
    ]
    fresh_own = [timed(lambda: _connect_and_run(rig)) for _ in range(FRESH_TIMES)]
    fresh_client = [timed(lambda: _call([*client, "rig1", "true"])) for _ in range(FRESH_TIMES)]
    connection = RigConnection(rig.login, rig.name)
    connection.connect()
    own, multiplexed = [], []
    _call([*shared, "rig1", "true"])
    try:
        for _ in range(TIMES):
            own.append(timed(lambda: connection.run("true", timeout_s=10)))
            multiplexed.append(timed(lambda: _call([*shared, "rig1", "true"])))
    finally:
        connection.close()
        _call([*shared, "-O", "exit", "rig1"])
    rival = figure("the same, OpenSSH multiplexed", multiplexed, "ms", HOW)
    rival_fresh = figure("the same, OpenSSH", fresh_client, "ms", HOW)
    return [
        figure("a short command on an open connection", own, "ms", HOW, goal=("≤", rival.value)),
        rival,
        figure("connection and one command", fresh_own, "ms", HOW, goal=("≤", rival_fresh.value)),
        rival_fresh,
    ]


def _connect_and_run(rig: Rig) -> None:
    connection = RigConnection(rig.login, rig.name)
    connection.connect()
    connection.run("true", timeout_s=10)
    connection.close()


def _call(command: list[str]) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=60)


def timed(work: Callable[[], object]) -> float:
    """Return how long `work` took, milliseconds."""
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000
