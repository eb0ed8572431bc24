"""What each card computes and moves by itself: products of matrices, its memory, its bus, a Transformer layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from rigctl.checks import load
from rigctl.checks.cards import cards
from rigctl.checks.rates import Rate, alike, declared, history, judge_rate, twins
from rigctl.checks.say import Say
from rigctl.checks.told import Card, OfDevice, each_named, other_device, read
from rigctl.model.peaks import MOST_OF_PEAK, PEAKS

if TYPE_CHECKING:
    from rigctl.model.baseline import Baseline
    from rigctl.model.reading import GpuFacts, Readings
    from rigctl.model.spec import RigSpec
    from rigctl.model.verdict import CheckVerdict

STEP = "compute"
FEWEST_BLOCKS = 3
MOST = 100_000
"""Beyond what any card does, in TFLOP/s as in GB/s: more than this is no measurement."""
_SLOW = "see temperature, throttle reasons and power limit first; then compare the cards, and driver and torch versions"
_BUS = "see topology.pcie_gen and topology.pcie_width; then NUMA, IOMMU, and the speed of the host's memory"

_Positive = Annotated[float, Field(gt=0, lt=MOST)]


class _Figure(BaseModel):
    """One rate, and the blocks of which it is the median."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    rate: _Positive
    blocks: tuple[_Positive, ...] = Field(min_length=FEWEST_BLOCKS)
    settled: bool


class _Card(Card):
    figures: dict[str, _Figure]


_Computed = OfDevice[_Card]


@dataclass(frozen=True)
class Figure:
    """One figure of the step, and the check that judges it."""

    name: str
    """In `compute.json`."""
    key: str
    """Its floor in the spec, under `compute`."""
    unit: str
    fix: str
    peak: Literal["fp32_tflops", "fp16_tflops", "memory_gb_per_s"] | None = None
    """What of the card's peaks bounds it."""


_TFLOPS, _GBS = "TFLOP/s", "GB/s"
FIGURES: dict[str, Figure] = {
    "throughput.matmul_fp32": Figure("matmul_fp32", "min_matmul_fp32_tflops", _TFLOPS, _SLOW, "fp32_tflops"),
    "throughput.matmul_fp16": Figure("matmul_fp16", "min_matmul_fp16_tflops", _TFLOPS, _SLOW, "fp16_tflops"),
    "throughput.matmul_bf16": Figure("matmul_bf16", "min_matmul_bf16_tflops", _TFLOPS, _SLOW, "fp16_tflops"),
    "throughput.layer": Figure("layer", "min_layer_tflops", _TFLOPS, _SLOW, "fp16_tflops"),
    "throughput.gpu_memory": Figure("gpu_memory", "min_gpu_memory_gb_per_s", _GBS, _SLOW, "memory_gb_per_s"),
    "throughput.host_to_device": Figure("host_to_device", "min_host_to_device_gb_per_s", _GBS, _BUS),
    "throughput.device_to_host": Figure("device_to_host", "min_device_to_host_gb_per_s", _GBS, _BUS),
}
"""By check."""


def rate(check: str, spec: RigSpec, readings: Readings, baseline: Baseline | None) -> list[CheckVerdict]:
    """Judge one figure of every card, against the spec, the card's own accepted runs, and its twins."""
    figure, asked = FIGURES[check], spec.compute
    key = f"compute.{figure.key}"
    say = Say(check, unit=figure.unit, source=spec.source(key))
    if asked is None:
        return [say.skipped("the spec asks for no compute workload")]
    told = read(readings, STEP, _Computed)
    if isinstance(told, load.NoLoad):
        return [say.error(*told)]
    if other := other_device(told.device, asked.device, readings.rig):
        return [say.error(*other)]
    rates = _rates(readings, told, figure)

    def judge(card: _Card, gpu: GpuFacts | None, say: Say) -> CheckVerdict:
        found = card.figures.get(figure.name)
        if found is None:
            return say.error(f"{figure.name} was not measured", f"look at {STEP}.log of {readings.rig}")
        if wrong := _absurd(found, figure, gpu):
            return say.error(wrong, f"look at {STEP}.json of {readings.rig} in the run directory")
        subject = gpu.uuid if gpu is not None else "rig"
        floors = (
            declared(spec, key, getattr(asked, figure.key)),
            history(spec, baseline, check, subject),
            twins(spec, alike(cards(readings), rates, gpu), gpu.uuid) if gpu is not None else None,
        )
        return judge_rate(
            say, Rate(found.rate, _about(found, figure, gpu), found.settled), floors, figure.fix, readings.rig
        )

    return each_named(say, spec, readings, told, judge)


def _rates(readings: Readings, told: _Computed, figure: Figure) -> dict[str, float]:
    """Return what each card showed, by UUID; what cannot be is no twin to be compared with."""
    by_slot = {gpu.slot: gpu for gpu in cards(readings)}
    found = [(by_slot[card.slot], card.figures.get(figure.name)) for card in told.cards if card.slot in by_slot]
    return {gpu.uuid: one.rate for gpu, one in found if one is not None and not _absurd(one, figure, gpu)}


def _absurd(found: _Figure, figure: Figure, gpu: GpuFacts | None) -> str:
    """Say why a figure cannot have been measured; empty where it can."""
    if not min(found.blocks) <= found.rate <= max(found.blocks):
        return f"{found.rate:.4g} {figure.unit} is not the median of its blocks"
    if len(set(found.blocks)) == 1:
        return f"all {len(found.blocks)} blocks took exactly the same time: the clock stood still"
    most = _peak(figure, gpu)
    if most is not None and found.rate > MOST_OF_PEAK * most:
        return f"{found.rate:.4g} {figure.unit}: such a card does {most:g} at most"
    return ""


def _peak(figure: Figure, gpu: GpuFacts | None) -> float | None:
    peak = PEAKS.get(gpu.name) if gpu is not None else None
    if peak is None or figure.peak is None:
        return None
    found: float = getattr(peak, figure.peak)
    return found


def _about(found: _Figure, figure: Figure, gpu: GpuFacts | None) -> str:
    peak = _peak(figure, gpu)
    return "" if peak is None else f"{found.rate / peak:.0%} of the card's {peak:g}"
