"""One pytest run over all rigs: verdicts, users' own tests, and the replay that says the same byte for byte."""

from __future__ import annotations

import os
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import pytest
from testinfra.backend.base import BaseBackend
from testinfra.host import Host

from rigctl.checks.catalogue import CATALOGUE
from rigctl.checks.load import STEPS
from rigctl.errors import ConnectionLost, UsageError
from rigctl.judge import USER_TESTS, judge_run
from rigctl.model.reading import CommandReply
from rigctl.model.run import RunRig
from rigctl.model.verdict import Record, Verdict
from rigctl.store import RigOutcome, RunDir, dumps
from tests.checks import healthy as h

if TYPE_CHECKING:
    from pathlib import Path

    from rigctl.model.reading import Readings

STARTED = datetime.fromtimestamp(h.T0 - 5, UTC)
ANSWERS = {
    "dpkg-query": h.PACKAGES,
    "cat -- /sys/module/nvidia/version": "515.105.01\n",
    "torch": "2.0.1+cu117\n",
    "topo -m": h.TOPO,
    "nvlink -s": h.NVLINK,
    "uname -s": "Linux\n",
}


@dataclass
class FakeRig(BaseBackend):
    """A rig that answers by what a command contains, and records as a live host does."""

    record: object
    answers: dict = field(default_factory=lambda: dict(ANSWERS))
    silent: tuple[str, ...] = ()
    asked: list[str] = field(default_factory=list)

    def __post_init__(self):
        super().__init__("rig1")

    def run(self, command, *args, **kwargs):
        line = self.get_command(command, *args)
        self.asked.append(line)
        if any(word in line for word in self.silent):
            raise ConnectionLost(f"rig1: connection lost at {len(self.asked)}", "is it on?")
        out = next((out for word, out in self.answers.items() if word in line), "")
        reply = CommandReply(command=line, exit_status=0, stdout=out, stderr="")
        self.record(reply)
        return self.result(0, line.encode(), out.encode(), b"")


def write(run: RunDir, readings: Readings, rig: str = "rig1") -> None:
    def lines(models):
        return "".join(m.model_dump_json() + "\n" for m in models).encode()

    if readings.facts is not None:
        run.write_json_atomic(f"{rig}/facts.json", readings.facts)
    run.append_raw(rig, "telemetry.jsonl", lines(readings.samples))
    run.append_raw(rig, "events.jsonl", lines(readings.events))
    run.append_raw(rig, "kernel.jsonl", lines(readings.kernel))
    for name, text in readings.logs.items():
        run.append_raw(rig, name, text.encode())
    run.write_rig_outcome(
        rig,
        RigOutcome(
            unreached=readings.unreached,
            unreached_fix=readings.unreached_fix,
            boot_id_after=readings.boot_id_after,
            cuts=readings.cuts,
            left="idle",
            kernel_read=readings.kernel_read,
        ),
    )


def run_of(tmp_path: Path, *, waivers: dict | None = None, **rigs: Readings) -> RunDir:
    accepted = waivers or {}
    wanted = tuple(RunRig(name=name, spec=h.spec(), profile=h.PROFILE, waivers=accepted.get(name, ())) for name in rigs)
    run = RunDir.create(tmp_path / "runs", "accept", rigs=wanted, profile="smoke", now=STARTED)
    for name, readings in rigs.items():
        write(run, readings, name)
    return run


def fake(run: RunDir, rig: str = "rig1", **kwargs) -> Host:
    backend = FakeRig(lambda reply: run.append_command(rig, reply), **kwargs)
    host = Host(backend)
    backend.set_host(host)
    return host


def bad(record: Record, rig: int = 0) -> dict[str, str]:
    return {v.key: v.reason for v in record.rigs[rig].verdicts if v.verdict in (Verdict.FAIL, Verdict.ERROR)}


def user_tests(tmp_path: Path, text: str, name: str = "test_mine.py") -> Path:
    folder = tmp_path / "acceptance"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(textwrap.dedent(text))
    return folder


def test_a_healthy_rig_is_well_live_and_in_the_replay(tmp_path):
    run = run_of(tmp_path, rig1=h.readings())
    live = judge_run(run, {"rig1": fake(run)})
    assert bad(live) == {}
    counts = live.rigs[0].counts
    assert set(counts) <= {"pass", "blind", "skip"}
    assert (counts["blind"], sum(counts.values())) == (8, len(live.rigs[0].verdicts))
    assert {v.check for v in live.rigs[0].verdicts} == {c.id for c in CATALOGUE.values() if not c.afterwards}
    assert live.rigs[0].left == "idle"
    assert live.ended_at > live.started_at
    assert dumps(judge_run(run)) == dumps(live)
    assert dumps(judge_run(RunDir(run.path))) == dumps(live)


def test_drivers_of_all_rigs_are_asked_at_once(tmp_path):
    names = ("rig1", "rig2", "rig3")
    together = threading.Barrier(len(names), timeout=20)

    class Waits(FakeRig):
        def run(self, command, *args, **kwargs):
            if "topo -m" in command:
                together.wait()
            return super().run(command, *args, **kwargs)

    run = run_of(tmp_path, **{name: h.readings(rig=name) for name in names})
    hosts = {}
    for name in names:
        backend = Waits(partial(run.append_command, name))
        hosts[name] = Host(backend)
        backend.set_host(hosts[name])
    live = judge_run(run, hosts)
    assert [bad(live, number) for number in range(3)] == [{}, {}, {}]
    assert [sum("topo -m" in line for line in hosts[name].backend.asked) for name in names] == [1, 1, 1]
    assert dumps(judge_run(run)) == dumps(live)


def test_a_driver_that_does_not_answer_is_asked_nothing_more(tmp_path):
    class Hangs(FakeRig):
        def run(self, command, *args, **kwargs):
            if "topo -m" not in command:
                return super().run(command, *args, **kwargs)
            self.asked.append(command)
            reply = CommandReply(command=command, exit_status=124, stdout="", stderr="")
            self.record(reply)
            return self.result(124, command.encode(), b"", b"")

    run = run_of(tmp_path, rig1=h.readings())
    backend = Hangs(partial(run.append_command, "rig1"))
    host = Host(backend)
    backend.set_host(host)
    live = judge_run(run, {"rig1": host})
    assert not [line for line in backend.asked if "nvlink -s" in line]
    found = {v.check: v for v in live.rigs[0].verdicts}
    assert found["topology.nvlink_speed"].verdict is Verdict.ERROR
    assert "not asked" in found["topology.nvlink_speed"].reason
    assert dumps(judge_run(run)) == dumps(live)


def test_a_busy_rig_is_said_and_never_counted(tmp_path):
    users = "the rig is in use: alice is logged in on pts/0"
    run = run_of(tmp_path, rig1=h.readings(), rig2=h.readings(rig="rig2"))
    outcome = RigOutcome(busy=users, busy_fix="wait", boot_id_after=h.BOOT, left="as it was found")
    run.write_rig_outcome("rig2", outcome)
    live = judge_run(run, {"rig1": fake(run)})
    assert [rig.name for rig in live.rigs] == ["rig1"]
    assert [(one.name, one.users, one.fix) for one in live.busy] == [("rig2", users, "wait")]
    assert live.exit_code == 0
    assert dumps(judge_run(run)) == dumps(live)


def test_a_fleet_of_busy_rigs_was_not_measured(tmp_path):
    run = run_of(tmp_path, rig1=h.readings())
    run.write_rig_outcome("rig1", RigOutcome(busy="the rig is in use: bob"))
    found = judge_run(run, {})
    assert (found.rigs, len(found.busy), found.exit_code) == ((), 1, 3)


def test_a_run_leaves_no_trace_in_this_process(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTEST_ADDOPTS", "--no-such-option")
    before = dict(os.environ)
    run = run_of(tmp_path, rig1=h.readings())
    judge_run(run, {"rig1": fake(run)})
    assert dict(os.environ) == before
    assert not (run.path / "judge.log").exists()


def test_runs_that_are_judged_at_once_leave_this_process_its_streams_and_environment(tmp_path, monkeypatch):
    """An upgrade measures several rigs, each in a thread and a run of its own."""
    monkeypatch.setenv("PYTEST_ADDOPTS", "--maxfail=1")
    runs = [run_of(tmp_path / f"{number}", rig1=h.readings()) for number in range(4)]
    streams, seen = (sys.stdin, sys.stdout, sys.stderr), set()
    over = threading.Event()

    def look():
        while not over.wait(0.0002):
            seen.add((sys.stdin, sys.stdout, sys.stderr) == streams)

    looking = threading.Thread(target=look)
    looking.start()
    try:
        with ThreadPoolExecutor(len(runs)) as pool:
            records = list(pool.map(lambda run: judge_run(run, {"rig1": fake(run)}), runs))
    finally:
        over.set()
        looking.join()
    assert [bad(record) for record in records] == [{}] * len(runs)
    assert len({len(record.rigs[0].verdicts) for record in records}) == 1
    assert seen == {True}  # who writes meanwhile, such as a table of progress, writes to where it always did
    assert (sys.stdin, sys.stdout, sys.stderr) == streams
    assert os.environ["PYTEST_ADDOPTS"] == "--maxfail=1"


def test_two_rigs_are_judged_apart(tmp_path):
    hot = h.readings(samples=h.with_gpu_samples(lambda gpu, _: {"temp_c": 74.0} if gpu.slot == 2 else None))
    run = run_of(tmp_path, rig1=h.readings(), rig2=hot.model_copy(update={"rig": "rig2"}))
    record = judge_run(run, {name: fake(run, name) for name in ("rig1", "rig2")})
    assert [rig.verdict for rig in record.rigs] == [Verdict.PASS, Verdict.FAIL] or bad(record) == {}
    assert set(bad(record, 1)) == {f"thermals.{check}[{h.SLOT2}]" for check in ("settled_gpu_temp", "card_spread")}
    assert record.exit_code == 1


def test_a_rig_that_was_never_reached_is_one_error(tmp_path):
    nothing = h.readings(
        facts=None, samples=(), events=(), logs={}, kernel=(), kernel_read=False, boot_id_after=None,
        unreached="rig1: no route", unreached_fix="is it on?",
    )  # fmt: skip
    run = run_of(tmp_path, rig1=nothing)
    record = judge_run(run, {})
    (only,) = record.rigs[0].verdicts
    assert (only.key, only.reason, only.fix) == ("measure.reached[rig]", "rig1: no route", "is it on?")
    assert record.rigs[0].simulated is None
    assert record.exit_code == 3
    assert dumps(judge_run(run)) == dumps(record)


def test_a_rig_that_was_lost_in_the_middle_keeps_what_was_measured(tmp_path):
    lost = h.readings(unreached="rig1: lost at gpu_burn", unreached_fix="is it on?", boot_id_after=None)
    lost = lost.model_copy(update={"samples": lost.samples[:60], "events": lost.events[:9], "kernel_read": False})
    run = run_of(tmp_path, rig1=lost)
    record = judge_run(run, {})
    causes = [v.key for v in record.rigs[0].causes]
    assert causes == ["measure.reached[rig]"]
    assert len(record.rigs[0].verdicts) > 20
    assert dumps(judge_run(run)) == dumps(record)


def test_a_command_without_an_answer_is_an_error_and_the_same_one_in_the_replay(tmp_path):
    run = run_of(tmp_path, rig1=h.readings())
    record = judge_run(run, {"rig1": fake(run, silent=("topo -m", "/sys/module"))})
    speed = {f"topology.nvlink_speed[{slot}]" for slot in (h.SLOT1, h.SLOT2)}
    assert set(bad(record)) == {"topology.nvlink[slot1-slot2]", "software.driver_version[rig]"} | speed
    assert "connection lost at" in bad(record)["topology.nvlink[slot1-slot2]"]
    assert dumps(judge_run(run)) == dumps(record)


def test_a_command_that_was_not_recorded_is_an_error(tmp_path):
    run = run_of(tmp_path, rig1=h.readings())
    judge_run(run, {"rig1": fake(run)})
    (run.path / "rig1" / "commands.jsonl").unlink()
    record = judge_run(run)
    assert "not recorded" in bad(record)["topology.nvlink[slot1-slot2]"]
    assert record.exit_code == 3


def test_users_own_tests_become_verdicts(tmp_path):
    folder = user_tests(
        tmp_path,
        """
        import pytest
        from rigctl.model.verdict import CheckVerdict, Verdict

        def test_good(host): assert host.run("echo hi").rc == 0
        def test_bad(host):
            assert host.run("uname -s").stdout == "Plan 9\\n"
        def test_broken(spec): raise RuntimeError("no idea")
        def test_left_out(): pytest.skip("not on this rig")
        @pytest.mark.parametrize("disk", ["sda", "sdb"])
        def test_disk(rig, disk): assert disk != "sdb", f"{disk} of {rig.name} is slow"
        def test_silent(host): host.run("silence")
        @pytest.fixture
        def broken(): raise OSError("no fixture")
        def test_setup(broken): pass
        def test_own_words(judge, request):
            check = "user.test_mine.test_own_words"
            judge([CheckVerdict(check=check, subject="fan", verdict=Verdict.WARN, reason="loud")])
        def test_strange_words(judge):
            judge([CheckVerdict(check="topology.gpu_count", subject="rig", verdict=Verdict.PASS, reason="trust me")])
        """,
    )
    run = run_of(tmp_path, rig1=h.readings())
    record = judge_run(run, {"rig1": fake(run, silent=("silence",))}, user_tests=[folder])
    found = {v.key: v for v in record.rigs[0].verdicts if v.check.startswith("user.")}
    said = {key.removeprefix("user.test_mine."): v.verdict.value for key, v in found.items()}
    assert said == {
        "test_good[rig]": "pass",
        "test_bad[rig]": "fail",
        "test_broken[rig]": "error",
        "test_left_out[rig]": "skip",
        "test_disk[disk=sda]": "pass",
        "test_disk[disk=sdb]": "fail",
        "test_silent[rig]": "error",
        "test_setup[rig]": "error",
        "test_own_words[fan]": "warn",
        "test_own_words[rig]": "pass",
        "test_strange_words[rig]": "error",
    }
    assert "Plan 9" in found["user.test_mine.test_bad[rig]"].reason
    assert found["user.test_mine.test_disk[disk=sdb]"].reason.startswith("sdb of rig1 is slow")
    assert found["user.test_mine.test_left_out[rig]"].reason == "not on this rig"
    assert "RuntimeError: no idea" in found["user.test_mine.test_broken[rig]"].reason
    (folder / "test_mine.py").unlink()
    assert dumps(judge_run(run)) == dumps(record)
    assert (run.path / USER_TESTS / "1" / "test_mine.py").is_file()


def test_a_users_file_that_cannot_be_loaded_is_an_error(tmp_path):
    folder = user_tests(tmp_path, "import no_such_module_of_mine\n")
    run = run_of(tmp_path, rig1=h.readings())
    record = judge_run(run, {"rig1": fake(run)}, user_tests=[folder])
    assert list(bad(record)) == ["user.test_mine[rig]"]
    assert "no_such_module_of_mine" in bad(record)["user.test_mine[rig]"]
    assert record.exit_code == 3
    assert "no_such_module_of_mine" in (run.path / "judge.log").read_text()


def test_a_users_test_that_ends_the_run_leaves_errors_and_no_passes(tmp_path):
    folder = user_tests(tmp_path, "import pytest\ndef test_a(): pytest.exit('enough')\ndef test_b(): pass\n")
    run = run_of(tmp_path, rig1=h.readings())
    record = judge_run(run, {"rig1": fake(run)}, user_tests=[folder])
    assert not any(v.check == "user.test_mine.test_b" for v in record.rigs[0].verdicts)
    assert "enough" in (run.path / "judge.log").read_text()


def test_ctrl_c_in_a_test_is_ctrl_c(tmp_path):
    folder = user_tests(tmp_path, "def test_a(): raise KeyboardInterrupt\n")
    run = run_of(tmp_path, rig1=h.readings())
    with pytest.raises(KeyboardInterrupt):
        judge_run(run, {"rig1": fake(run)}, user_tests=[folder])


def test_a_test_case_of_unittest_is_judged_on_every_rig(tmp_path):
    text = """
    import unittest
    class TestOld(unittest.TestCase):
        def test_sum(self): self.assertEqual(1, 1)
    """
    run = run_of(tmp_path, rig1=h.readings(), rig2=h.readings(rig="rig2"))
    hosts = {name: fake(run, name) for name in ("rig1", "rig2")}
    record = judge_run(run, hosts, user_tests=[user_tests(tmp_path, text)])
    for rig in record.rigs:
        (found,) = [v for v in rig.verdicts if v.check.startswith("user.")]
        assert (found.verdict, "rig" in found.reason) == (Verdict.ERROR, True)


def test_a_folder_without_tests_is_a_usage_error(tmp_path):
    run = run_of(tmp_path, rig1=h.readings())
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="holds no test_"):
        judge_run(run, {}, user_tests=[tmp_path / "empty"])


def test_two_test_files_of_one_name_are_a_usage_error(tmp_path):
    run = run_of(tmp_path, rig1=h.readings())
    folders = [user_tests(tmp_path / name, "def test_one(): pass\n") for name in ("a", "b")]
    with pytest.raises(UsageError, match="two test files are called test_mine"):
        judge_run(run, {}, user_tests=folders)


def test_a_run_that_measured_nothing_cannot_be_judged(tmp_path):
    run = RunDir.create(tmp_path, "provision", rigs=[RunRig(name="rig1", spec=h.spec())])
    with pytest.raises(UsageError, match="kind provision"):
        judge_run(run)


def test_without_load_only_what_needs_none_is_listed(tmp_path):
    quiet = h.PROFILE.model_copy(
        update={
            "idle_seconds": 0,
            "cpu_burn_seconds": 0,
            "gpu_burn_seconds": 0,
            "all_burn_seconds": 0,
            "train": False,
            "workloads": (),
            "wakes": 0,
            "step_load_seconds": 0,
        }
    )
    run = RunDir.create(tmp_path, "check", rigs=[RunRig(name="rig1", spec=h.spec(), profile=quiet)])
    write(
        run,
        h.readings(
            samples=h.samples()[:1], events=(), logs={"probes.json": h.probes(), "clock.json": h.logs()["clock.json"]}
        ),
    )
    record = judge_run(run, {"rig1": fake(run)})
    assert bad(record) == {}
    checks = {v.check for v in record.rigs[0].verdicts}
    assert "topology.nvlink" in checks
    assert not any(check.startswith("throughput.") for check in checks)
    assert record.rigs[0].notes == (f"not run in this profile: {', '.join(STEPS)}",)
