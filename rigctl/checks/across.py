"""Training together with other rigs: what the network between them leaves of each rig's own pace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from rigctl.checks import load
from rigctl.checks.rates import Rate, declared, history, judge_rate
from rigctl.checks.say import Say
from rigctl.checks.throughput import Trained as TrainedAlone
from rigctl.checks.throughput import trained_tokens
from rigctl.checks.told import Told, other_device, read
from rigctl.checks.training import MOST_SCALING, Together, Trained

if TYPE_CHECKING:
    from rigctl.model.baseline import Baseline
    from rigctl.model.reading import Readings
    from rigctl.model.spec import AcrossSpec, RigSpec, TrainingSpec
    from rigctl.model.verdict import CheckVerdict

CHECK, STEP, KEY = "throughput.across", "train_across", "training.min_across_share"
SLOW = "see network.link on each of them, and throughput.train_all; iperf3 between two tells the pace of the network"


class Across(Told):
    """`train_across.json`."""

    device: str
    model: str
    rigs: int = Field(ge=2)
    ranks: int = Field(ge=2)
    together: Together
    weights_agree: bool


def across(spec: RigSpec, readings: Readings, baseline: Baseline | None) -> list[CheckVerdict]:
    """Judge the pace of all rigs together against what this one trains by itself, times their number."""
    say = Say(CHECK, unit="share", source=spec.source(KEY))
    if spec.across is None:
        return [say.skipped("no run was asked to train over several rigs (`rigctl accept --across`)")]
    if spec.training is None:
        return [say.skipped("the spec names no training workload")]
    told = read(readings, STEP, Across)
    if not isinstance(told, load.NoLoad):
        told = _misfit(spec, spec.training, told, readings) or told
    return [say.error(*told) if isinstance(told, load.NoLoad) else _judge(say, spec, readings, told, baseline)]


def _judge(say: Say, spec: RigSpec, readings: Readings, told: Across, baseline: Baseline | None) -> CheckVerdict:
    with_whom = f"{told.rigs} rigs, {told.ranks} {'cards' if told.device == 'cuda' else 'processors'}"
    if not told.weights_agree:
        reason = f"after training together {with_whom} do not hold the same weights"
        return say.failed(reason, None, "see throughput.loss and memory.gpu_pattern of each of them")
    own = _own(spec, readings)
    if not isinstance(own, float):
        return own
    found = told.together.tokens_per_s / (own * told.rigs)
    if found > MOST_SCALING:
        reason = f"{told.rigs} rigs were {found:.2f} times as fast as each by itself, which cannot be"
        return say.error(reason, f"look at {STEP}.json of {readings.rig} in the run directory")
    about = f"{with_whom}: {told.together.tokens_per_s:,.0f} of {own * told.rigs:,.0f} tokens/s"
    asked = spec.training.min_across_share if spec.training is not None else None
    floors = (declared(spec, KEY, asked), history(spec, baseline, CHECK))
    return judge_rate(say, Rate(found, about), floors, SLOW, readings.rig)


def _misfit(spec: RigSpec, asked: TrainingSpec, told: Across, readings: Readings) -> load.NoLoad | None:
    """Say what else was trained than was asked; None where nothing was."""
    wrong = other_device(told.device, asked.device, readings.rig)
    if wrong is not None:
        return wrong
    look = f"look at {STEP}.log of {readings.rig} in the run directory"
    if told.model != asked.model:
        return load.NoLoad(f"it trained {told.model}, the spec names {asked.model}", look)
    rigs, cards = _group(spec.across), spec.parts.gpu_count if asked.device == "cuda" else 1
    if told.rigs != rigs:
        return load.NoLoad(f"{told.rigs} rigs trained together, {rigs} were asked for", look)
    if told.ranks != rigs * cards:
        return load.NoLoad(f"{told.ranks} processes trained together, {rigs} rigs have {rigs * cards} cards", look)
    return None


def _group(meeting: AcrossSpec | None) -> int:
    return len(meeting.rigs) if meeting is not None else 0


def _own(spec: RigSpec, readings: Readings) -> float | CheckVerdict:
    """What this rig trains by itself, tokens/s: on all its cards where it has several, else in step `train`."""
    say = Say(CHECK, unit="share")
    if spec.training is not None and spec.training.device == "cuda" and spec.parts.gpu_count > 1:
        told = read(readings, "train_all", Trained)
        if isinstance(told, load.NoLoad):
            return say.error(f"what the rig trains by itself is not known: {told.reason}", told.fix)
        return told.together.tokens_per_s
    trained = trained_tokens(say, spec, readings)
    return trained.tokens_per_s if isinstance(trained, TrainedAlone) else trained
