"""Tokens per joule: what training on one card brings for the energy that the card takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rigctl.checks import load
from rigctl.checks.cards import cards, why_no_card
from rigctl.checks.rates import Rate, declared, history, judge_rate
from rigctl.checks.say import Say
from rigctl.checks.throughput import Trained, trained_tokens

if TYPE_CHECKING:
    from rigctl.model.baseline import Baseline
    from rigctl.model.reading import GpuFacts, Readings
    from rigctl.model.spec import RigSpec
    from rigctl.model.verdict import CheckVerdict

CHECK, KEY = "throughput.tokens_per_joule", "training.min_tokens_per_joule"
STEP = "train"
_FIX = "see throughput.training and power.share_of_limit: slow at the same power, or more power for the same pace"


def tokens_per_joule(spec: RigSpec, readings: Readings, baseline: Baseline | None) -> list[CheckVerdict]:
    """Judge tokens/s of step `train` ÷ the mean power of its card in the step's last third."""
    asked = spec.training
    say = Say(CHECK, unit="tokens/J", source=spec.source(KEY))
    if asked is None:
        return [say.skipped("the spec names no training workload")]
    if asked.device != "cuda":
        return [say.skipped(f"the training workload runs on device {asked.device}, whose power no card tells")]
    trained = trained_tokens(say, spec, readings)
    if not isinstance(trained, Trained):
        return [trained]
    gpu = _card(readings, trained.uuid)
    if gpu is None:
        return [say.error(*why_no_card(readings))]
    drawn = [one.gpu.power_w for one in load.last_third(load.loaded(readings, STEP, gpu.uuid))]
    watts = [power for power in drawn if power is not None and power > 0]
    if len(watts) < load.FEWEST or len(watts) < len(drawn):
        return [say.error(f"{gpu.subject} told no power while it trained", "see power.share_of_limit and kernel.xid")]
    mean_w = load.mean(watts)
    about = f"{trained.tokens_per_s:,.0f} tokens/s at {mean_w:.0f} W, {gpu.subject}"
    floors = (declared(spec, KEY, asked.min_tokens_per_joule), history(spec, baseline, CHECK))
    return [judge_rate(say, Rate(trained.tokens_per_s / mean_w, about), floors, _FIX, readings.rig)]


def _card(readings: Readings, uuid: str | None) -> GpuFacts | None:
    """Return the card on which it trained: the one that torch names, else the first in bus order."""
    known = cards(readings)
    return next((gpu for gpu in known if gpu.uuid == uuid), known[0] if known else None)
