"""What people decided about baselines: kept whatever happens, by several writers, and only ever added to."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from rigctl.errors import UsageError
from rigctl.model.decision import BaselineDecision
from rigctl.model.verdict import Verdict
from rigctl.store.baseline import find_baselines, read_baselines
from rigctl.store.decisions import FILE, append_decisions, newest_decisions, read_decisions
from rigctl.store.index import FILE as INDEX
from rigctl.store.index import Index
from tests.checks import healthy
from tests.store.test_baseline import NOON, accepted, alike, rate, settled

if TYPE_CHECKING:
    from pathlib import Path

    from rigctl.store import RunDir


def reset(at: str = "2026-12-03T00:00:00.000Z", rig: str = "rig1", reason: str = "moved") -> BaselineDecision:
    return BaselineDecision(action="reset", rig=rig, at=at, who="anna@lab", reason=reason)


def reference(run: RunDir) -> BaselineDecision:
    ended = run.read_record().ended_at
    known = {"at": "2026-12-20T08:00:00.000Z", "who": "anna@lab", "reason": "new card"}
    return BaselineDecision(action="accept", rig="rig1", run=run.run_id, run_ended_at=ended, **known)


def fail(slot: int, found: float):
    return settled(slot, found).model_copy(update={"verdict": Verdict.FAIL})


def both_ways(root: Path):
    """The baseline by the index, which is what reading every run gives too."""
    by_index, by_reading = find_baselines(root, ("rig1",)), read_baselines(root, ("rig1",))
    assert by_index.keys() == by_reading.keys()
    if "rig1" not in by_index:
        return None
    assert alike(by_index["rig1"]) == alike(by_reading["rig1"])
    return by_index["rig1"]


def test_decisions_are_added_and_the_newest_of_a_rig_holds(tmp_path):
    assert read_decisions(tmp_path) == ()
    assert read_decisions(tmp_path / "nowhere") == ()
    first, other, last = reset(), reset(rig="rig2"), reset(at="2026-12-04T00:00:00.000Z", reason="again")
    append_decisions(tmp_path, (first, other))
    append_decisions(tmp_path, (last,))
    assert read_decisions(tmp_path) == (first, other, last)
    assert newest_decisions(tmp_path) == {"rig1": last, "rig2": other}


def test_many_writers_at_once_lose_nothing(tmp_path):
    together = threading.Barrier(6)

    def decide(number: int) -> None:
        together.wait(timeout=20)
        for turn in range(8):
            append_decisions(tmp_path, (reset(reason=f"{number} {turn} {'x' * 900}"),))

    writers = [threading.Thread(target=decide, args=(number,)) for number in range(6)]
    for one in writers:
        one.start()
    for one in writers:
        one.join()
    found = [one.reason.split()[:2] for one in read_decisions(tmp_path)]
    assert sorted(found) == [[str(number), str(turn)] for number in range(6) for turn in range(8)]
    for number in range(6):
        assert [turn for who, turn in found if who == str(number)] == [str(turn) for turn in range(8)]


def test_a_line_that_a_crash_has_cut_is_met(tmp_path):
    append_decisions(tmp_path, (reset(reason="one"), reset(reason="two")))
    path = tmp_path / FILE
    path.write_bytes(path.read_bytes()[:-20])
    assert [one.reason for one in read_decisions(tmp_path)] == ["one"]
    append_decisions(tmp_path, (reset(reason="three"),))
    assert [one.reason for one in read_decisions(tmp_path)] == ["one", "three"]


def test_a_line_that_lacks_only_its_end_stays_a_decision(tmp_path):
    append_decisions(tmp_path, (reset(reason="one"),))
    path = tmp_path / FILE
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    assert [one.reason for one in read_decisions(tmp_path)] == ["one"]
    append_decisions(tmp_path, (reset(reason="two"),))
    assert [one.reason for one in read_decisions(tmp_path)] == ["one", "two"]


@pytest.mark.parametrize(
    "line", [b"{", b'{"action": "accept"}', reset().model_dump_json().replace("2026", "x").encode()]
)
def test_any_other_damage_is_said_and_nothing_is_added(tmp_path, line):
    path = tmp_path / FILE
    path.write_bytes(line + b"\n")
    for touch in (lambda: read_decisions(tmp_path), lambda: append_decisions(tmp_path, (reset(),))):
        with pytest.raises(UsageError, match=r"baselines\.jsonl, line 1, is damaged"):
            touch()
    assert path.read_bytes() == line + b"\n"
    accepted(tmp_path, 0, settled(1, 58.0))
    with pytest.raises(UsageError, match="line 1"):
        find_baselines(tmp_path, ("rig1",))


@pytest.mark.parametrize("more", [{"action": "accept"}, {"run": "2026-11-30T2300Z-7f3a"}, {"at": "yesterday"}])
def test_half_a_decision_is_none(more):
    with pytest.raises(ValueError, match="validation error"):
        BaselineDecision.model_validate(reset().model_dump() | more)


def test_a_run_that_people_accepted_is_the_first_that_counts(tmp_path):
    for day in range(3):
        accepted(tmp_path, day, settled(1, 58.0 - day), rate(1, 27_000.0))
    another = accepted(tmp_path, 3, fail(1, 64.0), rate(1, 24_000.0))
    append_decisions(tmp_path, (reference(another),))
    known = both_ways(tmp_path)
    assert (known.run_id, known.runs) == (another.run_id, 1)
    assert known.settled_max_c == {healthy.UUIDS[0]: 64.0}
    assert known.recent_of("throughput.burn_gflops", healthy.UUIDS[0]) == (24_000.0,)
    accepted(tmp_path, 4, fail(1, 80.0))
    newest = accepted(tmp_path, 5, settled(1, 63.0), rate(1, 24_100.0))
    known = both_ways(tmp_path)
    assert (known.run_id, known.runs) == (newest.run_id, 2)
    assert known.settled_max_c == {healthy.UUIDS[0]: 64.0}
    assert known.recent_of("throughput.burn_gflops", healthy.UUIDS[0]) == (24_000.0, 24_100.0)


def test_an_earlier_run_takes_it_back(tmp_path):
    runs = [accepted(tmp_path, day, settled(1, 58.0)) for day in range(3)]
    append_decisions(tmp_path, (reset("2026-12-10T00:00:00.000Z"),))
    assert both_ways(tmp_path) is None
    append_decisions(tmp_path, (reference(runs[0]),))
    assert both_ways(tmp_path).runs == 3


def test_only_what_began_after_a_reset_counts(tmp_path):
    accepted(tmp_path, 0, settled(1, 58.0))
    began = NOON + timedelta(days=1)
    under_way = accepted(tmp_path, 1, settled(1, 50.0))
    append_decisions(tmp_path, (reset((began + timedelta(minutes=3)).isoformat()),))
    assert under_way.read_record().ended_at > (began + timedelta(minutes=3)).isoformat()
    assert both_ways(tmp_path) is None
    after = accepted(tmp_path, 2, settled(1, 61.0))
    known = both_ways(tmp_path)
    assert (known.run_id, known.runs, known.settled_max_c) == (after.run_id, 1, {healthy.UUIDS[0]: 61.0})


def test_it_outlives_the_index_and_touches_no_other_rig(tmp_path):
    runs = [accepted(tmp_path, day, settled(1, 58.0)) for day in range(4)]
    append_decisions(tmp_path, (reset(rig="rig2"), reference(runs[2])))
    assert both_ways(tmp_path).runs == 2
    for file in tmp_path.glob(f"{INDEX}*"):
        file.unlink()
    assert both_ways(tmp_path).runs == 2
    append_decisions(tmp_path, (reset(rig="rig2"),))
    assert both_ways(tmp_path).runs == 2


def test_any_index_knows_which_runs_count(tmp_path, index_url):
    runs = [accepted(tmp_path, day, fail(1, 64.0) if day == 2 else settled(1, 58.0)) for day in range(4)]
    with Index.open(tmp_path, index_url) as index:
        index.update()
        first, second, failed, last = (run.run_id for run in runs)
        assert index.baseline_runs("rig1") == (first, second, last)
        counted = index.baseline_runs("rig1", reference(runs[2]))
        assert counted == (failed, last)
        assert [one.run_id for one in index.own_pasts("rig1", counted)] == [failed, last]
        assert [one.found for one in index.baseline_points("rig1", counted)] == [64.0, 58.0]
        assert index.baseline_points("rig1", ()) == index.own_pasts("rig1", ()) == ()
        assert index.baseline_runs("rig2", reference(runs[2])) == ()
