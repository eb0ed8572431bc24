"""Outcomes as they finish; one rig's error is its own."""

from __future__ import annotations

import threading

import pytest

from rigctl.errors import ConnectionLost
from rigctl.fleet.pool import for_each

from .rigs import rig

RIGS = [rig(f"rig{n}") for n in range(1, 5)]


def test_values_and_errors_as_they_finish() -> None:
    first_seen = threading.Event()

    def work(one) -> str:
        if one.name == "rig1":
            assert first_seen.wait(10)
        if one.name == "rig2":
            raise ConnectionLost("rig2: gone", "look")
        return one.name

    seen = []
    for finished in for_each(RIGS, work):
        seen.append(finished)
        first_seen.set()
    assert seen[-1].rig.name == "rig1"
    assert {f.rig.name: f.value for f in seen if f.error is None} == {n: n for n in ("rig1", "rig3", "rig4")}
    assert [(f.rig.name, str(f.error)) for f in seen if f.error] == [("rig2", "rig2: gone")]


def test_a_fault_of_ours_is_raised_after_the_others_finished() -> None:
    done = []

    def work(one) -> None:
        if one.name == "rig1":
            raise KeyError("ours")
        done.append(one.name)

    seen = []
    with pytest.raises(KeyError, match="ours"):
        seen.extend(finished.rig.name for finished in for_each(RIGS, work, max_workers=1))
    assert sorted(done) == sorted(seen) == ["rig2", "rig3", "rig4"]


def test_bounded() -> None:
    lock, most = threading.Lock(), []
    running = 0

    def work(one) -> None:
        nonlocal running
        with lock:
            running += 1
            most.append(running)
        threading.Event().wait(0.05)
        with lock:
            running -= 1

    list(for_each(RIGS, work, max_workers=2))
    assert max(most) == 2


def test_who_stops_reading_starts_no_more_rigs() -> None:
    started = []

    def work(one) -> None:
        started.append(one.name)
        threading.Event().wait(0.05)

    outcomes = for_each(RIGS, work, max_workers=1)
    next(outcomes)
    outcomes.close()
    assert len(started) < len(RIGS)


def test_no_rigs() -> None:
    assert list(for_each([], lambda one: one)) == []
