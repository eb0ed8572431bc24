"""The guard's promises, on a rig at time scale 1: heat at 5 °C/s, and how long a burn outlives what was killed."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from bench.figure import Figure, figure
from bench.stage import BIN, OUTPUT_LINES, BenchFailed

if TYPE_CHECKING:
    from bench.stage import Stage

NAME = "guard"
ROOT = Path(__file__).parents[1]
TESTS = "tests/agent/test_safety_on_rig.py"
HOT, OUTLIVED, BEYOND = "hottest card", "burn outlived", "beyond controller_lost_s"
HOTTEST_C = 82
"""The limit of that burn and 2 °C."""
OUTLIVES_S = 5
AS_BEFORE = 6
"""Tests after which power limits and a stopped service must be as they were."""
HOW = f"{TESTS} on one simulated rig at time scale 1, with a burner that takes no notice of SIGTERM"


def measure(stage: Stage) -> list[Figure]:
    """Run the tests that measure these promises, and return what they measured."""
    report = stage.folder / "guard.xml"
    words = ["-m", "pytest", TESTS, "-k", "heats or outlive", f"--junitxml={report}"]
    done = subprocess.run([BIN / "python", *words], capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode != 0:
        raise BenchFailed("\n".join(done.stdout.splitlines()[-OUTPUT_LINES:]))
    suite = ET.parse(report).getroot()  # noqa: S314 - pytest wrote it a moment ago
    found = {str(one.get("name")): float(str(one.get("value"))) for one in suite.iter("property")}
    as_before = [case for case in suite.iter("testcase") if "outlive" in str(case.get("name"))]
    goals = {HOT: (HOTTEST_C, "°C"), OUTLIVED: (OUTLIVES_S, "s"), BEYOND: (OUTLIVES_S, "s")}
    figures = [
        figure(name.rpartition(",")[0], [value], unit, HOW, goal=("≤", most))
        for name, value in found.items()
        for start, (most, unit) in goals.items()
        if name.startswith(start)
    ]
    name = "kills after which limits and services were as before"
    return [*figures, figure(name, [len(as_before)], "of them", HOW, goal=("=", AS_BEFORE))]
