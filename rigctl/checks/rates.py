"""How a rate is judged: against the spec, the rig's own accepted runs, and its twin cards; the tightest holds."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from rigctl.checks.say import Say

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rigctl.model.baseline import Baseline
    from rigctl.model.reading import GpuFacts
    from rigctl.model.spec import RigSpec
    from rigctl.model.verdict import CheckVerdict

FEWEST_RUNS = 5
"""From so many accepted runs on, the rig's own repeats say how far its rate may fall."""
LEAST_FALL = 0.03
"""However alike they were: repeats of one rig, months apart, were 3 to 6 % apart (mli/transformers-benchmarks)."""
REPEATS = 2
"""A rate may fall by so many times the range that the accepted runs covered."""


class Floor(NamedTuple):
    """One reason for a rate to be at least so much."""

    least: float
    words: str
    """Behind the figure: `as declared`, `as twin cards do`, …"""
    source: str


def declared(spec: RigSpec, key: str, least: float | None) -> Floor | None:
    """Return the spec's own floor under the dotted `key`; None where it sets none."""
    return None if least is None else Floor(least, "as declared", spec.source(key))


def history(spec: RigSpec, baseline: Baseline | None, check: str, subject: str = "rig") -> Floor | None:
    """Return what the rig's accepted runs ask for; None where they measured no such rate.

    The reference is their median, so that a slow decline is not accepted step by step.
    """
    found = baseline.recent_of(check, subject) if baseline is not None else ()
    if not found:
        return None
    usual, share = median(found), spec.limits.max_rate_fall_share
    if len(found) >= FEWEST_RUNS:
        share = min(share, max(LEAST_FALL, REPEATS * (max(found) - min(found)) / usual))
    words = f"after {usual:.4g} in {len(found)} accepted run{'s' if len(found) > 1 else ''}"
    return Floor(usual * (1 - share), words, f"the rig's accepted runs, less {share:.1%}")


def twins(spec: RigSpec, rates: Mapping[str, float], uuid: str) -> Floor | None:
    """Return what the other cards of the rig ask for; None where there is no other, or it is of another model."""
    others = [rate for other, rate in rates.items() if other != uuid]
    if not others:
        return None
    share = spec.limits.max_twin_gap_share
    return Floor(
        median(others) * (1 - share),
        f"as its twin{'s' if len(others) > 1 else ''} do {median(others):.4g}",
        spec.source("limits.max_twin_gap_share"),
    )


def alike(gpus: Sequence[GpuFacts], rates: Mapping[str, float], gpu: GpuFacts) -> dict[str, float]:
    """Return the rates of the cards of one model."""
    return {one.uuid: rates[one.uuid] for one in gpus if one.uuid in rates and one.name == gpu.name}


class Rate(NamedTuple):
    """What was measured, and what is said of it."""

    found: float
    about: str
    settled: bool = True
    """False: the clocks had not come to rest when it was measured."""


def judge_rate(say: Say, rate: Rate, floors: Sequence[Floor | None], fix: str, rig: str) -> CheckVerdict:
    """Judge one rate by the tightest floor; without one of the spec or of its history, nothing judged it.

    Args:
        say: check, subject and unit.
        rate: what was found.
        floors: of the spec, of the history, and of twins, where there are such.
        fix: what to do where it is too slow.
        rig: the rig's name.
    """
    own = [floor for floor in floors[:2] if floor is not None]
    tightest = max((floor for floor in floors if floor is not None), key=lambda floor: floor.least, default=None)
    said = f"{rate.found:.4g} {say.unit}" + (f" ({rate.about})" if rate.about else "")
    if tightest is None:
        return say.unlearned(said, rate.found, rig)
    limited = Say(say.check, say.subject, round(tightest.least, 3), say.unit, tightest.source)
    if rate.found < tightest.least:
        reason = f"{said}, at least {tightest.least:.4g} were expected, {tightest.words}"
        return limited.failed(reason, rate.found, fix)
    if not own:
        return limited.unlearned(said, rate.found, rig)
    if not rate.settled:
        return limited.warned(f"{said}; its clocks had not come to rest", rate.found, "see thermals.throttle")
    return limited.passed(said, rate.found)
