"""The counters of links and bus from before the first load to after the last one, card by card."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pydantic import ValidationError

from rigctl.checks.cards import each_card, why_no_card
from rigctl.model.reading import CardCounters, Counters

if TYPE_CHECKING:
    from collections.abc import Callable

    from rigctl.checks.say import Say
    from rigctl.model.reading import GpuFacts, Readings
    from rigctl.model.spec import RigSpec
    from rigctl.model.verdict import CheckVerdict

COUNTERS = "counters.jsonl"
"""The agent's two lines of each plan: before its first load, after its last one. A run has more than one plan where
another controller had its rest carried out."""


class Span(NamedTuple):
    """One card's counters before and after, and the time between, seconds."""

    before: CardCounters
    after: CardCounters
    seconds: float


class NoCounters(Exception):
    """There are none, and why; `fix` says what to do."""

    def __init__(self, reason: str, fix: str) -> None:
        super().__init__(reason)
        self.fix = fix


def each_span(
    say: Say, spec: RigSpec, readings: Readings, judge: Callable[[Span, Say], CheckVerdict]
) -> list[CheckVerdict]:
    """Judge the counters of every card; say an error where there are none."""
    try:
        spans = _spans(readings)
    except NoCounters as why:
        return [say.error(str(why), why.fix)]

    def of_card(gpu: GpuFacts, say: Say) -> CheckVerdict:
        span = spans.get(gpu.uuid)
        if span is None:
            return say.error("its counters were not read both before and after the load", "see kernel.xid")
        return judge(span, say)

    return each_card(say, spec, readings, of_card)


def after_load(readings: Readings) -> dict[str, CardCounters]:
    """Return what each card counted after the load, by UUID. Raises NoCounters."""
    return {uuid: span.after for uuid, span in _spans(readings).items()}


def _spans(readings: Readings) -> dict[str, Span]:
    """Return each card's counters by UUID. Raises NoCounters."""
    lines = _lines(readings)
    # The first "before", the last "after".
    found = {line.when: line for line in (*lines, *(one for one in reversed(lines) if one.when == "before"))}
    look = f"look at {COUNTERS} of {readings.rig} in the run directory"
    for when in ("before", "after"):
        if when not in found:
            raise NoCounters(f"the counters were not read {when} the load", f"see guard.log of {readings.rig}")
        if why := found[when].error:
            raise NoCounters(f"the counters could not be read {when} the load: {why}", "see measure.probes")
    before, after = found["before"], found["after"]
    seconds = after.t_mono_s - before.t_mono_s
    if [line.when for line in lines] != ["before", "after"] * (len(lines) // 2) or seconds <= 0:
        raise NoCounters("the counters were not read once before and once after the load", look)
    later = {card.uuid: card for card in after.cards}
    return {card.uuid: Span(card, later[card.uuid], seconds) for card in before.cards if card.uuid in later}


def _lines(readings: Readings) -> list[Counters]:
    rig, text = readings.rig, readings.logs.get(COUNTERS)
    if text is None:
        if readings.facts is None or not readings.facts.gpus:
            raise NoCounters(*why_no_card(readings))
        raise NoCounters("no counters came home", f"see guard.log of {rig} in the run directory")
    try:
        return [Counters.model_validate_json(line) for line in text.splitlines() if line.strip()]
    except ValidationError as error:
        what = error.errors()[0]
        where = ".".join(map(str, what["loc"]))
        raise NoCounters(
            f"{COUNTERS} cannot be read: {where}: {what['msg']}", f"look at {COUNTERS} of {rig}"
        ) from error


def rise(before: int | None, after: int | None) -> int | None:
    """By how much a counter rose; None where it was not read."""
    return None if before is None or after is None else after - before
