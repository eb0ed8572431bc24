"""Drains on a real Slurm: what it says, what it lets be, and a whole upgrade with its jobs and nodes."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from rigctl import sim
from rigctl.errors import CommandFailed
from rigctl.model.upgrade import UNDO, End, Pace, Step, Wishes
from rigctl.store import RunDir
from rigctl.upgrade.dry_run import plan_rig
from rigctl.upgrade.journal import STARTED
from rigctl.upgrade.machine import Machine, Rules
from rigctl.upgrade.port import StepFailed
from rigctl.upgrade.run import Upgrade

from .cluster import RIG_OF, install, wait_for
from .park import FakeRig, new_run

pytestmark = [pytest.mark.rigs, pytest.mark.slow]
REASON = "rigctl 2026-11-30T2300Z-7f3a: driver 535, cuda 12.2"
OURS = "rigctl "
GONE = "slurm_load_node error: Unable to contact slurm controller (connect failure)"
RIGCTL = Path(sys.executable).parent / "rigctl"


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    folder = tmp_path_factory.mktemp("slurm")
    state = sim.up(sim.UpOptions(count=2, directory=folder / "state", training=False))
    try:
        yield install(state, folder / "packages")
    finally:
        sim.down(state.directory)


@pytest.fixture
def cluster(running):
    yield running
    running.tidy()


def test_a_job_that_runs_ends_first_and_a_new_one_waits(cluster):
    drain = cluster.drain_of("rig2")
    running = cluster.submit("rig2")
    wait_for(lambda: cluster.state_of_job(running) == "RUNNING")
    assert (drain.drain(REASON), cluster.seen("rig2")) == ("", ("allocated+drain", REASON))
    later = cluster.submit("rig2")
    (told,) = drain.jobs()
    assert told.startswith(f"job {running} of ops (running, ")
    assert drain.drain(REASON) == ""  # as a controller does that goes on
    cluster.end("rig2")
    wait_for(lambda: drain.jobs() == ())
    assert cluster.seen("rig2") == ("idle+drain", REASON)
    assert cluster.state_of_job(later) == "PENDING"
    assert drain.resume(REASON)
    wait_for(lambda: cluster.state_of_job(later) == "COMPLETED")
    assert not drain.resume(REASON)


@pytest.mark.parametrize(
    "reason",
    ["ada: cable State=IDLE Reason=none", "Comment=x [ada@2026-11-30]", "rigctl 2026-11-29T2300Z-1111: driver"],
)
def test_a_drain_of_others_is_told_and_stays(cluster, reason):
    drain = cluster.drain_of("rig3")
    cluster.set("rig3", "State=DRAIN", f"Reason={reason}")
    cluster.set("rig3", "Comment=State=IDLE Reason=none")
    try:
        assert (drain.look(), drain.drain(REASON)) == (reason, reason)
        assert not drain.resume(REASON)
        assert cluster.seen("rig3") == ("idle+drain", reason)
    finally:
        cluster.set("rig3", "Comment=")


def test_a_drain_that_others_have_made_theirs_stays(cluster):
    drain = cluster.drain_of("rig2")
    drain.drain(REASON)
    cluster.set("rig2", "Reason=ada: do not give it back")
    assert not drain.resume(REASON)
    assert cluster.seen("rig2") == ("idle+drain", "ada: do not give it back")


def test_a_drain_outlives_a_restart_of_the_rig(cluster):
    drain = cluster.drain_of("rig2")
    drain.drain(REASON)
    cluster.restart("rig2")
    state, reason = cluster.seen("rig2")
    assert ("drain" in state, reason) == (True, REASON)
    assert drain.resume(REASON)
    assert cluster.seen("rig2") == ("idle", "none")


def test_a_node_that_is_down_is_refused_and_left_so(cluster):
    drain = cluster.drain_of("rig3")
    cluster.set("rig3", "State=DOWN", "Reason=ada: fan")
    for call in (drain.look, lambda: drain.drain(REASON)):
        with pytest.raises(StepFailed, match="Slurm has rig3 as down: ada: fan") as caught:
            call()
        assert "State=DRAIN" in caught.value.hint
    assert not drain.resume(REASON)
    assert cluster.seen("rig3") == ("down", "ada: fan")


def test_a_rig_that_slurm_does_not_know(cluster):
    drain = cluster.drain_of("rig9", on="rig1")
    with pytest.raises(CommandFailed, match="rig9: scontrol: Node rig9 not found"):
        drain.look()
    with pytest.raises(CommandFailed, match="Invalid node name rig9"):
        drain.jobs()


def test_a_controller_that_is_gone_is_met_before_anything_is_done(cluster, tmp_path):
    rig, run = FakeRig("rig2"), new_run(tmp_path)
    run.rig_path("rig2")
    machine = machine_of(cluster, rig, run)
    cluster.controller("stop")
    try:
        ended = machine.advance()
        with pytest.raises(CommandFailed, match="Unable to contact slurm controller") as caught:
            plan_rig(rig, machine.drain, Wishes(driver="535"))
    finally:
        cluster.controller("start")
    assert (ended.end, ended.step) == (End.REFUSED, Step.PREFLIGHT)
    assert "Unable to contact slurm controller" in ended.reason
    assert "scontrol ping" in ended.hint
    assert "scontrol ping" in caught.value.hint
    assert rig.done == ["plan"]  # of the dry run


def test_the_command_asks_the_scheduler_that_the_inventory_names(cluster, tmp_path):
    settings = cluster.state.inventory / "host_vars" / "rig1" / "drain.yml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text("rig_drain: {kind: slurm}\nnvidia_driver_source: auto\n", encoding="utf-8")
    job = cluster.submit("rig1")
    wait_for(lambda: cluster.state_of_job(job) == "RUNNING")
    cluster.set("rig1", "State=DRAIN", "Reason=ada: cable")
    (plan,) = rigctl(cluster, tmp_path, "--dry-run")[1]["rigs"]
    assert plan["busy"][0].startswith(f"job {job} of ops (running, ")
    assert "drained by others (ada: cable): it stays so afterwards" in plan["breaks"]
    cluster.controller("stop")
    try:
        code, told = rigctl(cluster, tmp_path, "--dry-run")
        assert (code, told["rigs"][0]["error"]) == (3, f"rig1: scontrol: {GONE}")
        assert not (tmp_path / "runs").exists()
        code, told = rigctl(cluster, tmp_path)
    finally:
        cluster.controller("start")
        settings.unlink()
    assert (code, told["exit_code"]) == (4, 4)
    assert GONE in json.dumps(told)
    run = RunDir.open(tmp_path / "runs", "latest", kind="upgrade")
    assert [one.detail["step"] for one in run.journal_entries() if one.event == STARTED] == [Step.PREFLIGHT, *UNDO]
    assert cluster.seen("rig1") == ("allocated+drain", "ada: cable")


def test_a_dry_run_tells_jobs_and_drains_of_others_and_changes_nothing(cluster):
    job = cluster.submit("rig1")
    wait_for(lambda: cluster.state_of_job(job) == "RUNNING")
    (told,) = plan_rig(FakeRig("rig1"), cluster.drain_of("rig1"), Wishes(driver="535")).busy
    assert told.startswith(f"job {job} of ops")
    cluster.set("rig3", "State=DRAIN", "Reason=ada: cable")
    assert plan_rig(FakeRig("rig3"), cluster.drain_of("rig3"), Wishes(driver="535")).breaks == (
        "drained by others (ada: cable): it stays so afterwards",
    )
    assert cluster.seen_all() == {"rig1": "allocated none", "rig2": "idle none", "rig3": "idle+drain ada: cable"}


@pytest.mark.parametrize("allowed", [1, 2])
def test_a_whole_upgrade_never_has_more_out_than_allowed_and_waits_for_every_job(
    cluster, tmp_path, monkeypatch, allowed
):
    monkeypatch.setattr("rigctl.upgrade.machine.LOOK_S", 0.2)
    upgrade, rigs = fleet_of(cluster, new_run(tmp_path), allowed)
    jobs = {node: cluster.submit(node) for node in RIG_OF}
    wait_for(lambda: {cluster.state_of_job(job) for job in jobs.values()} == {"RUNNING"})
    with Sampled(cluster, on_drain=cluster.end) as sampled:
        outcome = upgrade.drive()
    assert {one.end for one in outcome.ends} == {End.UPGRADED}, outcome
    assert {rig.driver for rig in rigs.values()} == {"535"}
    assert max(len(out) for out in sampled.out) == allowed
    assert {node for out in sampled.out for node in out} == set(RIG_OF)
    assert next(out for out in sampled.out if out) == {"rig1"}
    assert {node: cluster.state_of_job(job) for node, job in jobs.items()} == dict.fromkeys(jobs, "COMPLETED")
    assert cluster.seen_all() == dict.fromkeys(RIG_OF, "idle none")


def test_a_rig_that_cannot_be_brought_back_stays_drained_in_slurm_and_the_others_are_left(cluster, tmp_path):
    upgrade, rigs = fleet_of(cluster, new_run(tmp_path), allowed=1)
    rigs["rig2"].wrong = "never_comes_back"
    ends = {one.rig: one.end for one in upgrade.drive().ends}
    assert ends == {"rig1": End.UPGRADED, "rig2": End.LEFT_DRAINED, "rig3": End.NOT_BEGUN}
    assert cluster.seen("rig2") == ("idle+drain", f"rigctl {upgrade.run.run_id}: driver 535")
    assert (cluster.seen("rig1"), cluster.seen("rig3")) == (("idle", "none"), ("idle", "none"))


def test_a_rig_that_is_rolled_back_is_given_back(cluster, tmp_path):
    upgrade, rigs = fleet_of(cluster, new_run(tmp_path), allowed=1)
    rigs["rig1"].wrong = "slower"
    assert upgrade.drive().ends[0].end == End.ROLLED_BACK
    assert cluster.seen_all() == dict.fromkeys(RIG_OF, "idle none")


def rigctl(cluster, folder, *words):
    """The command as a person gives it for rig1; its exit code, and what it says as JSON."""
    known = ["-i", str(cluster.state.inventory), "--runs", str(folder / "runs"), "--json"]
    done = subprocess.run(
        [RIGCTL, "upgrade", "rig1", "--driver", "535", *words, *known],
        capture_output=True, text=True, check=False, timeout=300, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return done.returncode, json.loads(done.stdout)


def machine_of(cluster, rig, run):
    return Machine(rig.name, Rules(wishes=Wishes(driver="535")), run, rig, cluster.drain_of(rig.name))


def fleet_of(cluster, run, allowed):
    """Rigs in memory that ask the real Slurm, at everything they must be out of use for, whether they are."""
    rigs = {node: Asking(node, cluster) for node in RIG_OF}
    for node in rigs:
        run.rig_path(node)
    machines = {node: machine_of(cluster, rig, run) for node, rig in rigs.items()}
    return Upgrade(run, machines, Pace(canary="rig1", max_unavailable=allowed, settle_s=0)), rigs


class Asking(FakeRig):
    """A rig that is measured, changed and taken back only while Slurm has it drained, with our reason and no job."""

    def __init__(self, name, cluster):
        super().__init__(name)
        self.cluster = cluster

    def smoke(self, label):
        self._is_out()
        return super().smoke(label)

    def change(self, wishes):
        self._is_out()
        return super().change(wishes)

    def restore(self, capture):
        self._is_out()
        super().restore(capture)

    def _is_out(self):
        state, reason = self.cluster.seen(self.name)
        assert state == "idle+drain", (self.name, state)
        assert reason.startswith(OURS)


class Sampled:
    """Which nodes are out of use, asked all the time while an upgrade runs; told each time that one is drained."""

    def __init__(self, cluster, on_drain):
        self.out = []
        self._cluster, self._on_drain = cluster, on_drain
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._ask, name="sampled")

    def _ask(self):
        told = set()
        while not self._over.wait(0.05):
            seen = self._cluster.seen_all()
            self.out.append({node for node, words in seen.items() if words not in ("idle none", "allocated none")})
            for node in {node for node, words in seen.items() if "drain" in words} - told:
                told.add(node)
                self._on_drain(node)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_what):
        self._over.set()
        self._thread.join(60)
