"""Words and figures as people read them; everything that came from a rig is made harmless here."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from rigctl.model.verdict import Verdict

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
# C0 and C1 controls, line separators, and the marks that turn the direction of writing: none has a place in a report.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ufffe\uffff]")
_SPACE = re.compile(r"\s+")

WORD = {Verdict.PASS: "ok"}
"""Verdicts that people know by a shorter word."""

COUNT_ORDER = (
    Verdict.PASS,
    Verdict.FAIL,
    Verdict.ERROR,
    Verdict.WARN,
    Verdict.WAIVED,
    Verdict.BLIND,
    Verdict.SKIP,
)
_MINUTE_S = 60
_HOUR_S = 3600
_SIGNIFICANT = 4


def plain(text: str) -> str:
    """Return `text` in one line, without escape sequences; other control characters show as `�`."""
    clean = _SPACE.sub(" ", _ANSI.sub("", text)).strip()
    return _CONTROL.sub("\ufffd", clean)


def word(verdict: Verdict) -> str:
    """Return the verdict as people read it."""
    return WORD.get(verdict, verdict.value)


def rig_word(verdict: Verdict | None) -> str:
    """Return a rig's verdict as people read it: what its cards do not show makes it no worse; None is a busy rig."""
    if verdict is None:
        return "busy"
    return word(Verdict.PASS if verdict in (Verdict.BLIND, Verdict.SKIP) else verdict)


def counts(numbers: dict[str, int]) -> str:
    """Return coverage such as `ok 41 · fail 3 · blind 2`."""
    return " · ".join(f"{word(v)} {numbers[v.value]}" for v in COUNT_ORDER if numbers.get(v.value))


def figure(value: str | float | None, unit: str | None = None) -> str:
    """Return a figure with its unit: whole numbers whole, others with four significant digits."""
    if value is None:
        return ""
    if isinstance(value, str):
        shown = plain(value)
    elif isinstance(value, int) or value.is_integer():
        shown = str(int(value))
    else:
        whole_digits = len(str(int(abs(value)))) if abs(value) >= 1 else 0
        shown = f"{value:.{max(0, _SIGNIFICANT - whole_digits)}f}"
        shown = shown.rstrip("0").rstrip(".") if "." in shown else shown
    return f"{shown} {unit}" if unit else shown


def duration(seconds: float) -> str:
    """Return a length of time such as `48 s`, `3 min 30 s` or `8 h 04 min`."""
    whole = round(seconds)
    if whole < _MINUTE_S:
        return f"{whole} s"
    if whole < _HOUR_S:
        minutes, rest = divmod(whole, _MINUTE_S)
        return f"{minutes} min {rest:02d} s" if rest else f"{minutes} min"
    hours, rest = divmod(whole, _HOUR_S)
    return f"{hours} h {rest // _MINUTE_S:02d} min"


def moment(iso: str) -> datetime:
    """Return an ISO 8601 time of a record; it carries its zone, and UTC is meant where it does not."""
    when = datetime.fromisoformat(iso)
    return when if when.tzinfo else when.replace(tzinfo=UTC)


def span(started_at: str, ended_at: str) -> str:
    """Return the time of a run, such as `02:10–05:41 UTC`."""
    return f"{moment(started_at):%H:%M}–{moment(ended_at):%H:%M} UTC"


def seconds_between(started_at: str, ended_at: str) -> float:
    """Return the length of a run, seconds."""
    return (moment(ended_at) - moment(started_at)).total_seconds()


def several(number: int, one: str, many: str = "") -> str:
    """Return `1 rig`, `2 rigs`."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def room(size: int) -> str:
    """Return what something takes on a disk: `81.8 kB`, `5.0 MB`."""
    step = 1000
    if size < step:
        return f"{size} B"
    amount = float(size)
    for unit in ("kB", "MB", "GB"):
        amount /= step
        if round(amount, 1) < step:
            return f"{amount:.1f} {unit}"
    return f"{amount / step:.1f} TB"
