"""A pattern test of the cards' memory: `--arguments JSON --out FILE`, run by the rig's torch Python.

All free memory of a card is taken, in blocks. Pattern by pattern, every block is written, and only when all are written
every block is read again: so nothing is read out of a cache, and a write that lands elsewhere spoils what was written
before. Comparing happens on the card; the first wrong words are located. FILE is written once, at the end:

    {"torch", "device", "cards": [{"slot", "name", "uuid", "total_mib", "tested_mib", "patterns", "compared_bytes",
     "wrong_words", "wrong_bits", "errors": [{"pattern", "address", "expected", "found", "wrong_bytes"}]}]}
     or     {"error", "hint"}

`wrong_bits` counts, over the located words, by bit (0 to 31) how often it was wrong: one bit alone speaks for one line.
`address` is in bytes from the beginning of the tested memory; the driver tells no physical one.
"""

from __future__ import annotations

import sys
from typing import Any, Protocol

from .devices import TORCH_MISSING, Opened, ScriptError, open_devices, run, say, torch_version
from .patterns import ODD, WORD_BITS, WORD_BYTES, WORD_MASK, Pattern, patterns, wrong_bytes

if not TORCH_MISSING:
    import torch

MIB = 2**20
LOCATED = 16
"""So many wrong words of a card are told with their place; all are counted."""
HIGHEST_SIGNED = 0x7FFFFFFF


class Memory(Protocol):
    """The memory of one device, in blocks."""

    total_mib: float

    def take(self, share: float, block_words: int) -> list[Any]:
        """Take this share of the free memory, in blocks of so many words."""

    def fill(self, block: Any, first: int, pattern: Pattern) -> None:
        """Write the pattern into a block whose first word has the place `first`."""

    def wrong(self, block: Any, first: int, pattern: Pattern) -> tuple[int, list[tuple[int, int]]]:
        """How many words are wrong, and for some of them place and what was found."""

    def words(self, block: Any) -> int:
        """How many words a block holds."""


class TorchMemory:
    """Memory that torch takes on a device."""

    def __init__(self, one: Opened, take_mib: int | None) -> None:
        """`take_mib`: how much there is to take on a device that does not tell, MiB."""
        self.device, self._take_mib = one.device, take_mib
        if self.device.type == "cuda":
            self._free, total = (int(figure) for figure in torch.cuda.mem_get_info(self.device))
        else:
            self._free = total = int(take_mib or 0) * MIB
        self.total_mib = total / MIB

    def take(self, share: float, block_words: int) -> list[Any]:
        """Take blocks; the last one is what is left over."""
        left, blocks = int(self._free * share) // WORD_BYTES, []
        while left > 0:
            count = min(left, block_words)
            blocks.append(torch.empty(count, dtype=torch.int32, device=self.device))
            left -= count
        return blocks

    def fill(self, block: Any, first: int, pattern: Pattern) -> None:
        """Write the pattern."""
        block.copy_(self._expected(block, first, pattern))

    def wrong(self, block: Any, first: int, pattern: Pattern) -> tuple[int, list[tuple[int, int]]]:
        """Compare on the device; at most `LOCATED` words are brought home."""
        differs = block != self._expected(block, first, pattern)
        count = int(differs.sum().item())
        if not count:
            return 0, []
        places = differs.nonzero().flatten()[:LOCATED].tolist()
        return count, [(first + place, int(block[place].item()) & WORD_MASK) for place in places]

    def words(self, block: Any) -> int:
        """Words of a block."""
        return int(block.numel())

    def _expected(self, block: Any, first: int, pattern: Pattern) -> Any:
        """What a block must hold, made on the device itself; int32 holds the same bits as the unsigned word."""
        places = torch.arange(first, first + block.numel(), dtype=torch.int64, device=self.device)
        if pattern.kind == "walking":
            values = torch.ones_like(places) << ((places + pattern.turn) % WORD_BITS)
        elif pattern.kind == "address":
            values = places & WORD_MASK
        else:
            values = (places * ODD) & WORD_MASK
        if pattern.inverted:
            values = values ^ WORD_MASK
        return torch.where(values > HIGHEST_SIGNED, values - (WORD_MASK + 1), values).to(torch.int32)


def walk(memory: Memory, arguments: dict[str, Any]) -> dict[str, Any]:
    """Run every pattern over one device's memory."""
    blocks = memory.take(float(arguments["share"]), int(arguments["block_mib"]) * MIB // WORD_BYTES)
    words = sum(memory.words(block) for block in blocks)
    if words == 0:
        raise ScriptError("no memory of the card is free", "`nvidia-smi` tells who holds it")
    chosen, wrong, bits = patterns(int(arguments["turns"])), 0, [0] * WORD_BITS
    errors: list[dict[str, Any]] = []
    for pattern in chosen:
        for first, block in _placed(memory, blocks):
            memory.fill(block, first, pattern)
        for first, block in _placed(memory, blocks):
            count, located = memory.wrong(block, first, pattern)
            wrong += count
            for place, found in located:
                _note(pattern, place, found, bits, errors)
        say(f"{pattern.name}: {wrong} wrong words so far")
    return {
        "total_mib": round(memory.total_mib, 1),
        "tested_mib": round(words * WORD_BYTES / MIB, 1),
        "patterns": len(chosen),
        "compared_bytes": words * WORD_BYTES * len(chosen),
        "wrong_words": wrong,
        "wrong_bits": bits,
        "errors": errors,
    }


def _placed(memory: Memory, blocks: list[Any]) -> list[tuple[int, Any]]:
    """Each block with the place of its first word."""
    placed, first = [], 0
    for block in blocks:
        placed.append((first, block))
        first += memory.words(block)
    return placed


def _note(pattern: Pattern, place: int, found: int, bits: list[int], errors: list[dict[str, Any]]) -> None:
    """Locate one wrong word."""
    expected = pattern.word(place)
    for bit in range(WORD_BITS):
        bits[bit] += (expected ^ found) >> bit & 1
    if len(errors) < LOCATED:
        said = {"pattern": pattern.name, "address": place * WORD_BYTES, "expected": f"{expected:08x}"}
        errors.append({**said, "found": f"{found:08x}", "wrong_bytes": wrong_bytes(expected, found)})


def measure(arguments: dict[str, Any]) -> dict[str, Any]:
    """Test every device that the arguments name, one after another."""
    cards = []
    for one in open_devices(arguments):
        say(f"slot {one.slot}: {one.name}")
        cards.append({**one.identity, **walk(TorchMemory(one, arguments.get("take_mib")), arguments)})
        if one.device.type == "cuda":
            torch.cuda.empty_cache()
    return {"torch": torch_version(), "device": arguments["device"], "cards": cards}


if __name__ == "__main__":
    sys.exit(run(measure, "Write patterns into the cards' memory and compare what is read."))
