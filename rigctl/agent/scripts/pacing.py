"""How fast a piece of work goes once the clocks have settled: warm up until the rate comes to rest, then the median."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

AT_REST = 4
"""So many blocks in a row within `within` of each other: the rate has come to rest."""


@dataclass(frozen=True)
class Pace:
    """How long is measured."""

    block_s: float
    """The work is repeated until a block takes at least so long, seconds: starting it is then no part of its rate."""
    blocks: int
    """So many blocks are measured."""
    warm_up_s: float
    """The warm-up ends after so long at the latest, seconds."""
    within: float = 0.01
    """Share by which blocks at rest differ at most."""

    @classmethod
    def of(cls, arguments: dict[str, Any]) -> Pace:
        """The pace that the arguments ask for."""
        return cls(float(arguments["block_s"]), int(arguments["blocks"]), float(arguments["warm_up_s"]))


def paced(
    work: Callable[[], None],
    finish: Callable[[], None],
    pace: Pace,
    amount: float,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Any]:
    """Measure `amount` ÷ seconds of one call of `work`, in the unit of `amount` per second.

    `work` begins one piece on the device, `finish` waits for it. Answers `{"rate", "blocks", "settled", "warm_up_s"}`:
    the median of the blocks, each of them, whether the warm-up ended because the rate had come to rest, and how long
    it took.
    """
    work()
    finish()

    def seconds_of(calls: int) -> float:
        begun = clock()
        for _ in range(calls):
            work()
        finish()
        return clock() - begun

    calls = 1
    while (took := seconds_of(calls)) < pace.block_s:
        # Straight to the block's length where the first calls say how long one takes; at most tenfold at a time.
        calls = min(calls * 10, max(calls + 1, round(calls * pace.block_s / took * 1.1))) if took > 0 else calls * 10
    begun, recent, settled = clock(), [took], False
    while not settled and clock() - begun < pace.warm_up_s:
        recent = [*recent, seconds_of(calls)][-AT_REST:]
        settled = len(recent) == AT_REST and max(recent) / min(recent) - 1 <= pace.within
    warm_up_s = clock() - begun
    rates = [amount * calls / seconds_of(calls) for _ in range(pace.blocks)]
    return {
        "rate": statistics.median(rates),
        "blocks": rates,
        "settled": settled,
        "warm_up_s": round(warm_up_s, 3),
    }
