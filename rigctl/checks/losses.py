"""Whether training computes rightly: losses repeat, twins agree, weights are the same everywhere, and it learns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rigctl.checks.cards import cards
from rigctl.checks.say import Say
from rigctl.checks.told import each_named
from rigctl.checks.training import STEP, trained

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rigctl.checks.training import Alone, Trained
    from rigctl.model.reading import GpuFacts, Readings
    from rigctl.model.spec import RigSpec
    from rigctl.model.verdict import CheckVerdict

CHECK = "throughput.loss"
TOGETHER = "all cards"
"""Subject of what holds of all cards at once; where no card can be judged, that is said of the rig."""
ROUNDING = 1e-3
"""Losses that differ by a smaller share may come from sums in another order; a larger one is a wrong result."""
_WRONG = "run the GPU burn and the memory test: a card computes wrongly, try lower clocks, then replace it"
_ORDER = "some kernel of this torch sums in changing order; wrong results would differ more"


def loss(spec: RigSpec, readings: Readings) -> list[CheckVerdict]:
    """Judge each card's losses, and whether all cards held the same weights in the end."""
    say = Say(CHECK, expected="the same losses", source="the same steps from the same beginning")
    known = trained(say, spec, readings)
    if not isinstance(known, tuple):
        return [known]
    told = known[1]

    def judge(card: Alone, gpu: GpuFacts | None, say: Say) -> CheckVerdict:
        return _of_card(say, card, _twin(readings, told, card, gpu), readings.rig)

    return [_weights(say.of(TOGETHER, "the same weights"), told), *each_named(say, spec, readings, told.each, judge)]


def _weights(say: Say, told: Trained) -> CheckVerdict:
    if told.weights_agree:
        return say.passed(f"{told.ranks} cards held the same weights after training together", "the same weights")
    reason = f"{told.ranks} cards held different weights after training together: what they exchanged arrived wrong"
    fix = "see topology.p2p_bytes and throughput.gpu_burn; NCCL_P2P_DISABLE=1 tells the links from the cards"
    return say.failed(reason, "different weights", fix)


def _twin(readings: Readings, told: Trained, card: Alone, gpu: GpuFacts | None) -> Alone | None:
    """Return the first other card of the same model that trained by itself."""
    names: dict[int | None, str] = {one.slot: one.name for one in cards(readings)}
    others = [
        one for one in told.alone if one.slot != card.slot and gpu is not None and names.get(one.slot) == gpu.name
    ]
    return others[0] if others else None


def _of_card(say: Say, card: Alone, twin: Alone | None, rig: str) -> CheckVerdict:
    """Judge one card's losses, what is wrong first."""
    if len(card.repeated_losses) > len(card.losses) or (twin is not None and len(twin.losses) != len(card.losses)):
        return say.error("steps are missing among its losses", f"look at {STEP}.json of {rig} in the run directory")
    apart = _apart(card.losses, card.repeated_losses)
    between = _apart(card.losses, twin.losses) if twin is not None else 0.0
    if apart > ROUNDING:
        return say.failed(f"the same steps gave losses {apart:.2g} apart", f"{apart:.2g} apart", _WRONG)
    if card.losses[-1] >= card.losses[0]:
        reason = f"the loss went from {card.losses[0]:.4f} to {card.losses[-1]:.4f}: it did not learn"
        return say.failed(reason, "it did not learn", _WRONG)
    if between > ROUNDING:
        reason = f"losses {between:.2g} apart from those of its twin; one of the two computes wrongly"
        return say.failed(reason, f"{between:.2g} apart", _WRONG)
    if apart > 0 or between > 0:
        reason = f"losses differ in the last digits: {apart:.1g} repeated, {between:.1g} from its twin"
        return say.warned(reason, f"{max(apart, between):.1g} apart", _ORDER)
    also = ", as its twin did" if twin is not None else ""
    fell = f"the loss fell from {card.losses[0]:.4f} to {card.losses[-1]:.4f}"
    return say.passed(f"{fell}, bit by bit the same again{also}", "the same losses")


def _apart(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the largest share by which losses of the same step differ."""
    return max(abs(a - b) / a for a, b in zip(one, other, strict=False))
