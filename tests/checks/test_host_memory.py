"""The host's memory: what its test found, and when it tells nothing."""

from __future__ import annotations

import json

import pytest

from rigctl.checks import host_memory
from rigctl.model.verdict import Verdict

from . import healthy as h

REPORT = json.loads(h.host_memory())["report"]


def judged(text=None, **changes):
    logs = h.with_logs(host_memory__json=text if text is not None else h.host_memory(**changes))
    (found,) = host_memory.host_memory(h.spec(), h.readings(logs=logs))
    return found


def test_memory_without_an_error_passes():
    found = judged()
    assert found.verdict is Verdict.PASS
    assert "51.0 GiB" in found.reason


def test_bits_that_came_back_wrong_fail_with_the_testers_own_words():
    found = judged(exit_status=2, said=["stress-ng: fail: [77] vm: detected 3 bit errors while stressing memory"])
    assert found.verdict is Verdict.FAIL
    assert "3 bit errors" in found.reason
    assert found.fix


@pytest.mark.parametrize(
    "changes",
    [
        {"exit_status": 1},
        {"exit_status": -9, "said": ["killed"]},
        {"bytes": 0},
        {"bytes": "N/A"},
        {"report": ""},
        {"report": "metrics:\n"},
        {"report": REPORT.replace("bogo-ops: 41210", "bogo-ops: 0")},
        {"report": REPORT.replace("bogo-ops: 41210", "bogo-ops: -3")},
        {"report": REPORT.replace("stressor: vm", "stressor: cpu")},
        {"report": REPORT.replace("300.12", "269.9")},
        {"text": "nonsense"},
        {"text": '{"error": "stress-ng is not installed", "hint": "rigctl provision installs it"}'},
        {"text": '{"error": "no memory"}'},
    ],
)
def test_a_test_that_tells_nothing_is_an_error(changes):
    found = judged(**changes)
    assert found.verdict is Verdict.ERROR, found
    assert found.fix


@pytest.mark.parametrize(
    "change", [("300.12", "270.0"), ("bogo-ops: 41210", "bogo-ops: 1"), ("stressor: vm", "stressor: vm-x")]
)
def test_the_least_that_counts_as_a_test(change):
    assert judged(report=REPORT.replace(*change)).verdict is Verdict.PASS


def test_a_spec_that_asks_for_none_and_a_step_that_did_not_run():
    assert host_memory.host_memory(h.spec(host_memory=None), h.readings())[0].verdict is Verdict.SKIP
    (found,) = host_memory.host_memory(h.spec(), h.readings(logs=h.without_logs("host_memory.json")))
    assert found.verdict is Verdict.ERROR
