"""The controller is killed (`kill -9`) at 50 random moments of an acceptance of two rigs, and resumed each time."""

from __future__ import annotations

import gzip
import json
import os
import random
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

from bench.figure import Figure, figure
from bench.stage import wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from bench.stage import Stage

NAME = "resumed"
MOMENTS, SEED = 50, 20
LOST_S = 15
"""controller_lost_s, seconds: two processor cores that carry two rigs poll slowly at times."""
RIGS = ("rig1", "rig2")
LINES = ("telemetry.jsonl", "events.jsonl")
LEFT = "pgrep -x gpu_burn; pgrep -x stress-ng; systemctl list-units --plain --no-legend 'rigctl-*.service'"
"""Names what is at work on a rig, and guards that are left; nothing where there is nothing."""
HOW = (
    f"2 rigs, idle, CPU, cards and both for 16 s in all; kill -9 to rigctl at {MOMENTS} moments, drawn evenly over an "
    f"uninterrupted run; resumed at once, or {LOST_S + 4} s later when the guards have stopped the load, by turns"
)
PROFILE = {
    "idle_seconds": 2,
    "cpu_burn_seconds": 3,
    "gpu_burn_seconds": 7,
    "all_burn_seconds": 4,
    "train": False,
    "sample_hz": 5,
    "controller_lost_s": LOST_S,
}


def measure(stage: Stage) -> list[Figure]:
    """Return how many runs ended otherwise than an uninterrupted one, the lines that were lost, and what was left."""
    inventory = stage.inventory_with("resumed", {"rig_profiles": {"resumed": PROFILE}})
    words = ("-i", str(inventory), "--runs")
    # Each in a folder of its own: a run is judged by the accepted ones beside it.
    first = stage.folder / "resumed-whole"
    whole_s = stage.rigctl("accept", *words, str(first), "--profile", "resumed", expect=(0, 1, 3))
    wanted = _told(_the_run(first))
    dice = random.Random(SEED)  # noqa: S311 - a seed, so that the moments can be had again
    otherwise, lost, left, again = 0, 0, 0, 0
    for number in range(MOMENTS):
        runs = stage.folder / f"resumed-{number}"
        run = _killed_after(stage, runs, words, dice.uniform(0, whole_s))
        before = _fetched(run)
        if number % 2:
            time.sleep(LOST_S + 4)
        journal = run / "journal.jsonl"
        if not journal.exists() or '"run_finished"' not in journal.read_text(encoding="utf-8"):
            stage.rigctl("accept", "--resume", run.name, *words, str(runs), expect=(0, 1, 3))
        again += any(run.glob("rig*/set_aside/*"))
        otherwise += _differs(_told(run), wanted, number)
        lost += sum(len(lines - _kept(run, *place)) for place, lines in before.items())
        left += sum(bool(stage.ssh(rig, LEFT).strip()) for rig in RIGS)
    kills = f"of {MOMENTS} kills"
    return [
        figure(f"resumed: runs that ended otherwise, {kills}", [otherwise], "runs", HOW, goal=("=", 0)),
        figure(f"resumed: runs with a step done again, {kills}", [again], "runs", HOW),
        figure("resumed: samples and events lost that were on the disk", [lost], "lines", HOW, goal=("=", 0)),
        figure("resumed: rigs left with a load or a guard", [left], "rigs", HOW, goal=("=", 0)),
    ]


def _killed_after(stage: Stage, runs: Path, words: tuple[str, ...], seconds: float) -> Path:
    """Begin an acceptance, kill it so long after its run directory is there; return that."""
    controller = stage.start("accept", *words, str(runs), "--profile", "resumed")
    try:
        wait_for("a run directory", lambda: [*runs.glob("*/run.json")], 60, every_s=0.05)
        time.sleep(seconds)
    finally:
        if controller.poll() is None:
            os.killpg(controller.pid, signal.SIGKILL)
        controller.wait()
    return _the_run(runs)


def _the_run(runs: Path) -> Path:
    (run,) = runs.glob("*/run.json")
    return run.parent


def _differs(told: dict[str, Any], wanted: dict[str, Any], number: int) -> bool:
    """Whether a run ended otherwise; what differs is said, for a person to look at."""
    differs = {key: (wanted.get(key), told.get(key)) for key in told.keys() | wanted.keys()}
    differs = {key: both for key, both in differs.items() if both[0] != both[1]}
    for key, both in sorted(differs.items()):
        sys.stderr.write(f"bench: resumed: kill {number}: {key} was {both[0]}, is {both[1]}\n")
    return bool(differs)


def _told(run: Path) -> dict[str, Any]:
    """Every verdict of a run and every step that each rig finished."""
    record = json.loads((run / "record.json").read_bytes())
    told: dict[str, Any] = {
        f"{rig['name']} {one['check']}[{one['subject']}]": one["verdict"]
        for rig in record["rigs"]
        for one in rig["verdicts"]
    }
    for rig in RIGS:
        rows = [json.loads(line) for line in _whole(run / rig / "events.jsonl")]
        told[rig] = [row["step"] for row in rows if row["event"] == "step_finished"]
    return told


def _whole(path: Path) -> list[bytes]:
    """Whole lines of a file, packed or not; none where it is not there."""
    packed = path.with_name(f"{path.name}.gz")
    data = path.read_bytes() if path.exists() else gzip.decompress(packed.read_bytes()) if packed.exists() else b""
    return data[: data.rfind(b"\n") + 1].splitlines()


def _fetched(run: Path) -> dict[tuple[str, str], set[bytes]]:
    """What had come home when the controller was killed, by rig and file."""
    return {(rig, name): set(_whole(run / rig / name)) for rig in RIGS for name in LINES}


def _kept(run: Path, rig: str, name: str) -> set[bytes]:
    """What is there now, also of what was set aside."""
    aside = [line for path in (run / rig).glob(f"set_aside/*/{name}") for line in _whole(path)]
    return {*_whole(run / rig / name), *aside}
