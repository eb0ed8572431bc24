"""A controller that is killed at every moment of a run: whoever goes on reaches the same end, and nothing is lost."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import pytest

from rigctl.checks import measure as checks
from rigctl.model.run import RunRig
from rigctl.model.verdict import Verdict
from rigctl.store import RunDir

from .guarded_rig import PROFILE, RIG, GuardedRig, Killed, Killer, controller

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

STEPS = ["idle", "cpu_burn", "gpu_burn", "all_burn"]
SEEDS = range(60)


@pytest.fixture
def new_run(tmp_path) -> Iterator[Path]:
    numbers = iter(range(100_000))

    def make() -> Path:
        root = tmp_path / str(next(numbers))
        root.mkdir()
        return RunDir.create(root, "accept", rigs=[RunRig(name="rig1", spec=RIG.spec, profile=PROFILE)]).path

    return make


def left_by(killer: Killer, path: Path, rig: GuardedRig, patch, *, again=False, **more) -> bool:
    """Whether the controller was killed; else it came to its end."""
    try:
        with killer.watching(rig, patch):
            controller(path, rig, again=again, **more)
    except Killed:
        return True
    return False


def finish(path: Path, rig: GuardedRig, patch) -> None:
    if RunDir(path).outcome("rig1") is None:
        assert not left_by(Killer(), path, rig, patch, again=True)


def fetched(path: Path) -> dict[str, list[bytes]]:
    """Whole lines of the samples and events on the controller's disk."""
    folder = path / "rig1"
    found = {}
    for name in ("telemetry.jsonl", "events.jsonl"):
        data = (folder / name).read_bytes() if (folder / name).exists() else b""
        found[name] = data[: data.rfind(b"\n") + 1].splitlines()
    return found


def moments(new_run, patch) -> int:
    counted = Killer()
    assert not left_by(counted, new_run(), GuardedRig(), patch)
    return counted.passed


def as_told(path: Path) -> dict[str, object]:
    """What a run says of its rig, but for when it came home."""
    readings = RunDir(path).readings("rig1")
    return {
        "samples": [one.model_dump(exclude={"controller_wall_s"}) for one in readings.samples],
        "events": readings.events,
        "logs": {name: text for name, text in readings.logs.items() if name != "clock.json"},
        "kernel": readings.kernel,
        "outcome": RunDir(path).outcome("rig1").model_copy(update={"cuts": ()}),
    }


def test_killed_at_every_moment_and_resumed_at_once_the_run_is_the_same(new_run, monkeypatch):
    whole = new_run()
    assert not left_by(Killer(), whole, GuardedRig(), monkeypatch)
    count = moments(new_run, monkeypatch)
    assert count > 150
    for at in range(1, count + 1):
        path, rig = new_run(), GuardedRig()
        assert left_by(Killer(at), path, rig, monkeypatch)
        finish(path, rig, monkeypatch)
        assert as_told(path) == as_told(whole), f"killed at moment {at}"
        assert len(rig.started) == 1
        assert rig.plans == {}


def check_silenced(path: Path, rig: GuardedRig, before: dict[str, list[bytes]], at: object) -> None:
    """Every step is there once and whole, and each line that had come home is there or set aside."""
    readings = RunDir(path).readings("rig1")
    assert readings.unreached is None, at
    for step in STEPS:
        assert len(readings.of_step(step)) == 3, (at, step)
        assert readings.logs[f"{step}.log"].splitlines() == [f"{step}: row {number}" for number in range(3)], at
        told = [one.event for one in readings.events if one.step == step]
        assert told == ["step_started", "step_finished"], (at, step)
    assert not [one for one in readings.events if one.event == "guard_stopped"], at
    assert checks.left_as_found(readings)[0].verdict is Verdict.PASS
    assert "missing" not in checks.telemetry(readings, PROFILE)[0].reason, at
    lines = [json.loads(line) for line in readings.logs["counters.jsonl"].splitlines()]
    assert [one["when"] for one in lines] == ["before", "after"] * (len(lines) // 2)
    assert rig.plans == {}
    for name, known in before.items():
        there = {*(path / "rig1" / name).read_bytes().splitlines()}
        for aside in (path / "rig1").glob(f"set_aside/*/{name}"):
            there |= {*aside.read_bytes().splitlines()}
        assert set(known) <= there, (at, name)


def test_killed_at_every_moment_and_resumed_too_late_the_rest_is_done(new_run, monkeypatch):
    again = set()
    for at in range(1, moments(new_run, monkeypatch) + 1):
        path, rig = new_run(), GuardedRig()
        assert left_by(Killer(at), path, rig, monkeypatch)
        rig.silence()
        before = fetched(path)
        finish(path, rig, monkeypatch)
        check_silenced(path, rig, before, at)
        again |= {plan["steps"][0]["name"] for plan in rig.started[1:]}
        cuts = RunDir(path).outcome("rig1").cuts
        assert all("gone" in cut for cut in cuts)
    assert again == set(STEPS)  # the cut came in each of them


@pytest.mark.parametrize("seed", SEEDS)
def test_killed_again_and_again(new_run, monkeypatch, seed):
    """The moments of going on are killed too, those of setting aside among them."""
    dice = random.Random(seed)  # noqa: S311 - a seed, so that a failure can be repeated
    path, rig, before = new_run(), GuardedRig(), {}
    again, kills = False, 0
    while RunDir(path).outcome("rig1") is None:
        assert kills < 200
        left_by(Killer(dice.randrange(1, 120)), path, rig, monkeypatch, again=again)
        again, kills = True, kills + 1
        if dice.random() < 0.5:
            rig.silence()
        for name, lines in fetched(path).items():
            before[name] = [*before.get(name, []), *lines]
    check_silenced(path, rig, before, seed)


def test_steps_that_were_finished_are_not_done_again(new_run, monkeypatch):
    for at in range(60, moments(new_run, monkeypatch)):
        path, rig = new_run(), GuardedRig()
        left_by(Killer(at), path, rig, monkeypatch)
        rig.silence()
        finished = {one.step for one in RunDir(path).readings("rig1").events if one.event == "step_finished"}
        finish(path, rig, monkeypatch)
        for plan in rig.started[1:]:
            assert not finished & {step["name"] for step in plan["steps"]}


def test_a_stop_for_another_reason_is_the_end(new_run, monkeypatch):
    path, rig = new_run(), GuardedRig()
    left_by(Killer(90), path, rig, monkeypatch)
    rig.silence()
    (plan,) = rig.plans.values()
    plan.files["events.jsonl"] = plan.files["events.jsonl"].replace(b"controller_lost", b"temperature")
    finish(path, rig, monkeypatch)
    assert len(rig.started) == 1
    assert "temperature" in RunDir(path).outcome("rig1").left


def test_a_rig_that_did_not_put_everything_back_is_not_put_to_work_again(new_run, monkeypatch):
    path, rig = new_run(), GuardedRig()
    left_by(Killer(90), path, rig, monkeypatch)
    rig.silence()
    (plan,) = rig.plans.values()
    plan.files["restored.json"] = b'{"restored": [], "failed": ["slot1: power limit"]}\n'
    finish(path, rig, monkeypatch)
    assert len(rig.started) == 1
    assert checks.left_as_found(RunDir(path).readings("rig1"))[0].verdict is Verdict.FAIL


@pytest.mark.parametrize("silent", [False, True])
def test_a_rig_that_rebooted_meanwhile_is_told_so_with_what_it_had_read(new_run, monkeypatch, silent):
    path, rig = new_run(), GuardedRig()
    left_by(Killer(90), path, rig, monkeypatch)
    if silent:
        rig.silence()
    before = fetched(path)
    rig.reboot()
    finish(path, rig, monkeypatch)
    outcome = RunDir(path).outcome("rig1")
    assert len(rig.started) == 1
    assert (outcome.unreached, outcome.boot_id_after) == (None, "after the reboot")
    assert "rebooted in the middle" in outcome.left
    assert set(before["telemetry.jsonl"]) <= set(fetched(path)["telemetry.jsonl"])


def test_a_rig_that_lost_its_readings_is_an_error_that_keeps_what_was_home(new_run, monkeypatch):
    path, rig = new_run(), GuardedRig()
    left_by(Killer(90), path, rig, monkeypatch)
    before = fetched(path)
    rig.plans.clear()
    finish(path, rig, monkeypatch)
    assert "holds no readings" in RunDir(path).outcome("rig1").unreached
    assert set(before["telemetry.jsonl"]) <= set(fetched(path)["telemetry.jsonl"])


def test_a_run_that_goes_on_alone_is_begun_left_and_brought_home(new_run, monkeypatch):
    path, rig = new_run(), GuardedRig()
    monkeypatch.setattr("rigctl.measure.carry.POLL_S", 0.0)
    assert controller(path, rig, detach=True).detached
    assert rig.started[0]["detached"] is True
    assert RunDir(path).outcome("rig1") is None
    looked = controller(path, rig, again=True, wait=False)
    assert looked.detached
    assert not controller(path, rig, again=True).detached
    readings = RunDir(path).readings("rig1")
    assert [len(readings.of_step(step)) for step in STEPS] == [3] * len(STEPS)
    assert len(rig.started) == 1


def test_at_every_moment_of_bringing_it_home_a_kill_costs_nothing(new_run, monkeypatch):
    whole = None
    for at in range(1, 200):
        path, rig = new_run(), GuardedRig()
        with monkeypatch.context() as patch:
            patch.setattr("rigctl.measure.carry.POLL_S", 0.0)
            controller(path, rig, detach=True)
        killed = left_by(Killer(at), path, rig, monkeypatch, again=True)
        finish(path, rig, monkeypatch)
        whole = whole or as_told(path)
        assert as_told(path) == whole
        assert len(rig.started) == 1
        if not killed:
            return
    pytest.fail("it never came to its end")
