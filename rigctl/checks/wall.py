"""What the wall meter shows beside what cards and processor say of themselves: whether it can be believed."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from rigctl.checks import load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rigctl.model.reading import Readings, Sample

FEWEST_SHARE = 0.5
"""At least half of the samples must carry the meter's reading."""
TOLD_APART_W = 100.0
"""Loads are told apart by so much power of cards and processor: more than the coarsest step of a meter, one per cent
of a UPS."""
FOLLOWS_SHARE = 0.2
"""A meter must show at least so much of a change inside the rig: supplies lose power and never make any, so all of it
and more has to come through the wall, and what is left out is for the meter's steps and delay."""
LARGE_SHARE = 0.2
"""A change of so much of the wall power goes the same way outside, whatever else hangs on the meter."""
MOST_TIMES = 10.0
"""Under a GPU load, no rig takes so many times what its cards take: the meter has lost its scale."""


class State(NamedTuple):
    """One load as wall, cards and processor show it: means of its last third, W."""

    step: str
    wall_w: float
    cards_w: float
    cpu_w: float | None
    """None where the rig does not show it."""

    @property
    def inside_w(self) -> float:
        """What is known to arrive inside."""
        return self.cards_w + (self.cpu_w or 0.0)


def settled(readings: Readings, step: str) -> list[Sample]:
    """Return the samples that stand for a load: at rest all of them, else its last third, with all cards busy."""
    if step == "idle":
        return list(readings.of_step(step))
    return load.last_third(load.all_busy(readings, step) if step in load.GPU_STEPS else readings.of_step(step))


def state(readings: Readings, step: str) -> State | None:
    """Return what a load drew; None where wall or cards were not read."""
    samples = settled(readings, step)
    read = [
        (one.wall_power_w, sum(watts), one.cpu_power_w)
        for one in samples
        if one.wall_power_w is not None
        and one.gpus
        and len(watts := [gpu.power_w for gpu in one.gpus if gpu.power_w is not None]) == len(one.gpus)
    ]
    if len(read) < max(load.FEWEST, FEWEST_SHARE * len(samples)):
        return None
    cpu = [one[2] for one in read if one[2] is not None]
    cpu_w = load.mean(cpu) if len(cpu) >= FEWEST_SHARE * len(read) else None
    return State(step, load.mean([one[0] for one in read]), load.mean([one[1] for one in read]), cpu_w)


def states(readings: Readings) -> list[State]:
    """Return every load of the run that wall and cards were read in, in the order of the steps."""
    return [found for step in load.STEPS if (found := state(readings, step)) is not None]


def doubt(readings: Readings, step: str) -> str | None:
    """Say why the meter's readings of `step` cannot be believed; None where nothing speaks against them."""
    known = states(readings)
    own = next((one for one in known if one.step == step), None)
    return None if own is None else _absurd(own) or _stuck(own, known)


def _absurd(own: State) -> str | None:
    inside = f"cards{'' if own.cpu_w is None else ' and CPU'} alone {own.inside_w:.0f} W"
    if own.wall_w < own.inside_w:
        return f"the meter shows {own.wall_w:.0f} W in step {own.step}, {inside}: no supply gives more than it takes"
    if own.step in load.GPU_STEPS and own.wall_w > MOST_TIMES * own.inside_w:
        return f"the meter shows {own.wall_w:.0f} W in step {own.step}, {inside}: it has lost its scale"
    return None


def _stuck(own: State, known: Sequence[State]) -> str | None:
    """Compare with the load that differs most inside; both must have shown the same parts."""
    pairs = [pair for pair in combinations(known, 2) if own in pair]
    alike = [(one, two) for one, two in pairs if (one.cpu_w is None) == (two.cpu_w is None)]
    for one, two in alike:
        inside_w, wall_w = two.inside_w - one.inside_w, two.wall_w - one.wall_w
        stands = abs(inside_w) >= TOLD_APART_W and abs(wall_w) < FOLLOWS_SHARE * abs(inside_w)
        large = abs(inside_w) >= LARGE_SHARE * max(one.wall_w, two.wall_w)
        if stands or (large and inside_w * wall_w < 0):
            return (
                f"the meter is stuck: from step {one.step} to {two.step} the rig's own sensors changed by"
                f" {inside_w:+.0f} W and the meter by {wall_w:+.0f} W ({two.wall_w:.0f} W)"
            )
    return None
