"""`rigctl upgrade` as people type it, over rigs in files: what it says, its exit codes, its JSON, bad input."""

from __future__ import annotations

import json
import re
import time

import pytest

from rigctl.cli.app import main
from rigctl.provision import ProvisionOutcome, ProvisionProgress
from rigctl.store import RunDir, list_runs

from .on_disk import DiskRig, Points, broken, change, in_place_of_rigs, look_at, new_park


@pytest.fixture
def park(tmp_path, monkeypatch):
    folder = new_park(tmp_path / "park", 3)
    for target, replacement in in_place_of_rigs(folder, Points()).items():
        monkeypatch.setattr(target, replacement)
    monkeypatch.setattr("rigctl.cli.upgrade.console.width", 200)
    return folder


def upgrade(park, *words):
    return main(["upgrade", *words, "-i", str(park / "inventory"), "--runs", str(park / "runs")])


def go(park, *words):
    return upgrade(park, "--driver", "535", "--settle-minutes", "0", *words)


def last_run(park):
    return RunDir.open(park / "runs", "latest", kind="upgrade")


def report(park, *words):
    return main(["report", *words, "--runs", str(park / "runs")])


# --- exit codes, JSON ---------------------------------------------------------------------------------------------


def test_0_every_rig_has_it(park, capsys):
    assert go(park) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert re.search(r"rig1 upgraded {2}0 s, 0\.\d s of it rigctl's own", said.err)
    assert "throughput.training[rig] 100 → 100 +0.0%" in said.err
    assert "2 packages changed" in said.err
    assert 'all rigs have it: set nvidia_driver_branch: "535" in group_vars/class_any' in said.err
    assert broken(park) == []


def test_0_json_says_the_whole_summary(park, capsys):
    assert go(park, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["exit_code"], told["wishes"], len(told["rigs"])) == (0, "driver 535", 3)
    rig = told["rigs"][0]
    assert (rig["end"]["rig"], rig["end"]["end"]) == ("rig1", "upgraded")
    assert rig["figures"] == [{"name": "throughput.training[rig]", "unit": "", "before": 100.0, "after": 100.0}]
    assert rig["packages"] == [
        {"name": "nvidia-driver-515", "before": "515", "after": ""},
        {"name": "nvidia-driver-535", "before": "", "after": "535"},
    ]
    assert rig["other_changes"] == ["the loaded driver was 515, is 535"]
    assert [one["state"] for one in rig["steps"]] == ["done"] * 10


def test_4_a_change_that_did_not_complete(park, capsys):
    change(park, "rig2", wrong="slower")
    assert go(park, "--canary", "rig1", "--json") == 4
    told = json.loads(capsys.readouterr().out)
    assert [rig["end"]["end"] for rig in told["rigs"]] == ["upgraded", "rolled_back", "not_begun"]
    assert told["exit_code"] == 4
    assert told["rigs"][1]["other_changes"] == []
    assert told["rigs"][1]["packages"] == []
    assert {one["step"]: one["state"] for one in told["rigs"][1]["steps"]}["verify"] == "failed"
    assert told["rigs"][1]["own_seconds"] is None
    (rate,) = told["rigs"][1]["figures"]
    assert (rate["before"], rate["after"]) == (100.0, 85.0)


def test_4_in_words(park, capsys):
    change(park, "rig1", wrong="never_comes_back")
    assert go(park, "--canary", "rig1") == 4
    said = capsys.readouterr().err
    assert "rig1 left drained" in said
    assert "do: " in said
    assert "rig2 not begun" in said


def test_130_json_after_ctrl_c(park, capsys, monkeypatch):
    def interrupted(_upgrade):
        raise KeyboardInterrupt

    monkeypatch.setattr("rigctl.upgrade.run.Upgrade.drive", interrupted)
    assert go(park, "--json") == 130
    told = json.loads(capsys.readouterr().out)
    assert told["exit_code"] == 130
    assert {rig["end"]["end"] for rig in told["rigs"]} == {"not_begun"}


# --- dry run, status, resume, abort -------------------------------------------------------------------------------


def test_a_dry_run_changes_nothing_and_makes_no_run(park, capsys):
    assert go(park, "--dry-run", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert [rig["gets"] for rig in told["rigs"]] == [{"driver": "535"}] * 3
    assert list_runs(park / "runs") == []
    assert {look_at(park, name).driver for name in ("rig1", "rig2", "rig3")} == {"515"}


def test_1_a_dry_run_of_a_rig_that_would_be_refused(park, capsys):
    change(park, "rig2", wrong="transaction")
    assert go(park, "--dry-run", "--json") == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["exit_code"], told["rigs"][1]["refusals"]) == (1, ["no source offers it"])


def test_3_a_dry_run_of_a_rig_that_cannot_be_asked(park, capsys):
    change(park, "rig3", reachable=False)
    assert go(park, "--dry-run", "--json") == 3
    told = json.loads(capsys.readouterr().out)
    assert (told["exit_code"], told["rigs"][2]["error"]) == (3, "rig3: no answer")
    assert go(park, "--dry-run") == 3
    assert "rig3 cannot be asked: rig3: no answer" in capsys.readouterr().err


def test_status_of_the_newest_and_of_a_named_run(park, capsys):
    change(park, "rig2", wrong="unfit_after")
    go(park, "--canary", "rig1")
    capsys.readouterr()
    assert upgrade(park, "--status", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert [(row["rig"], row["step"]) for row in told["rigs"]] == [
        ("rig1", "upgraded"), ("rig2", "rolled_back"), ("rig3", "waiting"),
    ]  # fmt: skip
    assert upgrade(park, last_run(park).run_id, "--status") == 0
    assert re.search(r"rig2 +rolled_back +not fit after the upgrade: NV3", capsys.readouterr().err)


def test_resume_goes_on_with_a_rig_that_was_left_drained(park, capsys):
    change(park, "rig1", wrong="never_comes_back")
    assert go(park, "--canary", "rig1") == 4
    change(park, "rig1", wrong="", reachable=True)
    capsys.readouterr()
    assert upgrade(park, "--resume", last_run(park).run_id, "--json") == 4
    told = json.loads(capsys.readouterr().out)
    assert told["rigs"][0]["end"]["end"] == "rolled_back"
    assert look_at(park, "rig1").driver == "515"


def test_abort_of_a_run_that_has_ended_changes_nothing(park, capsys):
    assert go(park) == 0
    assert upgrade(park, "--abort", last_run(park).run_id) == 0
    assert look_at(park, "rig1").driver == "535"


# --- bad input ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "error", "hint"),
    [
        ((), "nothing to upgrade to", "--driver 535"),
        (("--driver", "536"), "536", "535"),
        (("--driver", "five"), "'five' is no driver", "a branch such as 535"),
        (("--cuda", "12.99"), "12.99", "12."),
        (("--torch", "2.0.9"), "2.0.9", "2.0.1"),
        (("--kernel", "5.15"), "--kernel '5.15' is no kernel", "5.15.0-105-generic"),
        (("--driver", "535", "--canary", "rig9"), "--canary rig9 is not among the rigs", "rig1, rig2, rig3"),
        (("--driver", "535", "--max-unavailable", "0"), "no rig could be upgraded", "from 1 to 3"),
        (("--driver", "535", "--max-unavailable", "4"), "there are 3 rigs", "from 1 to 3"),
        (("--driver", "535", "--max-unavailable", "half"), "neither a number nor a percentage", "from 1 to 3"),
        (("--driver", "535", "--max-failures", "-1"), "--max-failures", "--help"),
        (("--dry-run", "--status"), "exclude each other", "give one of them"),
        (("--resume", "x", "--driver", "580"), "driver 580 cannot be given here", "leave it out"),
        (("--resume", "2026-11-30T2300Z-zzzz"), "there is no run", "runs"),
        (("--status",), "there is no run of kind upgrade", "runs"),
    ],
)
def test_2_wrong_words_are_one_error_and_one_hint_before_any_rig(park, capsys, words, error, hint):
    assert upgrade(park, *words) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("error: ")
    assert error in first
    assert second.startswith("hint: ")
    assert hint in second
    assert [look_at(park, name).done for name in ("rig1", "rig2", "rig3")] == [[], [], []]
    assert list_runs(park / "runs") == []


def test_2_rigs_of_different_classes(park, capsys, monkeypatch):
    for target, replacement in in_place_of_rigs(park, Points(), {"rig3": "other"}).items():
        monkeypatch.setattr(target, replacement)
    assert go(park) == 2
    assert "the rigs are of 2 classes: any, other" in capsys.readouterr().err
    assert go(park, "rig1,rig2") == 0


def test_2_a_run_of_another_kind_is_not_gone_on_with(park, capsys):
    other = RunDir.create(park / "runs", "provision")
    assert upgrade(park, "--resume", other.run_id) == 2
    assert "is of kind provision, not upgrade" in capsys.readouterr().err


# --- what is left behind is said ----------------------------------------------------------------------------------


@pytest.fixture
def left(park, monkeypatch):
    """A run whose controller died while it drained rig1."""

    class Died(BaseException):
        pass

    def dies(*_given):
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr("rigctl.upgrade.machine.Machine._in_use", dies)
        with pytest.raises(Died):
            go(park, "--canary", "rig1")
    return last_run(park).run_id


def sentence(run_id):
    return (
        f"upgrade {run_id} was left in the middle: rig1 at drain; `rigctl upgrade --resume {run_id}` goes on, "
        f"`rigctl upgrade --abort {run_id}` takes it back"
    )


def test_the_next_upgrade_says_it_and_is_refused_the_rig(park, left, capsys):
    assert go(park, "--canary", "rig1") == 4
    said = capsys.readouterr().err.splitlines()
    assert sentence(left) in said
    assert any(f"the rig is held by {left}" in line for line in said)
    assert upgrade(park, "--abort", left) == 4
    capsys.readouterr()
    assert go(park, "--canary", "rig1") == 0
    assert "left in the middle" not in capsys.readouterr().err


def test_status_says_it(park, left, capsys):
    assert upgrade(park, "--status") == 0
    said = capsys.readouterr().err
    assert re.search(r"rig1 +drain", said)
    assert re.search(r"rig2 +waiting", said)
    assert said.splitlines()[-1] == sentence(left)
    assert upgrade(park, "--status", "--json") == 0
    assert json.loads(capsys.readouterr().out)["driven"] is False


def test_accept_says_it(park, left, capsys, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    fleet = in_place_of_rigs(park, Points())["rigctl.upgrade.start.load_fleet"]
    monkeypatch.setattr("rigctl.inventory.load_fleet", fleet)
    monkeypatch.setattr("rigctl.accept.start_run", lambda _options: RunDir.create(park / "other", "accept"))
    monkeypatch.setattr("rigctl.accept.carry_out", interrupted)
    assert main(["accept", "--runs", str(park / "runs")]) == 130
    assert capsys.readouterr().err.splitlines()[0] == sentence(left)
    assert main(["accept", "rig2", "--runs", str(park / "runs")]) == 130
    assert "left in the middle" not in capsys.readouterr().err


def test_provision_says_it(park, left, capsys, monkeypatch):
    def attempt(_options, watch):
        watch(ProvisionProgress(["rig1", "rig2"]))
        return ProvisionOutcome(run_id="x", path=str(park), check=False, seconds=0, rigs=())

    monkeypatch.setattr("rigctl.provision.attempt", attempt)
    main(["provision", "--runs", str(park / "runs")])
    assert capsys.readouterr().err.splitlines()[0] == sentence(left)


# --- the report ---------------------------------------------------------------------------------------------------


def test_the_page_lies_in_the_run_directory_and_can_be_made_again(park, capsys):
    change(park, "rig2", wrong="slower")
    go(park, "--canary", "rig1")
    run = last_run(park)
    page = (run.path / "report.html").read_text()
    assert "driver 535: 1 of 3 rigs have it, 1 rolled back, 1 not begun" in page
    assert "throughput.training[rig]" in page
    assert "nvidia-driver-535" in page
    assert "http:" not in page
    assert "https:" not in page
    (run.path / "report.html").unlink()
    capsys.readouterr()
    assert report(park, run.run_id) == 0
    assert capsys.readouterr().out == f"{run.path / 'report.html'}\n"
    assert (run.path / "report.html").read_text() == page


def test_the_report_as_text_and_as_json(park, capsys):
    go(park)
    run = last_run(park)
    capsys.readouterr()
    assert report(park, run.run_id, "--format", "md") == 0
    text = capsys.readouterr().out
    assert text.startswith("# driver 535: 3 of 3 rigs have it\n")
    assert "| throughput.training[rig] | 100 | 100 | +0.0% |" in text
    assert "| nvidia-driver-515 | 515 | — |" in text
    assert report(park, run.run_id, "--format", "json") == 0
    told = json.loads(capsys.readouterr().out)
    assert [rig["end"]["end"] for rig in told["rigs"]] == ["upgraded"] * 3
    for form in ("csv", "junit"):
        assert report(park, run.run_id, "--format", form) == 2
        assert f"no report of the form {form}" in capsys.readouterr().err


def test_text_of_a_rig_is_harmless_in_the_page(park):
    change(park, "rig1", cards=("GPU-a", "GPU-<script>"), wrong="card_gone")
    go(park, "rig1")
    page = (last_run(park).path / "report.html").read_text()
    assert "GPU-&lt;script&gt; at root1 is gone" in page
    assert "<script>" not in page


# --- what is seen meanwhile ----------------------------------------------------------------------------------------


def test_lines_say_the_step_what_is_waited_for_and_the_role(park, capsys, monkeypatch):
    monkeypatch.setattr("rigctl.upgrade.show.REFRESH_HZ", 200)
    heard = []
    wanted = {"jobs": "rig1: drain · waits for job 7 of ada", "seen": "rig1: verify · cuda"}
    call_through = DiskRig._call

    def slowly(rig, call, given, named):
        """Go on once the line of this call was written."""
        done = call_through(rig, call, given, named)
        if call in wanted and (call != "jobs" or not done):
            hear(capsys, heard, wanted[call])
        return done

    change(park, "rig1", work=["job 7 of ada"] * 3)
    monkeypatch.setattr(DiskRig, "_call", slowly)
    assert go(park, "rig1") == 0


def hear(capsys, heard, words):
    deadline = time.monotonic() + 60
    while not any(words in text for text in heard):
        assert time.monotonic() < deadline, heard
        heard.append(capsys.readouterr().err)
        time.sleep(0.005)
