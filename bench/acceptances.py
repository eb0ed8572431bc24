"""Ten acceptances of two healthy rigs in a row: how many end with exit code 0, and how long one takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.figure import Figure, figure
from bench.stage import BenchFailed

if TYPE_CHECKING:
    from bench.stage import Stage

NAME = "acceptances"
TIMES = 10
HOW = "ten times `rigctl accept` on the same two simulated rigs without a fault, profile standard"


def measure(stage: Stage) -> list[Figure]:
    """Return how many passed, and their durations."""
    seconds: list[float] = []
    failures: list[str] = []
    for _ in range(TIMES):
        try:
            seconds.append(stage.rigctl("accept", "-i", str(stage.inventory), "--runs", str(stage.runs)))
        except BenchFailed as error:
            failures.append(str(error))
    how = "; ".join([HOW, *failures])
    passed = figure("acceptances without a fault that pass", [len(seconds)], f"of {TIMES}", how, goal=("=", TIMES))
    return [passed, figure("duration of one acceptance", seconds, "s", HOW)] if seconds else [passed]
