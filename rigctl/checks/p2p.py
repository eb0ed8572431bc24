"""Copies between cards: as fast as the spec says, and what arrives is what was sent."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Annotated, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rigctl.checks import load
from rigctl.checks.cards import cards, why_no_card
from rigctl.checks.say import Say

if TYPE_CHECKING:
    from collections.abc import Callable

    from rigctl.model.reading import GpuFacts, PairFacts, Readings
    from rigctl.model.spec import LinkSpec, RigSpec
    from rigctl.model.verdict import CheckVerdict

STEP, RESULT = "p2p", "p2p.json"
MOST_GB_PER_S = 10_000
"""Ten times what any link does: more than this is no measurement."""
_IOMMU = (
    "another driver first; then IOMMU and ACS: switch them off in the BIOS or with iommu=pt, and try again; "
    "NCCL_P2P_DISABLE=1 until it is mended"
)
_PATH = "see topology.nvlink, topology.pcie_gen and topology.pcie_width of both cards"


_Rate = Annotated[float, Field(gt=0, lt=MOST_GB_PER_S)]


class _Pair(BaseModel):
    """What was measured between two cards."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    slots: tuple[int, int]
    access: bool
    one_way_gb_per_s: tuple[_Rate, _Rate]
    both_ways_gb_per_s: _Rate
    compared_bytes: int = Field(gt=0)
    wrong_bytes: int = Field(ge=0)


class _Told(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    pairs: tuple[_Pair, ...] = ()
    error: str | None = None
    hint: str = ""


class _Two(NamedTuple):
    """Two cards that should be joined, or not, as declared."""

    one: GpuFacts
    other: GpuFacts
    link: LinkSpec | None

    @property
    def subject(self) -> str:
        return f"slot{self.one.slot}-slot{self.other.slot}"

    @property
    def joined(self) -> bool:
        """Whether the spec says that they reach each other's memory."""
        return self.link is not None and self.link.kind != "none"


def _pairs(spec: RigSpec, readings: Readings) -> list[_Two]:
    declared = {tuple(sorted(link.slots)): link for link in spec.parts.links}
    return [_Two(a, b, declared.get((a.slot, b.slot))) for a, b in combinations(cards(readings), 2)]


def _joined(spec: RigSpec, two: _Two) -> bool:
    """Whether the spec says that two cards reach each other's memory; through NVSwitches all do."""
    return two.joined or spec.parts.nvswitch_links is not None


def access(spec: RigSpec, readings: Readings) -> list[CheckVerdict]:
    """The driver lets each joined pair reach each other's memory. No P2P where none was declared is no fault."""
    say = Say("topology.p2p_access", source=spec.source("parts.links"))
    if not spec.parts.links and spec.parts.nvswitch_links is None:
        return [say.skipped("the spec declares no links between cards")]
    if not cards(readings) or readings.facts is None:
        return [say.error(*why_no_card(readings))]
    known = {pair.slots: pair for pair in readings.facts.pairs}
    twos = _pairs(spec, readings)
    if not twos:
        return [say.error("one card alone makes no pair", "see topology.gpu_count")]
    return [
        _access(say.of(two.subject, "P2P" if _joined(spec, two) else "none needed"), two, known, readings)
        if _joined(spec, two)
        else say.of(two.subject, "none needed").skipped("the spec joins these two cards by nothing")
        for two in twos
    ]


def _access(say: Say, two: _Two, known: dict[tuple[int, int], PairFacts], readings: Readings) -> CheckVerdict:
    look = f"nvidia-smi topo -p2p r on {readings.rig}"
    pair = known.get((two.one.slot, two.other.slot))
    if pair is None or pair.read is None or pair.write is None:
        why = pair.missing if pair is not None else ""
        return say.error(f"the driver does not tell whether they reach each other: {why or 'not asked'}", look)
    words = {pair.read, pair.write}
    if words == {"OK"}:
        return say.passed("the driver lets each read and write the other's memory", "P2P")
    if words == {"U"}:
        return say.error("the driver says that it does not know whether they reach each other", look)
    bad = pair.read if pair.read != "OK" else pair.write
    fix = {
        "DR": "P2P is switched off in the driver's module options",
        "CNS": "see topology.nvlink; a bridge not seated?",
    }
    return say.failed(
        f"no P2P, says the driver: {bad}", bad, fix.get(bad, "see topology.nvlink; some drivers and cards allow none")
    )


def _each(
    say: Say, spec: RigSpec, readings: Readings, judge: Callable[[_Two, _Pair, Say], CheckVerdict]
) -> list[CheckVerdict]:
    """Judge what was measured of each pair; say an error for what was not."""
    if spec.parts.gpu_count < 2:  # noqa: PLR2004 - a pair
        return [say.skipped("one card makes no pair")]
    if not cards(readings):
        return [say.error(*why_no_card(readings))]
    text = readings.logs.get(RESULT)
    if text is None:
        return [say.error(*load.why_no_load(readings, STEP))]
    try:
        told = _Told.model_validate_json(text)
    except ValidationError as error:
        what = error.errors()[0]
        reason = f"{RESULT} cannot be read: {'.'.join(map(str, what['loc']))}: {what['msg']}"
        return [say.error(reason, f"look at p2p.log of {readings.rig} in the run directory")]
    if told.error is not None:
        return [say.error(told.error, told.hint or f"look at p2p.log of {readings.rig}")]
    known = {pair.slots: pair for pair in told.pairs}
    verdicts = []
    for two in _pairs(spec, readings):
        found, own = known.get((two.one.slot, two.other.slot)), say.of(two.subject)
        verdicts.append(
            own.error("this pair was not measured", "see topology.gpu_count")
            if found is None
            else judge(two, found, own)
        )
    return verdicts or [say.error("one card alone makes no pair", "see topology.gpu_count")]


def same_bytes(spec: RigSpec, readings: Readings) -> list[CheckVerdict]:
    """Every byte that one card sent arrived at the other as it was."""
    say = Say(
        "topology.p2p_bytes", expected=0, unit="wrong bytes", source="the pattern that both cards made themselves"
    )

    def judge(_two: _Two, found: _Pair, say: Say) -> CheckVerdict:
        if found.wrong_bytes > found.compared_bytes:
            return say.error(f"{found.wrong_bytes} wrong bytes of {found.compared_bytes}", "see p2p.log")
        through = "over P2P" if found.access else "through the host's memory"
        if found.wrong_bytes:
            share = found.wrong_bytes / found.compared_bytes
            reason = f"{found.wrong_bytes} of {found.compared_bytes} bytes ({share:.2g}) arrived wrong {through}"
            return say.failed(reason, found.wrong_bytes, _IOMMU)
        return say.passed(f"{found.compared_bytes} bytes arrived as they were, {through}", 0)

    return _each(say, spec, readings, judge)


def one_way(spec: RigSpec, readings: Readings) -> list[CheckVerdict]:
    """Each direction of each joined pair is as fast as the spec says."""
    least = spec.limits.min_p2p_one_way_gb_per_s
    say = Say(
        "throughput.p2p_one_way", expected=least, unit="GB/s", source=spec.source("limits.min_p2p_one_way_gb_per_s")
    )
    return _fast(say, spec, readings, lambda pair: min(pair.one_way_gb_per_s))


def both_ways(spec: RigSpec, readings: Readings) -> list[CheckVerdict]:
    """Both directions at once are as fast as the spec says, together."""
    least = spec.limits.min_p2p_both_ways_gb_per_s
    say = Say(
        "throughput.p2p_both_ways", expected=least, unit="GB/s", source=spec.source("limits.min_p2p_both_ways_gb_per_s")
    )
    return _fast(say, spec, readings, lambda pair: pair.both_ways_gb_per_s)


def _fast(say: Say, spec: RigSpec, readings: Readings, read: Callable[[_Pair], float]) -> list[CheckVerdict]:
    least = say.expected if isinstance(say.expected, float | int) else None

    def judge(two: _Two, found: _Pair, say: Say) -> CheckVerdict:
        rate = read(found)
        through = "over P2P" if found.access else "through the host's memory"
        if not _joined(spec, two):
            return say.passed(f"{rate:.2f} GB/s {through}; the spec joins these two by nothing", rate)
        if least is None:
            return say.unlearned(f"{rate:.2f} GB/s {through}", rate, readings.rig)
        if rate < least:
            return say.failed(f"{rate:.2f} GB/s {through}, at least {least:g} were declared", rate, _PATH)
        return say.passed(f"{rate:.2f} GB/s {through}", rate)

    return _each(say, spec, readings, judge)
