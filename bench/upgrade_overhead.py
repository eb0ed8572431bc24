"""What an upgrade of a healthy rig takes beside apt, restart, burns and drain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.figure import Figure, figure
from bench.stage import BenchFailed
from rigctl.store import RunDir
from rigctl.upgrade.summary import upgrade_summary

if TYPE_CHECKING:
    from bench.stage import Stage

NAME = "upgrade_overhead"
MOST_S = 10
BRANCHES = ("535", "515")
HOW = (
    "one healthy rig, driver 515 to 535 and back: from the first step to the last one, less drain, change "
    "(apt, modules, restart, gpu-burn) and both acceptances; by the journal"
)
VARIABLES = {
    # 535 is in the CUDA repository only; a restart of a simulated rig takes seconds.
    "nvidia_driver_source": "auto",
    "rig_profiles": {
        "smoke": {
            "idle_seconds": 1,
            "cpu_burn_seconds": 0,
            "gpu_burn_seconds": 15,
            "all_burn_seconds": 0,
            "train": False,
            "sample_hz": 4,
        }
    },
}


def measure(stage: Stage) -> list[Figure]:
    """Return the upgrade's own seconds, and for comparison those of the whole upgrade."""
    inventory, runs = stage.inventory_with("upgraded", VARIABLES), stage.folder / "upgrade-runs"
    own, whole = [], []
    for branch in BRANCHES:
        words = ("--driver", branch, "--settle-minutes", "0", "-i", str(inventory), "--runs", str(runs))
        stage.rigctl("upgrade", "rig1", *words)
        (rig,) = upgrade_summary(RunDir.open(runs, "latest", kind="upgrade")).rigs
        if rig.own_seconds is None or rig.seconds is None:
            raise BenchFailed(f"the upgrade to {branch} ended as {rig.end.end}")
        own.append(rig.own_seconds)
        whole.append(rig.seconds)
    return [
        figure("upgrade: our own time for one healthy rig", own, "s", HOW, goal=("≤", MOST_S)),
        figure("upgrade: the whole of it", whole, "s", HOW),
    ]
