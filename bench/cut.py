"""SSH is down for 20 s in the middle of the burn: the acceptance passes and no sample is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.figure import Figure, figure
from bench.stage import jsonl

if TYPE_CHECKING:
    from bench.stage import Stage

NAME = "cut"
PROFILE = {
    "idle_seconds": 2,
    "cpu_burn_seconds": 0,
    "gpu_burn_seconds": 45,
    "all_burn_seconds": 0,
    "train": False,
    "sample_hz": 5,
}
HOW = "`rigctl sim fault rig2 ssh_down seconds=20 when=load`, then `rigctl accept`: exit 0, gaps in the samples' seq"


def measure(stage: Stage) -> list[Figure]:
    """Return how many samples of the cut rig are missing."""
    inventory = stage.inventory_with("cut", {"rig_profiles": {"cut": PROFILE}})
    stage.rigctl("sim", "fault", "rig2", "ssh_down", "seconds=20", "when=load", "--state", str(stage.state))
    try:
        stage.rigctl("accept", "-i", str(inventory), "--runs", str(stage.runs), "--profile", "cut")
    finally:
        stage.rigctl("sim", "clear", "rig2", "--state", str(stage.state))
    run = stage.newest_run()
    numbers = [sample["seq"] for sample in jsonl(run / "rig2" / "telemetry.jsonl")]
    missing = len(set(range(min(numbers), max(numbers) + 1)) - set(numbers))
    cuts = [line for line in jsonl(run / "journal.jsonl") if line.get("event") == "cut"]
    return [
        figure("samples lost in a cut of 20 s", [missing], f"of {len(numbers)}", HOW, goal=("=", 0)),
        figure("the cut stands in the journal", [len(cuts)], "times", HOW, goal=("≥", 1)),
    ]
