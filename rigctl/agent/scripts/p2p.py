"""Copies between cards, timed and compared: `python p2p.py --arguments JSON --out FILE`, run by the rig's torch Python.

For each pair of cards: one way in each direction, then both ways at once. What arrives is compared byte by byte on the
card that received it with a pattern that this card made itself; before each copy the target is filled with something
else, so that a copy that did not happen is found too. FILE is written once, at the end, atomically:

    {"torch", "bytes", "pairs": [{"slots", "access", "one_way_gb_per_s": [there, back], "both_ways_gb_per_s",
     "compared_bytes", "wrong_bytes"}]}     or     {"error", "hint"}

GB/s are 10^9 bytes a second, the median of the timed copies; both ways is the sum of the two directions. Without peer
access the driver copies through the host's memory: then those are the figures, and `access` says so.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Protocol

# Cards counted in PCI bus order, as slots are; must be set before CUDA starts.
os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")

TORCH_MISSING = ""
try:
    import torch
except (ImportError, OSError) as broken:  # OSError: a shared library of the wheel that does not load
    TORCH_MISSING = str(broken)

WARMUP = 3
GIGA = 1e9
STEP, MASK = 0x9E3779B1, 0x7FFFFFFF
"""Each word of the pattern is its own place times an odd number, so that a shifted copy is found as well."""


class P2pError(Exception):
    """Nothing could be copied; carries the remedy."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


class Cards(Protocol):
    """What is asked of the cards, by slot from 0."""

    count: int

    def access(self, one: int, other: int) -> bool:
        """Whether `one` can read the memory of `other`."""

    def pattern(self, card: int, words: int, seed: int) -> Any:
        """A buffer of `words` 32-bit words on a card, filled by the card itself."""

    def copy(self, source: Any, target: Any) -> None:
        """Begin a copy; `wait` waits for it."""

    def wait(self) -> None:
        """Wait for everything that was begun on every card."""

    def wrong_bytes(self, found: Any, expected: Any) -> int:
        """How many bytes differ, counted on the card that holds both."""


class Cuda:
    """The cards of this rig."""

    def __init__(self) -> None:
        if TORCH_MISSING:
            raise P2pError(f"torch cannot be imported: {TORCH_MISSING}", "rigctl provision RIG --tags pytorch")
        if not torch.cuda.is_available():
            hint = "check the driver (nvidia-smi) and that pytorch_build is a CUDA build that this driver can run"
            raise P2pError(f"torch {torch.__version__} sees no card", hint)
        self.count = int(torch.cuda.device_count())
        self._streams = [torch.cuda.Stream(device=card) for card in range(self.count)]

    def access(self, one: int, other: int) -> bool:
        """Whether `one` can read the memory of `other`."""
        return bool(torch.cuda.can_device_access_peer(one, other))

    def pattern(self, card: int, words: int, seed: int) -> Any:
        """A buffer on a card."""
        return pattern(torch.device("cuda", card), words, seed)

    def copy(self, source: Any, target: Any) -> None:
        """Begin a copy on the source's own stream, so that two directions go at once."""
        with torch.cuda.stream(self._streams[source.device.index]):
            target.copy_(source, non_blocking=True)

    def wait(self) -> None:
        """Wait for every card."""
        for card in range(self.count):
            torch.cuda.synchronize(card)

    def wrong_bytes(self, found: Any, expected: Any) -> int:
        """How many bytes differ."""
        return wrong_bytes(found, expected)


def pattern(device: Any, words: int, seed: int) -> Any:
    """`words` 32-bit words that differ from place to place and from seed to seed."""
    places = torch.arange(words, dtype=torch.int64, device=device)
    return ((places + seed).mul_(STEP).bitwise_and_(MASK)).to(torch.int32)


def wrong_bytes(found: Any, expected: Any) -> int:
    """How many bytes of two buffers differ."""
    return int((found.view(torch.uint8) != expected.view(torch.uint8)).sum().item())


@dataclass
class Pair:
    """Two cards and what was found between them; cards count from 0."""

    cards: Cards
    one: int
    other: int
    words: int
    compared: int = 0
    wrong: int = 0

    def measure(self, repeats: int) -> dict[str, Any]:
        """Copy one way in each direction, then both ways at once."""
        there = self._timed(((self.one, self.other),), repeats)
        back = self._timed(((self.other, self.one),), repeats)
        both = self._timed(((self.one, self.other), (self.other, self.one)), repeats)
        return {
            "slots": [self.one + 1, self.other + 1],
            "access": self.cards.access(self.one, self.other) and self.cards.access(self.other, self.one),
            "one_way_gb_per_s": [there, back],
            "both_ways_gb_per_s": both,
            "compared_bytes": self.compared,
            "wrong_bytes": self.wrong,
        }

    def _timed(self, ways: tuple[tuple[int, int], ...], repeats: int) -> float:
        """GB/s over all `ways` together; each timed copy brings another pattern, and is compared."""
        rates: list[float] = []
        for turn in range(WARMUP + repeats):
            buffers = [self._buffers(source, target, turn) for source, target in ways]
            self.cards.wait()
            begun = time.perf_counter()
            for source, target, _ in buffers:
                self.cards.copy(source, target)
            self.cards.wait()
            seconds = time.perf_counter() - begun
            if turn >= WARMUP:
                rates.append(len(ways) * self.words * 4 / seconds / GIGA)
            for _, target, expected in buffers:
                self.compared += self.words * 4
                self.wrong += self.cards.wrong_bytes(target, expected)
        return statistics.median(rates)

    def _buffers(self, source: int, target: int, turn: int) -> tuple[Any, Any, Any]:
        """What is sent, where it goes (filled with something else), and what must arrive."""
        seed = 1 + turn * 7919 + source
        make = self.cards.pattern
        return make(source, self.words, seed), make(target, self.words, ~seed), make(target, self.words, seed)


def measure(arguments: dict[str, Any], cards: Cards) -> dict[str, Any]:
    """Measure every pair of cards."""
    words, repeats = int(arguments["bytes"]) // 4, int(arguments["repeats"])
    if cards.count < int(arguments["cards"]):
        raise P2pError(
            f"torch sees {cards.count} of {arguments['cards']} cards", "see topology.gpu_count; CUDA_VISIBLE_DEVICES?"
        )
    pairs = []
    for one, other in combinations(range(cards.count), 2):
        found = Pair(cards, one, other, words).measure(repeats)
        pairs.append(found)
        print(json.dumps(found), flush=True)  # noqa: T201 - the step's log
    return {"torch": "" if TORCH_MISSING else str(torch.__version__), "bytes": words * 4, "pairs": pairs}


def write(path: Path, answer: dict[str, Any]) -> None:
    """Write the answer whole, or not at all."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(answer), encoding="utf-8")
    part.replace(path)


def main() -> int:
    """Run once; exit status 0, or 1 with the error in FILE."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--arguments", required=True, type=json.loads)
    parser.add_argument("--out", required=True, type=Path)
    asked = parser.parse_args()
    try:
        write(asked.out, measure(asked.arguments, Cuda()))
    except P2pError as error:
        write(asked.out, {"error": str(error), "hint": error.hint})
        return 1
    except RuntimeError as error:
        # torch's own: CUDA failed in the middle, for want of memory or because a card is gone.
        write(asked.out, {"error": f"CUDA failed: {error}".splitlines()[0], "hint": "see kernel.xid"})
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
