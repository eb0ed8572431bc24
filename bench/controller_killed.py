"""The controller is killed (`kill -9`) in a burn of 60 s: when has the burn stopped, and what is on the disk."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

from bench.figure import Figure, figure
from bench.stage import jsonl, wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from bench.stage import Stage

NAME = "controller_killed"
BURN_S, LOST_S = 60, 10
STOPPED_WITHIN_S = 15
SAMPLES = 20
RIGS = ("rig1", "rig2")
BURNER = "pgrep -x gpu_burn >/dev/null && echo burning || echo none"
HOW = f"a burn of {BURN_S} s with controller_lost_s {LOST_S}; kill -9 to rigctl after {SAMPLES} samples of the burn"
PROFILE = {
    "idle_seconds": 2,
    "cpu_burn_seconds": 0,
    "gpu_burn_seconds": BURN_S,
    "all_burn_seconds": 0,
    "train": False,
    "sample_hz": 5,
    "controller_lost_s": LOST_S,
}


def measure(stage: Stage) -> list[Figure]:
    """Return the time from the kill until no burner runs on either rig, and the samples that survived."""
    inventory = stage.inventory_with("killed", {"rig_profiles": {"killed": PROFILE}})
    runs = stage.folder / "killed-runs"
    controller = stage.start("accept", "-i", str(inventory), "--runs", str(runs), "--profile", "killed")
    try:
        wait_for("samples of the burn on disk", lambda: min(_burn_samples(runs).values()) >= SAMPLES, 90)
    finally:
        os.killpg(controller.pid, signal.SIGKILL)
        controller.wait()
    stopped_s = wait_for("no burner left", lambda: all(stage.ssh(rig, BURNER) == "none\n" for rig in RIGS), BURN_S)
    return [
        figure("burn stopped after the controller was killed", [stopped_s], "s", HOW, goal=("≤", STOPPED_WITHIN_S)),
        figure("samples on its disk then", [min(_burn_samples(runs).values())], "per rig", HOW, goal=("≥", SAMPLES)),
    ]


def _burn_samples(runs: Path) -> dict[str, int]:
    """Samples of the burn that are on the controller's disk, by rig."""
    found = dict.fromkeys(RIGS, 0)
    for path in runs.glob("*/*/telemetry.jsonl"):
        found[path.parent.name] = sum(sample["step"] in ("ramp", "gpu_burn") for sample in jsonl(path))
    return found
