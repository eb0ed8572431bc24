"""The output of gpu-burn (github.com/wilicc/gpu-burn), standard output and error as they came, mixed.

What it means was read in its source at 3ead140 and in the issues named here:

- A row is written after a carriage return and not ended; what another process writes then stands on the same line.
- `errors` counts since the last summary, so the sum over the summaries is the truth; it is a 32-bit number that can
  wrap to below zero (issue 12). Beside `(DIED!)` it was never set and means nothing (issue 69).
- `proc'd: -1` is a worker that died; its card can still be called `OK` at the end, as can one that never worked
  (issues 14 and 123). The exit status is 0 even with `FAULTY` (issue 12).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rigctl.parse import figures, plain
from rigctl.parse.gpu_burn_words import ABORTS, ENDS, HELP, QUIET, TROUBLE
from rigctl.parse.smi_value import CARD_LINE

if TYPE_CHECKING:
    from collections.abc import Iterator

_NUMBER = rf"(?:{figures.NUMBER}|-?nan|-?inf)"
_DONE = rf"{figures.WHOLE} \({_NUMBER} Gflop/s\)"
_COUNT = rf"{figures.WHOLE}(?:\s+\((?:WARNING|DIED)!\))?"
_TEMP = rf"(?:{figures.WHOLE} C|--)"
_ROW = re.compile(
    rf"(?P<percent>\d{{1,4}}[.,]\d{{1,6}})%\s+proc'd:\s+(?P<done>{_DONE}(?:\s*- {_DONE})*)"
    rf"\s+errors:\s+(?P<errors>{_COUNT}(?:\s*- {_COUNT})*)"
    rf"\s+temps:\s+(?P<temps>{_TEMP}(?:\s*- {_TEMP})*)",
    re.ASCII,
)
_ROW_CUT = re.compile(r"\d+([.,]\d*)?(%(\s.*)?)?", re.ASCII)
_DONE_ONE = re.compile(rf"({figures.WHOLE}) \(({_NUMBER}) Gflop/s\)", re.ASCII)
_COUNT_ONE = re.compile(rf"({figures.WHOLE})(?:\s+\((WARNING|DIED)!\))?", re.ASCII)
_TEMP_ONE = re.compile(rf"({figures.WHOLE}) C|--", re.ASCII)
_BURNING = re.compile(r"Burning for (\d{1,9}) sec(?:ond)?s\.?", re.ASCII)
_SUMMARY = re.compile(r"Summary at:.*")
_TESTED = re.compile(r"Tested (\d{1,4}) GPUs:", re.ASCII)
_VERDICT = re.compile(r"GPU (\d{1,4}): (OK|FAULTY)\b", re.ASCII)
_OF_ROWS = re.compile(r"\((?:WARNING|DIED)!\)|proc'd:")
_WRAPPER = re.compile(r"\Agpu-burn (?!-)")
"""A prefix that log collectors put before each line."""
_BATCHES = 5
"""A worker reports each batch of products; so many of another one without any of its own is no coincidence."""
_MAX_TROUBLE = 20
"""Lines of trouble kept: one message can be repeated tens of thousands of times (issue 52)."""


@dataclass(frozen=True)
class Worker:
    """One column of a row: what one worker has done so far."""

    done: int
    """Matrix products; -1 when the worker has died."""
    gflops: float
    errors: int
    """Compare errors since the last summary; meaningless when `died`."""
    warned: bool
    died: bool


@dataclass(frozen=True)
class Row:
    """One progress row."""

    percent: float
    workers: tuple[Worker, ...]
    temps_c: tuple[float | None, ...]


@dataclass(frozen=True)
class Card:
    """A card as gpu-burn's header names it, by `nvidia-smi -L`."""

    index: int
    name: str
    uuid: str


@dataclass(frozen=True)
class BurnLog:
    """Everything that one output of gpu-burn says."""

    cards: tuple[Card, ...] = ()
    asked_seconds: int | None = None
    rows: tuple[Row, ...] = ()
    errors: tuple[int, ...] = ()
    """Compare errors of each worker over the whole time."""
    died: tuple[bool, ...] = ()
    warned: tuple[bool, ...] = ()
    tested: int | None = None
    """N of `Tested N GPUs`; None when the output ends before."""
    verdicts: tuple[tuple[int, str], ...] = ()
    """gpu-burn's own words, by its index: `OK` or `FAULTY`."""
    trouble: tuple[str, ...] = ()
    """Error messages in between, the first twenty."""
    aborted: str | None = None
    """The words with which it gave up before burning to the end."""
    help_shown: bool = False
    """It printed its help (or its cards) and burnt nothing, with exit status 0."""
    cut: bool = False
    """The last row was still being written when the process was killed."""
    unknown: str | None = None
    """The first line that did not parse; what was understood besides stands, but such a log is no clean bill."""

    @property
    def worked(self) -> tuple[bool, ...]:
        """Which workers have done anything at all."""
        columns = zip(*(row.workers for row in self.rows), strict=True) if self.rows else ()
        return tuple(any(worker.done > 0 for worker in column) for column in columns)

    def stood_still(self, worker: int, *, from_percent: float) -> bool:
        """Whether `worker` did nothing more in a stretch of the burn in which another one did.

        gpu-burn repeats the last figures of a worker that hangs, and calls its card `OK` at the end.
        """
        rows = [r.workers for r in self.rows if r.percent >= from_percent and worker < len(r.workers)]
        if not rows or len({row[worker].done for row in rows}) > 1:
            return False
        # A slow card that is between two batches has not stood still yet: another one must have reported a few.
        return any(len({row[other].done for row in rows}) > _BATCHES for other in range(len(rows[0])))

    def gflops(self, worker: int, *, from_percent: float, to_percent: float = 100.0) -> list[float]:
        """Return the rates of `worker` in a stretch of the burn, Gflop/s.

        Zeros before it has begun are no rate; a zero after that is one: the worker did nothing.
        """
        rows = [(r.percent, r.workers[worker].gflops) for r in self.rows if worker < len(r.workers)]
        begun = next((i for i, (_, rate) in enumerate(rows) if rate > 0), len(rows))
        return [rate for percent, rate in rows[begun:] if from_percent <= percent <= to_percent]


def parse(text: str) -> BurnLog:
    """Read an output of gpu-burn; never raises, what it cannot read is in `unknown`."""
    reader = _Reader()
    *lines, last = re.split(r"[\r\n]+", plain(text)) if text else [""]
    for line in lines:
        reader.line(line)
    if _ROW_CUT.fullmatch(last.strip()) and not _ROW.match(last.strip()):
        reader.log = replace(reader.log, cut=True)
    else:
        reader.line(last)
    return reader.finish()


def last_gflops(text: str) -> dict[str, float]:
    """Return each card's newest rate by UUID, Gflop/s, from a burn that is still going; lenient, for live display."""
    cards = {int(m[1]): m[3] for m in CARD_LINE.finditer(text)}
    rows = list(_ROW.finditer(text))
    if not rows:
        return {}
    rates = [_figure(m[2]) for m in _DONE_ONE.finditer(rows[-1]["done"])]
    if len(cards) > len(rates):
        return {}
    return {cards[i]: rate for i, rate in enumerate(rates) if i in cards}


class _Reader:
    """Takes a log line by line; a line may hold several utterances, because rows are not ended."""

    def __init__(self) -> None:
        self.log = BurnLog()
        self._cards: dict[str, Card] = {}
        self._rows: list[Row] = []
        self._period: list[int] = []
        self._errors: list[int] = []
        self._verdicts: list[tuple[int, str]] = []
        self._trouble: list[str] = []

    def line(self, line: str) -> None:
        """Take one line."""
        rest = _WRAPPER.sub("", line.strip())
        while rest:
            taken = next(self._takes(rest), None)
            # A message that runs on into a row has swallowed it: that row's bad news may not get lost.
            if taken is None or (_OF_ROWS.search(rest[:taken]) and not _ROW.match(rest)):
                self.log = replace(self.log, unknown=self.log.unknown or rest)
                return
            rest = rest[taken:].lstrip()

    def finish(self) -> BurnLog:
        """Return what was read."""
        self._close_period()
        columns = list(zip(*(row.workers for row in self._rows), strict=True)) if self._rows else []
        return replace(
            self.log,
            cards=tuple(self._cards.values()),
            rows=tuple(self._rows),
            errors=tuple(self._errors),
            died=tuple(any(w.died for w in column) for column in columns),
            warned=tuple(any(w.warned for w in column) for column in columns),
            verdicts=tuple(self._verdicts),
            trouble=tuple(self._trouble),
        )

    def _takes(self, rest: str) -> Iterator[int]:
        """Yield the length of the utterance that `rest` begins with; nothing where none is known."""
        if match := _ROW.match(rest):
            if self._take_row(match):
                yield match.end()
            return
        if match := CARD_LINE.match(rest):
            self._cards.setdefault(match[3], Card(int(match[1]), match[2], match[3]))
            yield match.end()
        elif match := _VERDICT.match(rest):
            self._verdicts.append((int(match[1]), match[2]))
            yield match.end()
        elif match := _SUMMARY.match(rest):
            self._close_period()
            yield match.end()
        elif match := _TESTED.match(rest):
            self.log = replace(self.log, tested=int(match[1]))
            yield match.end()
        elif match := _BURNING.match(rest):
            self.log = replace(self.log, asked_seconds=int(match[1]))
            yield match.end()
        else:
            yield from self._takes_words(rest)

    def _takes_words(self, rest: str) -> Iterator[int]:
        if match := ENDS.match(rest) or QUIET.match(rest):
            yield match.end()
        elif match := HELP.match(rest):
            self.log = replace(self.log, help_shown=True)
            yield match.end()
        elif match := ABORTS.match(rest):
            self.log = replace(self.log, aborted=self.log.aborted or match[0].strip())
            yield match.end()
        elif match := TROUBLE.match(rest):
            if len(self._trouble) < _MAX_TROUBLE:
                self._trouble.append(match[0].strip())
            yield match.end()

    def _take_row(self, match: re.Match[str]) -> bool:
        done = [(int(m[1]), _figure(m[2])) for m in _DONE_ONE.finditer(match["done"])]
        errors = [(int(m[1]), m[2]) for m in _COUNT_ONE.finditer(match["errors"])]
        if len(done) != len(errors) or (self._rows and len(self._rows[0].workers) != len(done)):
            return False
        workers = tuple(
            Worker(n, rate, count, note == "WARNING", note == "DIED" or n < 0)
            for (n, rate), (count, note) in zip(done, errors, strict=True)
        )
        temps = tuple(float(m[1]) if m[1] else None for m in _TEMP_ONE.finditer(match["temps"]))
        self._rows.append(Row(float(match["percent"].replace(",", ".")), workers, temps))
        # A wrapped (negative) count is still a count of errors; beside DIED it was never set.
        counts = [0 if worker.died else abs(worker.errors) for worker in workers]
        self._period = [max(pair) for pair in zip(self._period or counts, counts, strict=True)]
        return True

    def _close_period(self) -> None:
        """Add the counts of the period that a summary (or the end) closes."""
        period, self._period = self._period, []
        if period:
            self._errors = [sum(pair) for pair in zip(self._errors or [0] * len(period), period, strict=True)]


def _figure(text: str) -> float:
    """Return a rate; `nan` and `inf` stand in rows before any time has passed and are no rate."""
    return float(text) if text.lstrip("-")[0].isdigit() else 0.0
