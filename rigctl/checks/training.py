"""Training on every card by itself and on all together: pace, scaling, what P2P brings, and whether losses repeat."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field

from rigctl.checks import load
from rigctl.checks.cards import cards
from rigctl.checks.rates import Rate, alike, declared, history, judge_rate, twins
from rigctl.checks.say import Say
from rigctl.checks.told import Card, OfDevice, Told, each_named, other_device, read
from rigctl.model.peaks import MOST_OF_PEAK, mfu

if TYPE_CHECKING:
    from rigctl.model.baseline import Baseline
    from rigctl.model.reading import GpuFacts, Readings
    from rigctl.model.spec import RigSpec, TrainingSpec
    from rigctl.model.verdict import CheckVerdict

STEP = "train_all"
MOST_TOKENS_PER_S = 1e9
MOST_SCALING = 1.1
"""All cards together are no faster than each by itself; more than repeats differ is no measurement."""
SLOW = "see temperature, throttle reasons and power limit first, then PCIe lanes; compare the cards"
_LINKS = (
    "see topology.nvlink, topology.p2p_access and throughput.p2p_one_way; NCCL_DEBUG=INFO tells which way NCCL takes"
)

TokensPerS = Annotated[float, Field(gt=0, lt=MOST_TOKENS_PER_S)]
Loss = Annotated[float, Field(gt=0)]


class Alone(Card):
    """What one card trained by itself."""

    tokens_per_s: TokensPerS
    losses: tuple[Loss, ...] = Field(min_length=2)
    repeated_losses: tuple[Loss, ...] = Field(min_length=1)


class Together(BaseModel):
    """What all cards trained together."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    tokens_per_s: TokensPerS
    measured_mono_s: tuple[float, float]


class Trained(Told):
    """`train_all.json`."""

    device: str
    model: str
    ranks: int = Field(ge=2)
    tflops_per_token_per_s: float = Field(gt=0)
    alone: tuple[Alone, ...] = Field(min_length=2)
    together: Together
    without_p2p: Together | None = None
    weights_agree: bool

    @property
    def each(self) -> OfDevice[Alone]:
        """What each card did by itself."""
        return OfDevice[Alone](device=self.device, cards=self.alone)


def trained(say: Say, spec: RigSpec, readings: Readings) -> tuple[TrainingSpec, Trained] | CheckVerdict:
    """Return what was asked and what was trained, or the verdict that there is nothing to judge."""
    asked = spec.training
    if asked is None:
        return say.skipped("the spec names no training workload")
    if asked.device != "cuda":
        return say.skipped(f"the training workload runs on device {asked.device}, which is one")
    if spec.parts.gpu_count < 2:  # noqa: PLR2004 - two cards
        return say.skipped("one card trains with no other")
    told = read(readings, STEP, Trained)
    if not isinstance(told, load.NoLoad):
        wrong = other_device(told.device, asked.device, readings.rig) or _other_workload(asked, told, readings.rig)
        if wrong is None:
            return asked, told
        told = wrong
    return say.error(*told)


def _other_workload(asked: TrainingSpec, told: Trained, rig: str) -> load.NoLoad | None:
    look = f"look at {STEP}.log of {rig} in the run directory"
    if told.model != asked.model:
        return load.NoLoad(f"it trained {told.model}, the spec names {asked.model}", look)
    if len(told.alone) != told.ranks:
        return load.NoLoad(f"{told.ranks} cards trained together and {len(told.alone)} by themselves", look)
    return None


def each(spec: RigSpec, readings: Readings, baseline: Baseline | None) -> list[CheckVerdict]:
    """Judge each card training by itself while the others do so too, which compares twins fairly."""
    check, key = "throughput.train_each", "training.min_tokens_per_s"
    say = Say(check, unit="tokens/s", source=spec.source(key))
    known = trained(say, spec, readings)
    if not isinstance(known, tuple):
        return [known]
    asked, told = known
    by_slot = {gpu.slot: gpu.uuid for gpu in cards(readings)}
    rates = {by_slot[one.slot]: one.tokens_per_s for one in told.alone if one.slot in by_slot}

    def judge(card: Alone, gpu: GpuFacts | None, say: Say) -> CheckVerdict:
        if gpu is None:
            return say.error("it did not run on a card", f"look at {STEP}.json of {readings.rig}")
        about = speed(told, card.tokens_per_s, gpu.name, asked.dtype)
        if isinstance(about, load.NoLoad):
            return say.error(*about)
        floors = (
            declared(spec, key, asked.min_tokens_per_s),
            history(spec, baseline, check, gpu.uuid),
            twins(spec, alike(cards(readings), rates, gpu), gpu.uuid),
        )
        return judge_rate(say, Rate(card.tokens_per_s, about), floors, SLOW, readings.rig)

    return each_named(say, spec, readings, told.each, judge)


def speed(told: Trained, tokens_per_s: float, model: str, dtype: str) -> str | load.NoLoad:
    """Say what a card's tokens/s are in TFLOP/s and as a share of its dense peak, or that they cannot be."""
    tflops = told.tflops_per_token_per_s * tokens_per_s
    share = mfu(tflops, model, dtype)
    if share is None:
        return f"{tflops:.3g} TFLOP/s a card"
    if share > MOST_OF_PEAK:
        return load.NoLoad(f"{tflops:.3g} TFLOP/s a card are {share:.0%} of its peak", f"look at {STEP}.json")
    return f"{tflops:.3g} TFLOP/s a card, {share:.0%} of its dense peak"


def together(spec: RigSpec, readings: Readings, baseline: Baseline | None) -> list[CheckVerdict]:
    """Judge the pace of all cards together, and say what a joule brings."""
    check, key = "throughput.train_all", "training.min_all_tokens_per_s"
    say = Say(check, unit="tokens/s", source=spec.source(key))
    known = trained(say, spec, readings)
    if not isinstance(known, tuple):
        return [known]
    asked, told = known
    found = told.together.tokens_per_s
    about = speed(told, found / told.ranks, spec.parts.gpu_model, asked.dtype)
    if isinstance(about, load.NoLoad):
        return [say.error(*about)]
    about = f"{asked.model} on {told.ranks} cards; {about}{_energy(readings, told)}"
    floors = (declared(spec, key, asked.min_all_tokens_per_s), history(spec, baseline, check))
    return [judge_rate(say, Rate(found, about), floors, f"see throughput.scaling; {SLOW}", readings.rig)]


def _energy(readings: Readings, told: Trained) -> str:
    """Say tokens per joule at the cards and at the wall, as far as both were read while all trained together."""
    begin, end = told.together.measured_mono_s
    samples = [sample for sample in readings.of_step(STEP) if begin <= sample.t_mono_s <= end]
    drawn = [sum(gpu.power_w for gpu in sample.gpus if gpu.power_w) for sample in samples if sample.gpus]
    wall = [sample.wall_power_w for sample in samples if sample.wall_power_w]
    said = ""
    for watts, where in ((drawn, "the cards"), (wall, "the wall")):
        if len(watts) >= load.FEWEST and sum(watts) > 0:
            said += f"; {told.together.tokens_per_s / load.mean(watts):.3g} tokens/J at {where}"
    return said


def scaling(spec: RigSpec, readings: Readings, baseline: Baseline | None) -> list[CheckVerdict]:
    """Judge what the exchange of gradients leaves of the cards' own pace."""
    check, key = "throughput.scaling", "training.min_scaling_share"
    say = Say(check, unit="share", source=spec.source(key))
    known = trained(say, spec, readings)
    if not isinstance(known, tuple):
        return [known]
    asked, told = known
    own = sum(one.tokens_per_s for one in told.alone)
    found = told.together.tokens_per_s / own
    if found > MOST_SCALING:
        reason = f"all together were {found:.2f} times as fast as each by itself, which cannot be"
        return [say.error(reason, f"look at {STEP}.json of {readings.rig} in the run directory")]
    about = f"{told.together.tokens_per_s:,.0f} of {own:,.0f} tokens/s"
    floors = (declared(spec, key, asked.min_scaling_share), history(spec, baseline, check))
    return [judge_rate(say, Rate(found, about), floors, _LINKS, readings.rig)]


def p2p_gain(spec: RigSpec, readings: Readings, baseline: Baseline | None) -> list[CheckVerdict]:
    """Judge what P2P brings: a bridge that carries nothing brings nothing, whatever the topology says."""
    check, key = "throughput.p2p_gain", "training.min_p2p_gain"
    say = Say(check, unit="×", source=spec.source(key))
    known = trained(say, spec, readings)
    if not isinstance(known, tuple):
        return [known]
    asked, told = known
    if spec.parts.nvswitch_links is None and all(link.kind == "none" for link in spec.parts.links):
        return [say.skipped("the spec joins no cards")]
    if told.without_p2p is None:
        return [say.error("it was not measured with P2P switched off", f"look at {STEP}.log of {readings.rig}")]
    found = told.together.tokens_per_s / told.without_p2p.tokens_per_s
    about = f"{told.together.tokens_per_s:,.0f} tokens/s, {told.without_p2p.tokens_per_s:,.0f} without P2P"
    floors = (declared(spec, key, asked.min_p2p_gain), history(spec, baseline, check))
    return [judge_rate(say, Rate(found, about), floors, _LINKS, readings.rig)]
