"""Retention: what goes by age, what is kept in spite of it, and that nothing is lost when it is killed."""

from __future__ import annotations

import fcntl
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rigctl import accept
from rigctl.certificate import create
from rigctl.errors import UsageError
from rigctl.judge import judge_run
from rigctl.model.decision import BaselineDecision
from rigctl.model.pruned import Retention
from rigctl.model.upgrade import Step
from rigctl.prune import carry_out, choose, prune
from rigctl.store import RunDir
from rigctl.store.decisions import append_decisions
from rigctl.store.driving import driven_by_me
from rigctl.store.index import Index
from rigctl.store.pruned import PACKED, THINNED, read_pruned, said_of, telemetry_state
from rigctl.store.thinning import thinned
from tests.certificate.test_certificate import make_key
from tests.prune.old_runs import NONE, files, old_run

if TYPE_CHECKING:
    from rigctl.prune import Outcome

NOW = datetime(2026, 12, 20, 6, 0, tzinfo=UTC)
KEPT = Retention(whole_days=30, thin_days=365)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A folder whose newest run is a day old: that one is every rig's baseline."""
    folder = tmp_path / "runs"
    old_run(folder, 1, now=NOW)
    return folder


def go(runs: Path, retention: Retention = KEPT, certificates: Path = NONE, **more: Any) -> Outcome:
    return prune(runs, retention, certificates, NOW, **more)


def whole(run: RunDir) -> bool:
    return all(telemetry_state(run.path, rig, read_pruned(run.path))[0] == "whole" for rig in ("rig1", "rig2"))


# --- what goes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("days", "state"),
    [(29.9, "whole"), (30.1, "thinned"), (364.9, "thinned"), (365.1, "dropped")],
)
def test_by_age(runs: Path, days: float, state: str) -> None:
    run = old_run(runs, days, now=NOW)
    go(runs)
    assert {telemetry_state(run.path, rig, read_pruned(run.path))[0] for rig in ("rig1", "rig2")} == {state}


def test_thinned_telemetry_is_what_thinning_leaves_and_everything_else_stays(runs: Path) -> None:
    run = old_run(runs, 40, now=NOW)
    samples, before = run.readings("rig1").samples, files(run.path)
    done = {one.what: one for one in go(runs).done}
    assert set(done) == {"rig1", "rig2"}
    assert run.readings("rig1").samples == thinned(samples)
    after = files(run.path)
    gone = {f"{rig}/{PACKED}" for rig in ("rig1", "rig2")}
    assert set(before) - set(after) == gone
    assert set(after) - set(before) == {"pruned.json", *(f"{rig}/{THINNED}" for rig in ("rig1", "rig2"))}
    assert {name: data for name, data in after.items() if name in before} == {
        name: data for name, data in before.items() if name not in gone
    }
    assert (done["rig1"].bytes_before, done["rig1"].bytes_after) == (
        len(before[f"rig1/{PACKED}"]), len(after[f"rig1/{THINNED}"]),
    )  # fmt: skip
    assert done["rig1"].bytes_after < done["rig1"].bytes_before / 2


def test_what_was_done_stands_in_the_run(runs: Path) -> None:
    run = old_run(runs, 40, now=NOW)
    taken = len(run.readings("rig1").samples)
    go(runs)
    first = read_pruned(run.path)
    assert first is not None
    said = first.telemetry["rig1"]
    assert (said.state, said.at, said.samples_before) == ("thinned", "2026-12-20T06:00:00Z", taken)
    prune(runs, KEPT, NONE, NOW + timedelta(days=340))
    then = read_pruned(run.path)
    assert then is not None
    assert then.telemetry["rig1"].state == "dropped"
    assert (then.telemetry["rig1"].bytes_before, then.telemetry["rig1"].bytes_after) == (said.bytes_before, 0)
    assert run.readings("rig1").samples == ()
    assert run.readings("rig1").facts is not None


def test_a_second_time_nothing_is_done(runs: Path) -> None:
    old_run(runs, 40, now=NOW)
    old_run(runs, 400, now=NOW)
    assert go(runs).freed > 0
    before = files(runs)
    assert go(runs).done == ()
    assert files(runs) == before


def test_runs_too_short_to_thin_stay_whole_and_can_be_judged(runs: Path) -> None:
    run = old_run(runs, 40, now=NOW, hours=0.01)
    assert go(runs).done == ()
    assert whole(run)
    said = read_pruned(run.path)
    assert said is not None
    assert {one.state for one in said.telemetry.values()} == {"whole"}
    judge_run(run)
    assert go(runs).done == ()


def test_a_dry_run_says_the_same_and_writes_nothing(runs: Path) -> None:
    old_run(runs, 40, now=NOW)
    old_run(runs, 400, now=NOW)
    before = files(runs)
    foreseen = go(runs, dry_run=True)
    assert files(runs) == before
    assert not (runs / carry_out.LOCK).exists()
    assert foreseen.done == go(runs).done
    assert foreseen.freed == sum(map(len, before.values())) - sum(
        len(data) for name, data in files(runs).items() if not name.endswith("pruned.json")
    )


def test_pages_go_only_where_that_is_asked_for(runs: Path) -> None:
    run = old_run(runs, 40, now=NOW)
    (run.path / "report.html").write_text("page", encoding="utf-8")
    go(runs)
    assert (run.path / "report.html").exists()
    (done,) = go(runs, Retention(pages=True)).done
    assert (done.what, done.bytes_before, done.bytes_after) == ("report.html", 4, 0)
    assert not (run.path / "report.html").exists()
    said = read_pruned(run.path)
    assert said is not None
    assert said.page is not None
    assert said.telemetry["rig1"].state == "thinned", "what was said before still stands"


def test_telemetry_that_lies_deeper_goes_too_but_not_what_people_put_there(runs: Path) -> None:
    run = old_run(runs, 400, now=NOW)
    aside, own = run.path / "rig1" / "set_aside" / "1", run.path / ".acceptance" / "1"
    for folder in (aside, own):
        folder.mkdir(parents=True)
        (folder / PACKED).write_bytes((run.path / "rig1" / PACKED).read_bytes())
    assert {one.what for one in go(runs).done} == {"rig1", "rig1/set_aside/1", "rig2"}
    assert not (aside / PACKED).exists()
    assert (own / PACKED).exists()


# --- what is kept -------------------------------------------------------------------------------------------------


def why_kept(runs: Path, run: RunDir, certificates: Path = NONE) -> str:
    """Why nothing of an old run was touched."""
    before = files(run.path)
    outcome = go(runs, certificates=certificates)
    assert files(run.path) == before
    return next(one.why for one in outcome.kept if one.folder == run.path.name)


def test_the_newest_accepted_run_of_a_rig_stays_whole(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    run = old_run(runs, 400, now=NOW)
    older = old_run(runs, 500, now=NOW)
    assert why_kept(runs, run) in {"the baseline of rig1", "the baseline of rig2"}
    assert not whole(older)


def test_the_newest_acceptance_stays_whole_whatever_its_verdict(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    accepted, failed = old_run(runs, 400, now=NOW), old_run(runs, 300, now=NOW, faulty=True)
    assert why_kept(runs, failed) in {"the baseline of rig1", "the newest acceptance of rig2"}
    assert whole(accepted), "rig2 was accepted there last"


def test_what_people_accepted_as_the_baseline_stays_whole(runs: Path) -> None:
    run = old_run(runs, 400, now=NOW, faulty=True)
    decision = BaselineDecision(
        action="accept", rig="rig2", at="2025-12-01T00:00:00Z", who="jo", reason="new pump", run=run.run_id,
        run_ended_at=run.read_record().ended_at,
    )  # fmt: skip
    append_decisions(runs, [decision])
    assert why_kept(runs, run) == "people accepted it as the baseline of rig2"


def test_a_certified_run_stays_whole_and_its_certificate_valid(runs: Path, tmp_path: Path) -> None:
    run, other = old_run(runs, 400, now=NOW), old_run(runs, 400, now=NOW)
    made = create(runs, "rig1", run.run_id, make_key(tmp_path / "key"), tmp_path / "certificates")
    assert why_kept(runs, run, tmp_path / "certificates") == f"certificate {made.files[0].name} rests on it"
    assert not whole(other)


def test_a_damaged_certificate_counts_by_its_name(runs: Path, tmp_path: Path) -> None:
    run = old_run(runs, 400, now=NOW)
    (tmp_path / f"certificate-rig1-{run.run_id}.json").write_text("{", encoding="utf-8")
    assert "rests on it" in why_kept(runs, run, tmp_path)


def test_a_run_that_was_left_unfinished_is_not_touched(runs: Path) -> None:
    run = old_run(runs, 400, now=NOW)
    journal = run.path / "journal.jsonl"
    journal.write_bytes(journal.read_bytes().splitlines(keepends=True)[0])
    assert why_kept(runs, run) == "it was left unfinished"


def test_a_run_without_a_record_is_not_touched(runs: Path) -> None:
    run = old_run(runs, 400, now=NOW)
    (run.path / "record.json").unlink()
    before = files(run.path)
    assert go(runs).done == ()
    assert files(run.path) == before


def test_a_run_that_somebody_drives_is_not_touched(runs: Path) -> None:
    run = old_run(runs, 400, now=NOW)
    with driven_by_me(run.path, "jo"):
        assert why_kept(runs, run) == "it is under way"


def test_acceptances_of_an_unfinished_upgrade_stay_whole(runs: Path) -> None:
    run = old_run(runs, 400, now=NOW)
    upgrade = RunDir.create(runs, "upgrade", now=NOW)
    with driven_by_me(upgrade.path, "jo"):
        pass  # its controller died
    upgrade.journal("step_started", rig="rig1", step=Step.BEFORE.value)
    upgrade.journal("measured", rig="rig1", label="before", accepted=True, run_id=run.run_id)
    assert why_kept(runs, run) == f"upgrade {upgrade.run_id} is not finished and judges by it"
    upgrade.journal("rig_ended", rig="rig1", end={"rig": "rig1", "end": "upgraded"})
    go(runs)
    assert not whole(run)


def test_the_word_for_a_finished_run_is_the_acceptances_own() -> None:
    assert choose.FINISHED == accept.FINISHED


# --- damage -------------------------------------------------------------------------------------------------------


def test_damaged_telemetry_is_named_and_left_and_the_others_go_on(runs: Path) -> None:
    bad, good = old_run(runs, 40, now=NOW), old_run(runs, 41, now=NOW)
    packed = bad.path / "rig2" / PACKED
    packed.write_bytes(packed.read_bytes()[:1000])
    before = files(bad.path)
    outcome = go(runs)
    assert [one.folder for one in outcome.left_out] == [bad.path.name]
    assert PACKED in outcome.left_out[0].why
    assert files(bad.path) == before
    assert not whole(good)


def test_a_damaged_run_or_note_is_named_and_left(runs: Path) -> None:
    no_record, no_note = old_run(runs, 400, now=NOW), old_run(runs, 400, now=NOW)
    (no_record.path / "record.json").write_text("{", encoding="utf-8")
    (no_note.path / "pruned.json").write_text("{", encoding="utf-8")
    assert {one.folder for one in go(runs).left_out} == {no_record.path.name, no_note.path.name}
    assert whole(no_record)
    assert (no_note.path / "rig1" / PACKED).exists()


def test_only_one_at_a_time(runs: Path) -> None:
    with (runs / carry_out.LOCK).open("a", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match="by another process"):
            go(runs)
        go(runs, dry_run=True)


def test_no_folder_of_runs(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no folder of runs"):
        go(tmp_path / "absent")


# --- killed -------------------------------------------------------------------------------------------------------


class Killed(BaseException):
    """What `kill -9` is to a test."""


def killed_at(number: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Die before the so-many-th change on the disk; returns what was done until then."""
    passed: list[str] = []

    def dying(what: str, work: Any) -> Any:
        def wrapped(*args: Any, **more: Any) -> Any:
            if len(passed) == number:
                raise Killed
            passed.append(what)
            return work(*args, **more)

        return wrapped

    monkeypatch.setattr(carry_out, "replace_durably", dying("write", carry_out.replace_durably))
    monkeypatch.setattr(carry_out, "fsync_dir", dying("fsync", carry_out.fsync_dir))
    monkeypatch.setattr(Path, "unlink", dying("unlink", Path.unlink))
    return passed


@pytest.mark.parametrize("days", [40, 400])
def test_killed_at_any_moment_nothing_is_lost_and_the_next_one_finishes(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, days: int
) -> None:
    run = old_run(runs, days, now=NOW)
    before, samples = files(run.path), run.readings("rig1").samples
    go(runs)
    after = files(run.path)
    for number in range(30):
        for name in files(run.path):
            (run.path / name).unlink()
        for name, data in before.items():
            (run.path / name).write_bytes(data)
        with monkeypatch.context() as patch:
            passed = killed_at(number, patch)
            try:
                go(runs)
            except Killed:
                assert len(passed) == number
            else:
                break
        state, _ = telemetry_state(run.path, "rig1", read_pruned(run.path))
        left = {"whole": samples, "thinned": thinned(samples), "dropped": ()}[state]
        assert run.readings("rig1").samples == left
        assert bool(said_of(run.path, "rig1")) == (state != "whole")
        go(runs)
        assert files(run.path) == after
    else:
        pytest.fail("it never came to its end")
    assert number > 5


def test_drafts_of_a_killed_pruning_are_cleared(runs: Path) -> None:
    run = old_run(runs, 40, now=NOW)
    draft = run.path / "rig1" / f".{THINNED}.4711.tmp"
    draft.write_bytes(b"half")
    go(runs)
    assert not draft.exists()


# --- afterwards ---------------------------------------------------------------------------------------------------


def test_the_index_sees_that_a_run_has_changed_and_knows_the_same_of_it(runs: Path) -> None:
    run = old_run(runs, 40, now=NOW)
    with Index.open(runs) as index:
        index.update()
        stamps, pasts, points = index.stamps(), index.pasts(), index.points("rig1")
    go(runs)
    with Index.open(runs) as index:
        assert index.update().changed == (), "brought up to date by the pruning itself"
        assert [name for name, stamp in index.stamps().items() if stamp != stamps[name]] == [run.path.name]
        assert (index.pasts(), index.points("rig1")) == (pasts, points)


@pytest.mark.parametrize(("days", "word"), [(40, "thinned"), (400, "dropped")])
def test_a_pruned_run_is_not_judged(runs: Path, days: int, word: str) -> None:
    run = old_run(runs, days, now=NOW)
    go(runs)
    with pytest.raises(UsageError, match=f"telemetry of rig1 was {word} on 2026-12-20") as refused:
        judge_run(run)
    assert f"rigctl report {run.run_id}" in refused.value.hint


def test_telemetry_from_a_backup_can_be_judged_again(runs: Path) -> None:
    run = old_run(runs, 400, now=NOW)
    kept = {rig: (run.path / rig / PACKED).read_bytes() for rig in ("rig1", "rig2")}
    record = judge_run(run)
    go(runs)
    for rig, data in kept.items():
        (run.path / rig / PACKED).write_bytes(data)
    assert judge_run(run) == record


def test_lost_without_pruning_is_no_pruning(runs: Path) -> None:
    """A file that went another way is no reason to refuse: the checks themselves say that nothing was measured."""
    run = old_run(runs, 5, now=NOW)
    (run.path / "rig1" / PACKED).unlink()
    record = judge_run(run)
    assert any(one.verdict.value == "error" for one in record.rigs[0].verdicts)


def test_pruned_json_is_for_people_too(runs: Path) -> None:
    run = old_run(runs, 40, now=NOW)
    go(runs)
    told = json.loads((run.path / "pruned.json").read_bytes())
    assert set(told["telemetry"]["rig1"]) >= {"state", "at", "bytes_before", "bytes_after", "samples_before"}
