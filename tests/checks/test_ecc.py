"""Errors of the cards' memory: what counts, what is told, and what nobody can tell."""

from __future__ import annotations

import pytest

from rigctl.checks import ecc
from rigctl.checks.causes import with_causes
from rigctl.model.reading import EccReading, RemappedRows
from rigctl.model.spec import ProfileSpec
from rigctl.model.verdict import Verdict

from . import healthy as h
from .test_fail import kernel as said
from .test_healthy import all_verdicts

NO_LOAD = ProfileSpec(
    idle_seconds=2, cpu_burn_seconds=0, gpu_burn_seconds=0, all_burn_seconds=0, train=False, sample_hz=2
)
CLEAN = {"on": True, "corrected": 0, "uncorrected": 0, "lifetime_corrected": 0, "lifetime_uncorrected": 0}
ROWS = {"corrected": 0, "uncorrected": 0, "pending": False, "failed": False, "banks": {"max": 640, "none": 0}}


def judged(after=None, before=None, spec=None, baseline=None, profile=h.PROFILE):
    """What is said of card 2 when it counts so before and after the load."""
    first = EccReading(**CLEAN | (before or {}))
    readings = h.readings(
        facts=h.facts(gpus=(h.gpu(0), h.gpu(1, ecc=first))),
        logs=h.with_logs(counters__jsonl=h.counters({"ecc": CLEAN | (before or {}) | (after or {})})),
    )
    return ecc.ecc_errors(spec or h.spec(), readings, profile, baseline)[1]


def with_rows(profile=h.PROFILE, **changes):
    readings = h.readings(logs=h.with_logs(counters__jsonl=h.counters({"remapped_rows": ROWS | changes})))
    return ecc.remapped_rows(h.spec(), readings, profile)[1]


def test_a_card_without_errors_passes_and_an_error_that_stayed_fails():
    assert judged().verdict is Verdict.PASS
    found = judged({"uncorrected": 1})
    assert (found.verdict, found.found, found.subject) == (Verdict.FAIL, 1, h.SLOT2)
    assert "1 in this run" in found.reason
    old = judged(before={"uncorrected": 2})
    assert old.verdict is Verdict.FAIL
    assert "0 in this run" in old.reason


@pytest.mark.parametrize(("count", "verdict"), [(10, Verdict.PASS), (11, Verdict.FAIL)])
def test_corrected_errors_have_a_limit(count, verdict):
    found = judged({"corrected": count}, spec=h.spec(limits={"max_ecc_corrected": 10}))
    assert found.verdict is verdict
    assert found.source
    if verdict is Verdict.FAIL:
        assert (found.expected, found.unit) == (10, "corrected errors")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"corrected": -1}),
        ({}, {"uncorrected": -1}),
        ({}, {"corrected": ecc.ABSURD}),
        ({"corrected": 5}, {"corrected": 4}),
        ({"uncorrected": 2}, {"uncorrected": 1}),
        ({}, {"uncorrected": None}),
        ({}, {"corrected": None}),
    ],
)
def test_figures_that_cannot_be_are_an_error(before, after):
    found = judged(after, before, spec=h.spec(limits={"max_ecc_corrected": 1 << 62}))
    assert found.verdict is Verdict.ERROR
    assert found.fix


def test_the_largest_figure_that_can_be_is_one():
    most = ecc.ABSURD - 1
    assert judged({"corrected": most}, spec=h.spec(limits={"max_ecc_corrected": most})).verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("declared", "on", "verdict"),
    [
        (True, True, Verdict.PASS),
        (True, False, Verdict.FAIL),
        (False, True, Verdict.FAIL),
        (False, False, Verdict.SKIP),
        (None, False, Verdict.BLIND),
    ],
)
def test_it_is_set_as_declared(declared, on, verdict):
    found = judged({"on": on}, {"on": on}, spec=h.spec(parts={"ecc": declared}))
    assert found.verdict is verdict
    assert bool(found.fix) == (verdict is Verdict.FAIL)


@pytest.mark.parametrize(("declared", "verdict"), [(True, "error"), (False, "skip"), (None, "blind")])
def test_a_card_that_has_none_is_blind_unless_the_spec_speaks_of_it(declared, verdict):
    found = ecc.ecc_errors(h.spec(parts={"ecc": declared}), h.readings(), h.PROFILE)
    assert [one.verdict.value for one in found] == [verdict, verdict]


def test_a_fault_of_the_driver_is_no_blindness():
    cards = (h.gpu(0, missing={}), h.gpu(1, missing={"ecc": "Unknown Error", "remapped_rows": "GPU is lost"}))
    readings = h.readings(facts=h.facts(gpus=cards))
    for found in (ecc.ecc_errors(h.spec(), readings, NO_LOAD), ecc.remapped_rows(h.spec(), readings, NO_LOAD)):
        assert [one.verdict for one in found] == [Verdict.ERROR, Verdict.ERROR]
        assert all(one.fix for one in found)


def test_without_a_load_the_facts_are_judged_and_with_one_the_counters_must_be_there():
    bad = EccReading(**CLEAN | {"uncorrected": 1})
    failed = RemappedRows(corrected=0, uncorrected=9, pending=False, failed=True)
    readings = h.readings(
        facts=h.facts(gpus=(h.gpu(0), h.gpu(1, ecc=bad, remapped_rows=failed))), logs=h.without_logs("counters.jsonl")
    )
    assert ecc.ecc_errors(h.spec(), readings, NO_LOAD)[1].verdict is Verdict.FAIL
    assert ecc.remapped_rows(h.spec(), readings, NO_LOAD)[1].verdict is Verdict.FAIL
    assert ecc.ecc_errors(h.spec(), readings, h.PROFILE)[1].verdict is Verdict.ERROR
    assert ecc.remapped_rows(h.spec(), readings, h.PROFILE)[1].verdict is Verdict.ERROR


@pytest.mark.parametrize(("then", "now", "verdict"), [(3, 3, Verdict.PASS), (3, 4, Verdict.WARN), (3, 2, Verdict.PASS)])
def test_errors_between_two_runs_are_told_by_what_the_card_remembers(then, now, verdict):
    accepted = h.baseline(gpus=(h.gpu(0), h.gpu(1, ecc=EccReading(**CLEAN | {"lifetime_uncorrected": then}))))
    found = judged({"lifetime_uncorrected": now}, {"lifetime_uncorrected": now}, baseline=accepted)
    assert found.verdict is verdict


@pytest.mark.parametrize(
    ("changes", "verdict", "word"),
    [
        ({}, Verdict.PASS, "0 rows"),
        ({"uncorrected": 4}, Verdict.PASS, "4 rows"),
        ({"pending": True}, Verdict.FAIL, "reset"),
        ({"failed": True}, Verdict.FAIL, "could not be replaced"),
        ({"banks": {"none": 1}}, Verdict.WARN, "1 banks"),
        ({"banks": None}, Verdict.PASS, "0 rows"),
        ({"corrected": -1}, Verdict.ERROR, "no counts"),
        ({"uncorrected": -1}, Verdict.ERROR, "no counts"),
        ({"corrected": ecc.MOST_ROWS}, Verdict.ERROR, "no counts"),
        ({"uncorrected": ecc.MOST_ROWS}, Verdict.ERROR, "no counts"),
        ({"corrected": ecc.MOST_ROWS - 1, "uncorrected": ecc.MOST_ROWS - 1}, Verdict.PASS, "rows"),
    ],
)
def test_remapped_rows(changes, verdict, word):
    found = with_rows(**changes)
    assert found.verdict is verdict
    assert word in found.reason
    assert bool(found.fix) == (verdict is not Verdict.PASS)


@pytest.mark.parametrize(("number", "follows"), [(48, True), (95, True), (79, False)])
def test_the_drivers_word_of_failing_memory_follows_from_the_memory(number, follows):
    text = f"NVRM: Xid (PCI:0000:02:00): {number}, pid='<unknown>', name=<unknown>, something"
    counted = {"ecc": CLEAN | {"uncorrected": 1}, "remapped_rows": ROWS | {"pending": True}}
    readings = h.readings(
        facts=h.facts(gpus=(h.gpu(0), h.gpu(1, ecc=EccReading(**CLEAN)))),
        logs=h.with_logs(counters__jsonl=h.counters(counted)),
        **said(text),
    )
    by_key = {one.key: one for one in with_causes(all_verdicts(readings=readings), readings)}
    memory, rows, log = (
        by_key[f"{check}[{h.SLOT2}]"] for check in ("memory.ecc", "memory.remapped_rows", "kernel.xid")
    )
    assert memory.caused_by is None
    assert rows.caused_by == memory.key
    assert log.caused_by == (memory.key if follows else None)
