"""`dcgmi diag -j`: what NVIDIA's own diagnosis says of each test and card, in the forms of DCGM 2 to 4.

DCGM 2 and 3.0 name the document `DCGM GPU Diagnostic` and cards by a text (`"gpu_ids": "0,1"`), 3.1 and newer
`DCGM Diagnostic` and by number, 4 by `entity_group` and `entity_id`; warnings are texts or objects. Test lists hold
`null` between tests, and warnings of the program stand before the document. The shape is the one in DCGM's source
(nvvs/include/NvvsJsonStrings.h) and in its tests. A word for a result that is not known is an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rigctl.parse import ParseError
from rigctl.parse.figures import whole
from rigctl.parse.json_text import Entry, document

Status = Literal["pass", "warn", "fail", "skip", "not run"]

_WHAT = "`dcgmi diag -j`"
_ROOTS = ("DCGM Diagnostic", "DCGM GPU Diagnostic")
_STATUS: dict[str, Status] = {
    "pass": "pass", "passed": "pass", "warn": "warn", "warning": "warn", "fail": "fail", "failed": "fail",
    "skip": "skip", "skipped": "skip", "not run": "not run", "notrun": "not run",
}  # fmt: skip


@dataclass(frozen=True)
class TestOutcome:
    """One test on one card, or on all where it is a test of the rig."""

    __test__ = False  # no test of pytest's

    category: str
    test: str
    status: Status
    gpus: tuple[int, ...]
    """DCGM's numbers, which are NVML's; empty where the test is not about a card."""
    warnings: tuple[str, ...] = ()
    info: tuple[str, ...] = ()


@dataclass(frozen=True)
class Diagnosis:
    """The whole diagnosis."""

    version: str | None
    outcomes: tuple[TestOutcome, ...]
    runtime_error: str | None = None
    """Why it gave up; what it found before still stands, and the diagnosis is no clean bill."""

    @property
    def ran(self) -> tuple[TestOutcome, ...]:
        """The tests that were really done: a diagnosis that skipped everything says nothing."""
        return tuple(one for one in self.outcomes if one.status not in {"skip", "not run"})


def parse(text: str) -> Diagnosis:
    """Read the diagnosis.

    Raises ParseError where it is cut, of another form, or holds neither a result nor a reason why there is none.
    """
    begin = text.find("{")
    entries = document(_WHAT, text[begin:] if begin >= 0 else text)
    name = next((root for root in _ROOTS if root in entries), None)
    if name is None:
        raise ParseError(_WHAT, f"keys {sorted(entries)}")
    root = Entry(_WHAT, entries[name], f"{name}.")
    error = root.text("runtime_error") if root.has("runtime_error") else None
    outcomes = [one for category in _each(root, "test_categories") for one in _category(category)]
    if not outcomes and error is None:
        raise ParseError(_WHAT, f"{name}: no result")
    version = root.text("version") if root.has("version") else None
    if version is None and isinstance(entries.get("metadata"), dict):
        found = entries["metadata"].get("version")
        version = found if isinstance(found, str) else None
    return Diagnosis(version, tuple(outcomes), error)


def _each(entry: Entry, key: str) -> list[Entry]:
    """Return the objects of a list that may be absent and may hold null."""
    if not entry.has(key):
        return []
    return [Entry(_WHAT, one, f"{entry.path}{key}[{i}].") for i, one in enumerate(entry.items(key)) if one is not None]


def _category(category: Entry) -> list[TestOutcome]:
    outcomes = []
    for test in _each(category, "tests"):
        results = _each(test, "results")
        if not results and not test.has("test_summary"):
            test.wrong("results", None)
        found = [_outcome(category.text("category"), test.text("name"), result) for result in results]
        if test.has("test_summary"):
            summary = _outcome(category.text("category"), test.text("name"), test.entry("test_summary"))
            # The summary speaks of the rig; it is told where it is worse than what stands for each card.
            if not found or summary.status not in {one.status for one in found}:
                found.append(summary)
        outcomes += found
    return outcomes


def _outcome(category: str, test: str, result: Entry) -> TestOutcome:
    word = result.text("status")
    status = _STATUS.get(word.strip().lower())
    if status is None:
        result.wrong("status", word)
    return TestOutcome(category, test, status, _gpus(result), _texts(result, "warnings"), _texts(result, "info"))


def _gpus(result: Entry) -> tuple[int, ...]:
    if result.has("entity_id"):
        is_card = not result.has("entity_group") or result.text("entity_group").upper() == "GPU"
        return (result.count("entity_id"),) if is_card else ()
    for key in ("gpu_id", "gpu_ids"):
        found = result.entries.get(key)
        if isinstance(found, int) and not isinstance(found, bool) and found >= 0:
            return (found,)
        if isinstance(found, str):
            try:
                return tuple(whole(part.strip()) for part in found.split(",") if part.strip())
            except ValueError as error:
                raise ParseError(_WHAT, f"{result.path}{key}: {found!r}") from error
        if found is not None:
            result.wrong(key, found)
    return ()


def _texts(result: Entry, key: str) -> tuple[str, ...]:
    """Return messages, written as one text, as texts, or as objects with a `warning` of their own."""
    found = result.entries.get(key)
    if found is None:
        return ()
    said = []
    for one in found if isinstance(found, list) else [found]:
        text = one.get("warning") if isinstance(one, dict) else one
        if not isinstance(text, str):
            result.wrong(key, one)
        said.append(text)
    return tuple(said)
