"""The index says what the run directories say, whatever becomes of them, in SQLite and in PostgreSQL."""

from __future__ import annotations

import json
import shutil
import threading
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import create_engine, text

from rigctl.errors import RigctlError, UsageError
from rigctl.model.verdict import BusyRig, Verdict
from rigctl.store import RunDir
from rigctl.store.index import Index
from rigctl.store.index.tables import HEAD
from tests.report.build_run import UUIDS, build_run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    folder = tmp_path / "runs"
    build_run(folder, unreached=True)
    return folder


def only(runs: Path) -> RunDir:
    return RunDir(next(path for path in sorted(runs.iterdir()) if path.is_dir()))


def test_it_knows_each_rig_of_each_run(runs: Path, index_url: str | None) -> None:
    with Index.open(runs, index_url) as index:
        done = index.update()
        assert (len(done.added), done.changed, done.removed, done.unreadable) == (1, (), (), ())
        assert index.rigs() == ("rig1", "rig2", "rig3")
        well, bad, away = index.pasts()
        record = only(runs).read_record()
        assert [one.verdict for one in (well, bad, away)] == [rig.verdict for rig in record.rigs]
        assert (well.accepted, bad.accepted, away.accepted) == (True, False, False)
        assert (well.run_id, well.profile, well.burnt) == (record.run_id, "smoke", True)
        assert [card.uuid for card in well.parts.cards] == list(UUIDS["rig1"])
        assert [card.slot for card in well.parts.cards] == ["slot1", "slot2"]
        assert (well.parts.driver, len(well.parts.spec)) == ("515.105.01", 16)
        assert [cause.check for cause in bad.causes] == [cause.check for cause in record.rigs[1].causes]
        assert index.newest("rig2") == bad
        assert index.newest("rig9") is None


def test_its_figures_are_those_of_the_verdicts(runs: Path, index_url: str | None) -> None:
    with Index.open(runs, index_url) as index:
        index.update()
        points = index.points("rig2", "thermals.settled_gpu_temp")
        record = only(runs).read_record()
        verdicts = [one for one in record.rigs[1].verdicts if one.check == "thermals.settled_gpu_temp"]
        assert [(one.subject, one.found, one.verdict, one.limit) for one in points] == [
            (one.subject, one.found, one.verdict, one.expected) for one in sorted(verdicts, key=lambda v: v.subject)
        ]
        assert [(one.slot, one.uuid) for one in points] == [
            ("slot1", UUIDS["rig2"][0]),
            ("slot2", UUIDS["rig2"][1]),
        ]
        assert {one.verdict for one in points} == {Verdict.PASS, Verdict.FAIL}
        assert len(index.points("rig2")) > len(points)
        assert index.points("rig9") == ()


def test_nothing_new_is_nothing_done(runs: Path, index_url: str | None) -> None:
    with Index.open(runs, index_url) as index:
        index.update()
        again = index.update()
        assert (again.added, again.changed, again.removed, again.unreadable) == ((), (), (), ())
        before = index.pasts()
        assert len(index.rebuild().added) == 1
        assert index.pasts() == before


def test_a_changed_record_and_a_run_that_is_gone(runs: Path, index_url: str | None) -> None:
    with Index.open(runs, index_url) as index:
        index.update()
        run = only(runs)
        record = run.read_record()
        run.write_record(record.model_copy(update={"rigs": record.rigs[:1]}))
        assert index.update().changed == (run.path.name,)
        assert index.rigs() == ("rig1",)
        shutil.rmtree(run.path)
        assert index.update().removed == (run.path.name,)
        assert index.pasts() == ()
        assert index.points("rig1") == ()


@pytest.mark.parametrize("name", ["record.json", "run.json"])
def test_what_was_written_into_a_file_is_noticed_though_its_folder_is_as_before(
    runs: Path, index_url: str | None, name: str
) -> None:
    run = only(runs)
    before = run.path.stat().st_mtime_ns
    path = run.path / name
    with Index.open(runs, index_url) as index:
        index.update()
        data = path.read_bytes()
        changed = data.replace(b'"dual_3090ti"', b'"dual_3090xx"')
        assert (changed != data, len(changed)) == (True, len(data))
        with path.open("r+b") as file:
            file.write(changed)
        assert run.path.stat().st_mtime_ns == before
        assert index.update().changed == (run.path.name,)
        assert index.update().changed == ()
        assert {one.rig_class for one in index.pasts()} == {"dual_3090xx" if name == "record.json" else "dual_3090ti"}


def test_what_was_written_into_other_files_only_a_rebuild_reads(runs: Path, index_url: str | None) -> None:
    path = only(runs).path / "rig1" / "facts.json"
    with Index.open(runs, index_url) as index:
        index.update()
        path.write_bytes(path.read_bytes().replace(b"515.105.01", b"515.105.02"))
        assert index.update().changed == ()
        assert index.pasts("rig1")[0].parts.driver == "515.105.01"
        assert index.rebuild().added == (only(runs).path.name,)
        assert index.pasts("rig1")[0].parts.driver == "515.105.02"


def test_a_run_without_a_record_is_taken_in_once_it_has_one(runs: Path, index_url: str | None) -> None:
    run = only(runs)
    record = (run.path / "record.json").read_bytes()
    (run.path / "record.json").unlink()
    with Index.open(runs, index_url) as index:
        assert index.update().added == (run.path.name,)
        assert index.pasts() == ()
        (run.path / "record.json").write_bytes(record)
        index.update()
        assert len(index.pasts()) == 3


def test_a_half_copied_run_is_named_and_tried_again(runs: Path, index_url: str | None) -> None:
    run = only(runs)
    record = (run.path / "record.json").read_bytes()
    (run.path / "record.json").write_bytes(record[: len(record) // 2])
    with Index.open(runs, index_url) as index:
        ((name, why),) = index.update().unreadable
        assert name == run.path.name
        assert "record.json" in why
        with (run.path / "record.json").open("r+b") as file:  # the copy goes on; its folder's time stays
            file.write(record)
        assert index.update().unreadable == ()
        assert len(index.pasts()) == 3


def test_limits_of_time_and_number(runs: Path, index_url: str | None) -> None:
    shutil.copytree(only(runs).path, runs / "2027-01-02T0000Z-0001")
    for name in ("run.json", "record.json"):
        path = runs / "2027-01-02T0000Z-0001" / name
        changed = json.loads(path.read_text(encoding="utf-8")) | {"run_id": "2027-01-02T0000Z-0001"}
        if name == "record.json":
            changed["ended_at"] = "2027-01-02T00:30:00Z"
        path.write_text(json.dumps(changed), encoding="utf-8")
    with Index.open(runs, index_url) as index:
        index.update()
        assert [one.ended_at[:10] for one in index.pasts("rig1")] == ["2026-11-30", "2027-01-02"]
        assert [one.ended_at[:4] for one in index.pasts("rig1", since="2027")] == ["2027"]
        assert [one.ended_at[:4] for one in index.pasts("rig1", until="2026-11-30")] == ["2026"]
        assert [one.ended_at[:4] for one in index.pasts("rig1", limit=1)] == ["2027"]
        assert index.pasts("rig1", kinds=("check",)) == ()
        assert {one.ended_at[:4] for one in index.points("rig1", since="2027")} == {"2027"}


def test_the_newest_of_each_rig_is_that_with_a_verdict(runs: Path, index_url: str | None) -> None:
    first = only(runs)
    later = build_run(runs)
    record = later.read_record()
    busy = BusyRig(name="rig2", rig_class="dual_3090ti", users="alice")
    new = BusyRig(name="rig8", rig_class="dual_3090ti", users="bob")
    ended = "2027-01-02T00:30:00Z"
    later.write_record(record.model_copy(update={"rigs": record.rigs[:1], "busy": (busy, new), "ended_at": ended}))
    with Index.open(runs, index_url) as index:
        index.update()
        found = {cell.rig: (cell.folder, cell.verdict, cell.here) for cell in index.newest_cells()}
    assert found == {
        "rig1": (later.path.name, record.rigs[0].verdict, True),
        "rig2": (first.path.name, Verdict.FAIL, True),
        "rig3": (first.path.name, Verdict.ERROR, True),
        "rig8": (later.path.name, None, True),
    }


def test_two_at_once_find_the_same(runs: Path, index_url: str | None) -> None:
    for number in range(1, 6):
        build_run(runs, faulty=bool(number % 2))
    failed: list[BaseException] = []

    def work() -> None:
        try:
            with Index.open(runs, index_url) as index:
                index.update()
        except BaseException as error:  # noqa: BLE001 - told below
            failed.append(error)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert failed == []
    with Index.open(runs, index_url) as index:
        assert len(index.pasts("rig1")) == 6


def test_an_index_of_a_newer_version_is_refused(runs: Path, index_url: str | None) -> None:
    Index.open(runs, index_url).close()
    engine = create_engine((index_url or f"sqlite:///{runs / 'index.sqlite'}").replace("gresql:", "gresql+psycopg:"))
    with engine.begin() as asked:
        asked.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    with pytest.raises(UsageError, match=f"newer version \\(9999\\) than this rigctl knows \\({HEAD}\\)"):
        Index.open(runs, index_url)


def test_an_index_of_an_older_version_reads_its_runs_again(runs: Path, index_url: str | None) -> None:
    with Index.open(runs, index_url) as index:
        index.update()
        before = index.pasts()
    engine = create_engine((index_url or f"sqlite:///{runs / 'index.sqlite'}").replace("gresql:", "gresql+psycopg:"))
    with engine.begin() as asked:
        asked.execute(text("UPDATE alembic_version SET version_num = '0001'"))
    engine.dispose()
    with Index.open(runs, index_url) as index:
        assert index.pasts() == before, "the old rows serve until then"
        assert index.update().changed == (only(runs).path.name,)
        assert index.update().changed == ()


def test_a_damaged_file_says_what_to_do(runs: Path) -> None:
    (runs / "index.sqlite").write_bytes(b"this is no database" * 100)
    with pytest.raises(RigctlError, match="not a database") as refused:
        Index.open(runs)
    assert "delete the file" in refused.value.hint


@pytest.mark.parametrize("url", ["nonsense", "oracle9://x/y", "postgresql://nobody@127.0.0.1:1/none"])
def test_a_wrong_url_is_said_without_its_password(runs: Path, url: str) -> None:
    with pytest.raises(RigctlError) as refused:
        Index.open(runs, url)
    assert refused.value.hint


def test_controllers_that_share_a_database_leave_each_others_runs_alone(tmp_path: Path, postgresql: str) -> None:
    for name in ("one", "two"):
        build_run(tmp_path / name)
        with Index.open(tmp_path / name, postgresql) as index:
            assert index.update().removed == ()
    with Index.open(tmp_path / "one", postgresql) as index:
        assert len(index.pasts("rig1")) == 2
        assert index.rebuild().removed == ()
        assert len(index.pasts("rig1")) == 2


def test_an_index_is_no_run(runs: Path) -> None:
    Index.open(runs).close()
    with Index.open(runs) as index:
        assert len(index.update().added) == 1
