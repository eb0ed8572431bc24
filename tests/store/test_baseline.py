"""A rig's baseline: the newest run in which it was burnt and accepted, and the extremes of all of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from rigctl.model.run import RunRig
from rigctl.model.verdict import CheckVerdict, Record, RigRecord, Verdict
from rigctl.store import RunDir
from rigctl.store.baseline import RECENT_RUNS, find_baselines, read_baselines
from rigctl.store.index import FILE, Index
from tests.checks import healthy

if TYPE_CHECKING:
    from pathlib import Path

NOON = datetime(2026, 11, 30, 12, 0, 1, tzinfo=UTC)


def settled(slot: int, found: float) -> CheckVerdict:
    return CheckVerdict(
        check="thermals.settled_gpu_temp",
        subject=healthy.gpu(slot - 1).subject,
        verdict=Verdict.PASS,
        reason="settled",
        found=found,
        unit="°C",
    )


def accepted(
    root: Path, day: int, *verdicts: CheckVerdict, profile: Any = healthy.PROFILE, with_facts: bool = True
) -> RunDir:
    began = NOON + timedelta(days=day)
    rig = RunRig(name="rig1", spec=healthy.spec(), profile=profile)
    run = RunDir.create(root, "accept", rigs=(rig,), profile="smoke", now=began)
    if with_facts:
        run.write_json_atomic("rig1/facts.json", healthy.facts())
    run.write_record(
        Record(
            run_id=run.run_id,
            kind="accept",
            profile="smoke",
            started_at=began.isoformat(),
            ended_at=(began + timedelta(minutes=10)).isoformat(),
            rigctl_version="0.1.0",
            rigs=(RigRecord(name="rig1", rig_class="dual_3090ti", verdicts=verdicts),),
        )
    )
    return run


def test_a_rig_that_was_never_accepted_has_none(tmp_path):
    failed = settled(1, 80.0).model_copy(update={"verdict": Verdict.FAIL})
    accepted(tmp_path, 0, failed)
    assert find_baselines(tmp_path, ("rig1",)) == {}
    assert find_baselines(tmp_path / "nowhere", ("rig1",)) == {}


def test_the_newest_accepted_run_gives_the_figures_and_all_of_them_the_extremes(tmp_path):
    accepted(tmp_path, 0, settled(1, 58.0), settled(2, 57.0))
    newest = accepted(tmp_path, 1, settled(1, 56.5), settled(2, 55.0))
    accepted(tmp_path, 2, settled(1, 79.0).model_copy(update={"verdict": Verdict.FAIL}))
    known = find_baselines(tmp_path, ("rig1", "rig2"))["rig1"]
    assert (known.run_id, known.runs) == (newest.run_id, 2)
    assert known.figure("thermals.settled_gpu_temp", healthy.UUIDS[0]) == 56.5
    assert known.figure("thermals.settled_gpu_temp", "GPU-other") is None
    assert known.settled_max_c == {healthy.UUIDS[0]: 58.0, healthy.UUIDS[1]: 57.0}
    assert [gpu.uuid for gpu in known.facts.gpus] == list(healthy.UUIDS)


def test_a_run_without_a_burn_is_no_acceptance_to_compare_with(tmp_path):
    no_burn = healthy.PROFILE.model_copy(update={"gpu_burn_seconds": 0})
    accepted(tmp_path, 0, settled(1, 58.0), profile=no_burn)
    assert find_baselines(tmp_path, ("rig1",)) == {}


def test_a_damaged_run_is_left_out_and_named(tmp_path, caplog):
    good = accepted(tmp_path, 0, settled(1, 58.0))
    for day, file in ((1, "record.json"), (2, "rig1/facts.json")):
        (accepted(tmp_path, day, settled(1, 50.0)).path / file).write_text("{", encoding="utf-8")
    accepted(tmp_path, 3, settled(1, 50.0), with_facts=False)
    assert find_baselines(tmp_path, ("rig1",))["rig1"].run_id == good.run_id
    assert len([one for one in caplog.records if "left out of" in one.message]) == 3


def paced(slot: int, found: float) -> CheckVerdict:
    return settled(slot, found).model_copy(update={"check": "throughput.layer", "unit": "TFLOP/s"})


def test_the_rates_of_the_last_runs_are_kept_whatever_the_newest_one_measured(tmp_path):
    for day in range(RECENT_RUNS + 2):
        accepted(tmp_path, day, settled(1, 55.0), paced(1, 60.0 + day))
    accepted(tmp_path, 40, settled(1, 56.0))
    known = find_baselines(tmp_path, ("rig1",))["rig1"]
    rates = known.recent_of("throughput.layer", healthy.UUIDS[0])
    assert rates == tuple(60.0 + day for day in range(2, RECENT_RUNS + 2))
    assert known.figure("throughput.layer", healthy.UUIDS[0]) is None
    assert known.recent_of("thermals.settled_gpu_temp", healthy.UUIDS[0]) == ()


def rate(slot: int, found: float) -> CheckVerdict:
    known = {"check": "throughput.burn_gflops", "unit": "Gflop/s", "verdict": Verdict.PASS, "reason": "as usual"}
    return CheckVerdict(subject=healthy.gpu(slot - 1).subject, found=found, **known)


def alike(known):
    """A baseline as plain data: rates in no order, for their order says nothing."""
    plain = known.model_dump()
    return plain | {"recent": sorted(plain["recent"], key=lambda one: (one["check"], one["subject"]))}


def test_the_index_gives_what_reading_every_run_gives(tmp_path):
    no_burn = healthy.PROFILE.model_copy(update={"gpu_burn_seconds": 0})
    for day in range(RECENT_RUNS + 5):
        verdicts = [settled(1, 55.0 + day % 7), settled(2, 54.0 + day % 5), rate(1, 27_000.0 - day), rate(2, 26_900.0)]
        if day % 6 == 5:
            verdicts[0] = verdicts[0].model_copy(update={"verdict": Verdict.FAIL, "found": 99.0})
        accepted(
            tmp_path, day, *verdicts, profile=no_burn if day % 9 == 8 else healthy.PROFILE, with_facts=day % 11 != 10
        )
    by_index, by_reading = find_baselines(tmp_path, ("rig1", "rig2")), read_baselines(tmp_path, ("rig1", "rig2"))
    assert by_index.keys() == by_reading.keys() == {"rig1"}
    assert alike(by_index["rig1"]) == alike(by_reading["rig1"])
    assert by_index["rig1"].runs > 15
    with Index.open(tmp_path) as index:
        assert index.update().added == (), "one index beside the runs, whoever asks"
    accepted(tmp_path, 60, settled(1, 61.0), rate(1, 26_000.0))
    assert alike(find_baselines(tmp_path, ("rig1",))["rig1"]) == alike(read_baselines(tmp_path, ("rig1",))["rig1"])


def test_where_the_index_cannot_be_used_every_run_is_read(tmp_path, caplog):
    accepted(tmp_path, 0, settled(1, 58.0))
    (tmp_path / FILE).write_bytes(b"this is no database" * 100)
    assert find_baselines(tmp_path, ("rig1",))["rig1"].runs == 1
    assert "cannot be used, so every run is read" in caplog.text
