"""The run directory: what survives, what is refused, and in which words."""

from __future__ import annotations

import errno
import gzip
import json
import os
import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from rigctl.errors import ExitCode, RigctlError, UsageError
from rigctl.model.reading import CommandReply
from rigctl.model.verdict import CheckVerdict, Record, RigRecord, Verdict
from rigctl.store import RigOutcome, RunDir, dumps, list_runs

if TYPE_CHECKING:
    from pathlib import Path

NOON = datetime(2026, 11, 30, 12, 0, 1, tzinfo=UTC)


def sample(seq: int) -> bytes:
    row = {"seq": seq, "t_mono_s": 10.0 + seq, "t_wall_s": 1000.0 + seq, "boot_id": "b", "step": "idle", "gpus": []}
    return json.dumps(row).encode() + b"\n"


def record_of(run: RunDir) -> Record:
    verdict = CheckVerdict(check="thermals.cpu_temp", subject="rig", verdict=Verdict.PASS, reason="61 °C", found=61.0)
    rig = RigRecord(name="rig1", rig_class="dual_3090ti", simulated=True, verdicts=(verdict,))
    return Record(
        run_id=run.run_id,
        kind="accept",
        profile="smoke",
        started_at="2026-11-30T12:00:01Z",
        ended_at="2026-11-30T12:02:00Z",
        rigctl_version="0.1.0",
        rigs=(rig,),
    )


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return RunDir.create(tmp_path / "runs", "accept", profile="smoke", asked={"pattern": "all"}, now=NOON)


def test_a_run_is_found_by_id_by_path_and_as_latest(run: RunDir) -> None:
    root = run.path.parent
    assert run.run_id.startswith("2026-11-30T1200Z-")
    for name in (run.run_id, str(run.path), "latest"):
        assert RunDir.open(root, name).read_info().asked == {"pattern": "all"}


def test_latest_orders_runs_of_one_minute_by_their_clock_and_keeps_kinds_apart(tmp_path: Path) -> None:
    made = [RunDir.create(tmp_path, "accept", now=NOON + timedelta(seconds=n)).run_id for n in range(6)]
    provision = RunDir.create(tmp_path, "provision", now=NOON + timedelta(minutes=3)).run_id
    assert RunDir.open(tmp_path, "latest").run_id == provision
    assert RunDir.open(tmp_path, "latest", kind="accept").run_id == made[-1]
    assert len(list_runs(tmp_path)) == 7
    with pytest.raises(UsageError, match="of kind provision, not accept"):
        RunDir.open(tmp_path, provision, kind="accept")


def test_an_unknown_run_names_the_nearest(run: RunDir) -> None:
    with pytest.raises(UsageError) as caught:
        RunDir.open(run.path.parent, run.run_id[:-1] + "x")
    assert caught.value.exit_code == ExitCode.USAGE
    assert f"nearest: {run.run_id}" in caught.value.hint


@pytest.mark.parametrize("name", ["latest", "nothing-like-it", ""])
def test_no_runs_at_all_says_how_to_make_one(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError) as caught:
        RunDir.open(tmp_path / "absent", name)
    assert "rigctl accept" in caught.value.hint


def test_the_journal_goes_on_after_a_crash_in_its_last_line(run: RunDir) -> None:
    run.journal("step_started", rig="rig1", step="idle")
    with (run.path / "journal.jsonl").open("ab") as file:
        file.write(b'{"seq":2,"event":"step_fin')
    again = RunDir.open(run.path.parent, run.run_id)
    assert [e.event for e in again.journal_entries()] == ["step_started"]
    again.journal("resumed")
    entries = RunDir.open(run.path.parent, run.run_id).journal_entries()
    assert [(e.seq, e.event) for e in entries] == [(1, "step_started"), (2, "resumed")]
    assert entries[0].detail == {"rig": "rig1", "step": "idle"}
    assert entries[1].t_mono_s >= entries[0].t_mono_s


def test_a_cut_line_longer_than_a_block_is_mended(run: RunDir) -> None:
    run.journal("one")
    with (run.path / "journal.jsonl").open("ab") as file:
        file.write(b'{"detail": "' + b"x" * 200_000)
    RunDir(run.path).journal("two")
    assert [e.event for e in run.journal_entries()] == ["one", "two"]


@pytest.mark.parametrize(
    ("damage", "line"),
    [(b'{"seq":1,\n{"seq":2}\n', 1), (b"\0\0\0\n", 1), (b'{"seq": "no number"}', 1), (b"\xff\xfe\n", 1)],
)
def test_other_damage_of_the_journal_names_file_and_line(run: RunDir, damage: bytes, line: int) -> None:
    (run.path / "journal.jsonl").write_bytes(damage)
    with pytest.raises(UsageError, match=rf"journal\.jsonl, line {line}, is damaged") as caught:
        RunDir.open(run.path.parent, run.run_id)
    assert caught.value.hint


def test_a_journal_written_from_many_threads_is_whole(run: RunDir) -> None:
    threads = [threading.Thread(target=run.journal, args=("event",), kwargs={"n": n}) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [e.seq for e in run.journal_entries()] == list(range(1, 17))


def test_telemetry_reads_the_same_plain_cut_and_packed(run: RunDir) -> None:
    run.append_raw("rig1", "telemetry.jsonl", sample(1) + sample(2)[:20])
    run.append_raw("rig1", "telemetry.jsonl", sample(2)[20:] + sample(3)[:-9])
    before = run.readings("rig1").samples
    assert [s.seq for s in before] == [1, 2]
    run.compress()
    assert not run.rig_path("rig1", "telemetry.jsonl").exists()
    packed = run.rig_path("rig1", "telemetry.jsonl.gz").read_bytes()
    assert run.readings("rig1").samples == before
    run.compress()
    assert run.rig_path("rig1", "telemetry.jsonl.gz").read_bytes() == packed


def test_damaged_telemetry_is_refused(run: RunDir) -> None:
    run.append_raw("rig1", "telemetry.jsonl", sample(1) + b"{}\n" + sample(3))
    with pytest.raises(UsageError, match=r"telemetry\.jsonl, line 2, is damaged: seq"):
        run.readings("rig1")
    run.rig_path("rig1", "telemetry.jsonl").unlink()
    run.rig_path("rig1", "telemetry.jsonl.gz").write_bytes(gzip.compress(sample(1) * 50)[:-12])
    with pytest.raises(UsageError, match=r"telemetry\.jsonl\.gz is damaged"):
        run.readings("rig1")


def test_readings_hold_logs_kernel_and_outcome(run: RunDir) -> None:
    run.append_raw("rig1", "gpu_burn.log", b"100.0%  proc'd: 10 \xff\n")
    run.append_raw("rig1", "kernel.jsonl", b'{"t_wall_s": 5, "message": "NVRM: Xid"}\n')
    outcome = RigOutcome(boot_id_after="b", cuts=("20 s from 12:01",), left="idle", kernel_read=True)
    run.write_rig_outcome("rig1", outcome)
    readings = run.readings("rig1")
    assert readings.logs == {"gpu_burn.log": "100.0%  proc'd: 10 \ufffd\n"}
    assert readings.kernel[0].message == "NVRM: Xid"
    assert (readings.kernel_read, readings.cuts, readings.unreached) == (True, ("20 s from 12:01",), None)
    assert run.outcome("rig1") == outcome


def test_a_rig_without_an_outcome_was_not_measured_to_its_end(run: RunDir) -> None:
    readings = run.readings("rig1")
    assert "did not come to its end" in (readings.unreached or "")
    assert not readings.kernel_read


def test_commands_come_back_as_they_were_recorded(run: RunDir) -> None:
    reply = CommandReply(command="nvidia-smi -L", exit_status=9, stdout="NVIDIA-SMI has failed\n", stderr="")
    run.append_command("rig1", reply)
    assert run.commands("rig1") == (reply,)
    assert run.commands("rig2") == ()


def test_the_record_is_the_same_bytes_each_time(run: RunDir) -> None:
    path = run.write_record(record_of(run))
    first = path.read_bytes()
    again = RunDir.open(run.path.parent, run.run_id)
    again.write_record(again.read_record())
    assert path.read_bytes() == first
    assert b'"found": 61.0' in first


def test_a_record_damaged_absent_or_of_another_run_says_how_to_make_it_again(run: RunDir) -> None:
    with pytest.raises(UsageError, match="no record yet") as caught:
        run.read_record()
    assert f"rigctl judge {run.run_id}" in caught.value.hint
    path = run.write_record(record_of(run))
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(UsageError, match=r"record\.json is damaged") as caught:
        RunDir.open(run.path.parent, run.run_id)
    assert f"rigctl judge {run.run_id}" in caught.value.hint
    run.write_record(record_of(run).model_copy(update={"run_id": "2026-11-29T2300Z-0000"}))
    with pytest.raises(UsageError, match="is the record of run 2026-11-29T2300Z-0000"):
        run.read_record()


def test_run_json_of_a_later_schema_is_refused(run: RunDir) -> None:
    path = run.path / "run.json"
    path.write_text(path.read_text().replace('"schema_version": 1', '"schema_version": 2'))
    with pytest.raises(UsageError, match="schema_version"):
        RunDir.open(run.path.parent, run.run_id)


def test_canonical_json_has_one_form() -> None:
    assert dumps({"b": 0.1 + 0.2, "a": -0.0, "c": (1, 2.0)}, indent=None) == '{"a": 0.0, "b": 0.3, "c": [1, 2.0]}'
    assert dumps("\ud800") == '"?"'
    with pytest.raises(ValueError, match="nan"):
        dumps({"x": float("nan")})


def full_after(room: int) -> object:
    """A stand-in for os.write on a disk that has `room` bytes left."""
    real, left = os.write, [room]

    def write(handle: int, data: bytes) -> int:
        if left[0] == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        done = real(handle, bytes(data)[: left[0]])
        left[0] -= done
        return done

    return write


def test_a_full_disk_is_said_and_leaves_no_half_line(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    run.journal("one")
    before = (run.path / "journal.jsonl").read_bytes()
    monkeypatch.setattr("rigctl.store.files.os.write", full_after(7))
    with pytest.raises(RigctlError, match=r"no room left to write .*journal\.jsonl") as caught:
        run.journal("two")
    assert "--runs" in caught.value.hint
    assert (run.path / "journal.jsonl").read_bytes() == before


def test_a_full_disk_keeps_the_former_record(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    path = run.write_record(record_of(run))
    before = path.read_bytes()
    monkeypatch.setattr("rigctl.store.files.os.write", full_after(100))
    with pytest.raises(RigctlError, match="no room left"):
        run.write_record(record_of(run))
    assert path.read_bytes() == before
    assert sorted(p.name for p in run.path.iterdir()) == ["record.json", "run.json"]


def test_a_place_that_cannot_be_written_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file in the way")
    with pytest.raises(UsageError, match="cannot be written"):
        RunDir.create(tmp_path / "runs", "accept")


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "record.json"])
def test_a_rig_name_never_leaves_the_run_directory(run: RunDir, name: str) -> None:
    with pytest.raises(UsageError, match="a rig cannot be called"):
        run.append_raw(name, "telemetry.jsonl", b"")
