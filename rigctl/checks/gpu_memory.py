"""The pattern test of the cards' memory: what was written is what is read, in as much of it as can be reached."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field

from rigctl.checks import load
from rigctl.checks.say import Say
from rigctl.checks.told import Card, OfDevice, each_named, other_device, read

if TYPE_CHECKING:
    from rigctl.model.reading import GpuFacts, Readings
    from rigctl.model.spec import RigSpec
    from rigctl.model.verdict import CheckVerdict

STEP = "gpu_memory"
WORD_BYTES = 4
_REPLACE = (
    "look for Xid 48, 63, 64 and 94 in kernel.xid; try lower memory clocks to tell overclocks from broken memory, "
    "then replace the card"
)


class _Error(BaseModel):
    """One wrong word."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    pattern: str
    address: int = Field(ge=0)
    expected: str
    found: str


class _Card(Card):
    total_mib: float = Field(gt=0)
    tested_mib: float = Field(gt=0)
    patterns: int = Field(gt=0)
    compared_bytes: int = Field(gt=0)
    wrong_words: int = Field(ge=0)
    wrong_bits: tuple[int, ...] = ()
    errors: tuple[_Error, ...] = ()


_Tested = OfDevice[_Card]


def gpu_memory(spec: RigSpec, readings: Readings) -> list[CheckVerdict]:
    """Every word that was written into a card's memory was read as it was, in all but a small rest of it."""
    say = Say("memory.gpu_pattern", expected=0, unit="wrong words", source="the patterns that were written")
    asked = spec.compute
    if asked is None:
        return [say.skipped("the spec asks for no compute workload")]
    told = read(readings, STEP, _Tested)
    if isinstance(told, load.NoLoad):
        return [say.error(*told)]
    if other := other_device(told.device, asked.device, readings.rig):
        return [say.error(*other)]
    least = asked.min_tested_memory_share

    def judge(card: _Card, gpu: GpuFacts | None, say: Say) -> CheckVerdict:
        look = f"look at {STEP}.log of {readings.rig} in the run directory"
        whole_mib = float(gpu.memory_mib) if gpu is not None and gpu.memory_mib else card.total_mib
        if card.wrong_words * WORD_BYTES > card.compared_bytes:
            return say.error(f"{card.wrong_words} wrong words in {card.compared_bytes} bytes cannot be", look)
        if card.wrong_words > 0:
            return say.failed(_located(card), card.wrong_words, _REPLACE)
        share = card.tested_mib / whole_mib
        if share > 1:
            return say.error(f"{card.tested_mib:g} MiB were tested of a card with {whole_mib:g} MiB", look)
        if share < least:
            reason = f"only {share:.0%} of its memory could be tested, at least {least:.0%} were asked for"
            return say.error(reason, "who else uses the card? `nvidia-smi` names the processes; or lower the share")
        said = f"{card.compared_bytes / 1e9:,.0f} GB read as written, {card.patterns} patterns over {share:.0%} of it"
        return say.passed(said, 0)

    return each_named(say, spec, readings, told, judge)


def _located(card: _Card) -> str:
    """Say how many words are wrong, where the first one is, and which bits."""
    said = f"{card.wrong_words} wrong words in {card.compared_bytes / 1e9:,.0f} GB"
    if card.errors:
        first = card.errors[0]
        said += f"; first at {first.address:#x} with {first.pattern}: {first.found} instead of {first.expected}"
    bits = [str(bit) for bit, count in enumerate(card.wrong_bits) if count > 0]
    if bits:
        said += f"; bit {bits[0]} alone" if len(bits) == 1 else f"; {len(bits)} bits of a word"
    return said
