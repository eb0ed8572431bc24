"""`rigctl demo` the first time, with nothing built or fetched yet, and once more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.figure import Figure, figure

if TYPE_CHECKING:
    from bench.stage import Stage

NAME = "demo"
FIRST_S, AGAIN_S = 360, 180


def measure(stage: Stage) -> list[Figure]:
    """Return both durations; the first one builds the image and fetches PyTorch into an empty cache."""
    cache = {"XDG_CACHE_HOME": str(stage.folder / "cache")}
    words = ("demo", "--runs", str(stage.runs), "--state", str(stage.folder / "demo"))
    stage.rigctl("sim", "down", "--images", "--state", str(stage.folder / "demo"))
    first = stage.rigctl(*words, env=cache)
    again = stage.rigctl(*words, env=cache)
    how = "`rigctl demo` with no image built and an empty cache"
    return [
        figure("demo, the first time", [first], "s", how, goal=("≤", FIRST_S)),
        figure("demo, again", [again], "s", "`rigctl demo` once more", goal=("≤", AGAIN_S)),
    ]
