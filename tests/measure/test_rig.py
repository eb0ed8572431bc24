"""One rig's measuring against a recorded agent: what comes home, and what a broken rig leaves behind."""

import base64
import json
import threading
from functools import partial

import pytest

from rigctl.accept import AcceptOptions, accept, start_run
from rigctl.checks.measure import reached
from rigctl.errors import CommandFailed, ConnectionLost, HostKeyUnknown, RigBusy, RigctlError, RigError
from rigctl.measure.carry import BurnTail
from rigctl.measure.progress import Progress
from rigctl.measure.rig import RigMeasurement
from rigctl.measure.session import RigSession
from rigctl.model.rig import Login, Rig
from rigctl.model.run import RunRig
from rigctl.model.spec import ProfileSpec
from rigctl.model.verdict import Verdict
from rigctl.store import RunDir
from tests.measure.test_plan import facts, profile, spec

RIG = Rig(name="rig1", login=Login(address="192.0.2.1"), spec=spec(), profiles={"standard": profile()})


def sample(seq: int, step: str) -> dict:
    gpu = {"uuid": "GPU-a", "slot": 1, "temp_c": 50 + seq, "power_w": 440.5}
    return {"seq": seq, "t_mono_s": float(seq), "t_wall_s": 1000.0 + seq, "boot_id": "b", "step": step, "gpus": [gpu]}


def event(seq: int, name: str, step: str | None = None, **detail) -> dict:
    return {"seq": seq, "t_mono_s": float(seq), "t_wall_s": 1000.0 + seq, "event": name, "step": step, "detail": detail}


def chunk(offset: int, data: bytes, size: int) -> dict:
    return {"offset": offset, "data": base64.b64encode(data).decode(), "size": size}


def lines(*objects: dict) -> bytes:
    return b"".join(json.dumps(o).encode() + b"\n" for o in objects)


class RecordedAgent:
    """An agent whose spool grows by a slice at each poll; `faults` raise at the named call, once each."""

    def __init__(self, files: dict[str, bytes], step: int = 97, faults: dict | None = None) -> None:
        self.files, self.step = files, step
        self.faults = faults or {}
        self.asked: list[str] = []
        self.cuts: list[str] = []
        self.reach = 0
        self.rest: dict[str, str] = {}
        self.connection = self

    def open(self) -> None:
        self._fault("open")

    def close(self) -> None:
        self.asked.append("close")

    def call(self, *args, stdin=b"", timeout_s=30):
        self.asked.append(args[0])
        self._fault(args[0])
        return getattr(self, f"_{args[0]}")(*args[1:])

    def ask(self, *args, during, stdin=b"", timeout_s=30):
        return self.call(*args)

    def _fault(self, name: str) -> None:
        error = self.faults.pop(name, None)
        if error is not None:
            raise error

    def _facts(self, *_args):
        return facts("GPU-a").model_dump(mode="json")

    def _start(self):
        return {"started": True}

    def _poll(self, *args):
        offsets = dict(pair.split("=") for pair in args[3::2])
        self.reach += self.step
        reply = {}
        for name, data in self.files.items():
            start = int(offsets.get(name, 0))
            reply[name] = chunk(start, data[start : self.reach], len(data))
        unit = {"active": "active" if self._active() else "inactive", "result": "success"}
        return {"boot_id": "b", "unit": unit, "files": reply}

    def _ack(self, *_args):
        return {}

    def _stop(self, *_args):
        return {"was_active": "ack" not in self.asked and self._active(), "left_running": []}

    def _active(self) -> bool:
        return any(self.reach < len(data) for data in self.files.values())

    def _probe(self, *args):
        self.rest = dict(zip(args[::2], args[1::2], strict=True))
        return {"samples": [sample(seq, "idle") for seq in range(4)]}

    def _probes(self):
        return {"probes": [{"name": "nvidia-smi topo -m", "seconds": 0.4, "limit_s": 20, "exit_status": 0}]}

    def _kernel(self, *_args):
        told = {"kernel": [{"t_wall_s": 1.0, "message": "NVRM: loading"}], "kernel_read": True, "boot_id": "b"}
        return told | {"t_wall_s": 1234.5, "t_mono_s": 5.0}


@pytest.fixture
def measure(tmp_path, monkeypatch):
    monkeypatch.setattr("rigctl.measure.carry.POLL_S", 0.0)

    def run(
        agent: RecordedAgent, cancel: threading.Event | None = None, connect=None, asked: ProfileSpec | None = None
    ) -> RigMeasurement:
        asked = asked or profile()
        run_dir = RunDir.create(tmp_path, "accept", rigs=[RunRig(name="rig1", spec=RIG.spec, profile=asked)])
        progress = Progress(["rig1"])
        cancel = cancel or threading.Event()
        return RigMeasurement(RIG, asked, run_dir, progress, cancel, connect=connect or (lambda *_: agent)).run()

    return run


def spool_files() -> dict[str, bytes]:
    return {
        "telemetry.jsonl": lines(*(sample(i, "gpu_burn") for i in range(8))),
        "events.jsonl": lines(event(0, "step_started", "gpu_burn"), event(1, "plan_finished")),
        "gpu_burn.log": "10.0%  proc'd: 1 °C\n".encode() * 20,
        "plan.json": b"{}",
    }


def test_without_a_load_the_rig_is_looked_at_for_as_long_as_it_shall_rest(measure):
    at_rest = profile(idle_seconds=2, cpu_burn_seconds=0, gpu_burn_seconds=0, all_burn_seconds=0, train=False)
    agent = RecordedAgent({})
    measured = measure(agent, asked=at_rest)
    assert agent.rest == {"--rest-seconds": "2", "--sample-hz": "2"}
    assert [s.step for s in measured.run_dir.readings("rig1").samples] == ["idle"] * 4
    assert "start" not in agent.asked


def test_every_byte_comes_home_whatever_the_slices(measure):
    files = spool_files()
    measured = measure(RecordedAgent(files))
    readings = measured.run_dir.readings("rig1")
    assert [s.seq for s in readings.samples] == list(range(8))
    assert all(s.controller_wall_s is not None for s in readings.samples)
    assert readings.logs["gpu_burn.log"].encode() == files["gpu_burn.log"]
    assert [e.event for e in readings.events] == ["step_started", "plan_finished"]
    assert readings.kernel_read
    assert [m.message for m in readings.kernel] == ["NVRM: loading"]
    assert readings.unreached is None
    assert measured.outcome.left == "idle"
    assert not (measured.run_dir.path / "rig1" / "plan.json").exists()


def test_a_rig_whose_driver_hangs_is_put_to_no_work_and_asked_nothing_more(measure):
    class Stuck(RecordedAgent):
        def _facts(self, *_args):
            told = facts().model_dump(mode="json")
            probe = {"name": "NVML", "seconds": 42.0, "limit_s": 40, "exit_status": None, "stuck": "process 7, state D"}
            return told | {"probes": [probe]}

    agent = Stuck(spool_files())
    measured = measure(agent)
    assert [word for word in agent.asked if word != "close"] == ["facts", "kernel"]
    assert measured.outcome.unreached is None
    assert measured.run_dir.readings("rig1").facts.probes[0].stuck == "process 7, state D"


def test_the_rigs_time_comes_home_between_two_of_the_controllers(measure):
    told = json.loads(measure(RecordedAgent(spool_files())).run_dir.readings("rig1").logs["clock.json"])
    assert told["rig_s"] == 1234.5
    assert 0 <= told["after_s"] - told["before_s"] < 60


def test_how_nvidia_smi_answered_after_the_load_comes_home(measure):
    readings = measure(RecordedAgent(spool_files())).run_dir.readings("rig1")
    assert "nvidia-smi topo -m" in readings.logs["probes.json"]


def test_what_was_put_back_and_what_was_not_is_told(measure):
    told = {"restored": ["slot1: power limit 450 W (was 100 W)"], "failed": ["service miner.service: gone"]}
    measured = measure(RecordedAgent(spool_files() | {"restored.json": json.dumps(told).encode()}))
    left = "idle; not put back: service miner.service: gone; put back: slot1: power limit 450 W (was 100 W)"
    assert measured.outcome.left == left


def test_the_spool_is_removed_only_after_everything_was_fetched(measure):
    agent = RecordedAgent(spool_files())
    measure(agent)
    assert agent.asked[agent.asked.index("ack") :] == ["ack", "probes", "kernel"]
    assert agent.asked[-1] == "kernel"


def test_an_untrusted_rig_is_unreached_with_its_remedy(measure):
    agent = RecordedAgent({}, faults={"open": HostKeyUnknown("rig1 is not trusted", "rigctl doctor rig1 --trust")})
    measured = measure(agent)
    assert measured.session is None
    assert measured.outcome.unreached == "rig1 is not trusted"
    assert measured.outcome.unreached_fix == "rigctl doctor rig1 --trust"
    assert measured.run_dir.readings("rig1").facts is None


def test_a_rig_that_somebody_uses_is_left_out_and_nothing_is_stopped_there(measure):
    users = "the rig is in use: alice is logged in on pts/0 since 2026-11-30 22:01 (active now)"
    agent = RecordedAgent({}, faults={"start": RigBusy(f"rig1: {users}", "wait until it is free", users=users)})
    measured = measure(agent)
    assert (measured.outcome.busy, measured.outcome.busy_fix) == (users, "wait until it is free")
    assert measured.outcome.unreached is None
    assert measured.outcome.left == "as it was found; nothing was put to work"
    assert [one.step for one in measured.progress.snapshot()] == ["busy"]
    assert "stop" not in agent.asked
    (said,) = [one for one in measured.run_dir.journal_entries() if one.event == "rig_busy"]
    assert said.detail["users"] == users


def test_a_lost_rig_keeps_the_samples_that_had_come_and_says_what_it_was_left_in(measure):
    agent = RecordedAgent(spool_files())
    polls = 0

    def poll(*args):
        nonlocal polls
        polls += 1
        if polls == 4:
            raise ConnectionLost("lost at gpu_burn", "is the rig on?")
        return RecordedAgent._poll(agent, *args)

    agent._poll = poll
    agent.faults = {"stop": RigError("no route")}
    measured = measure(agent)
    assert measured.outcome.unreached == "lost at gpu_burn"
    assert "no route" in measured.outcome.left
    assert "60 s" in measured.outcome.left
    assert len(measured.run_dir.readings("rig1").samples) > 0


def test_asked_to_stop_the_burn_is_stopped_on_the_rig(measure):
    cancel = threading.Event()
    agent = RecordedAgent(spool_files())
    poll = agent._poll

    def cancelled_meanwhile(*args):
        cancel.set()
        return poll(*args)

    agent._poll = cancelled_meanwhile
    measured = measure(agent, cancel)
    assert "stop" in agent.asked
    assert measured.outcome.left == "idle; the run was stopped"


@pytest.mark.parametrize("when", ["open", "facts"])
def test_asked_to_stop_before_the_load_nothing_is_put_to_work(measure, when):
    cancel = threading.Event()
    agent = RecordedAgent(spool_files())
    facts_of = agent._facts
    if when == "open":
        cancel.set()

    def cancelled_meanwhile(*args):
        cancel.set()
        return facts_of(*args)

    agent._facts = cancelled_meanwhile
    measured = measure(agent, cancel)
    assert "start" not in agent.asked
    assert "nothing was put to work" in measured.outcome.left


@pytest.mark.parametrize("error", [CommandFailed("the agent broke"), RigctlError("no room left"), ValueError("ours")])
def test_whatever_goes_wrong_after_the_start_the_burn_is_stopped_on_the_rig(measure, error):
    agent = RecordedAgent(spool_files(), faults={"poll": error})
    assert measure(agent).outcome.left == "idle; the run was stopped"
    assert agent.asked[-1] == "stop"


def test_a_process_that_is_ended_leaves_no_burn_behind(measure):
    agent = RecordedAgent(spool_files(), faults={"poll": SystemExit()})
    with pytest.raises(SystemExit):
        measure(agent)
    assert agent.asked[-1] == "stop"


@pytest.mark.parametrize("when", ["open", "facts", "poll"])
def test_a_fault_of_ours_is_its_rigs_error_and_the_journal_keeps_the_traceback(measure, when):
    agent = RecordedAgent(spool_files(), faults={when: ValueError("unforeseen")})
    measured = measure(agent)
    readings = measured.run_dir.readings("rig1")
    (verdict,) = reached(readings)
    assert verdict.verdict is Verdict.ERROR
    assert "unexpected ValueError: unforeseen; this is a fault of rigctl itself" in verdict.reason
    assert "--debug" in verdict.fix
    (told,) = [entry for entry in measured.run_dir.journal_entries() if entry.event == "rig_error"]
    assert "Traceback" in told.detail["traceback"]
    assert ("stop" in agent.asked) is (when == "poll")


def test_a_fault_that_also_keeps_the_burn_from_being_stopped_says_so(measure):
    agent = RecordedAgent(spool_files(), faults={"poll": ValueError("x"), "stop": KeyError("y")})
    assert "its guard stops a burn after 60 s" in measure(agent).outcome.left


def test_a_session_that_cannot_be_made_is_its_rigs_error(measure):
    def connect(*_):
        raise TypeError("no session")

    assert "unexpected TypeError: no session" in measure(RecordedAgent({}), connect=connect).outcome.unreached


def test_a_start_whose_answer_is_cut_is_asked_again_before_anything_is_polled(measure):
    class Cut(RecordedAgent):
        started = 0

        def connect(self) -> None:
            pass

        def deliver(self) -> None:
            pass

        def _start(self):
            self.started += 1
            if self.started == 1:
                raise ConnectionLost("cut before it arrived")
            return super()._start()

        def _poll(self, *args):
            if self.started < 2:
                raise CommandFailed("no readings of this run on this rig")
            return super()._poll(*args)

    agent = Cut(spool_files())

    def connect(rig, cancel, say):
        session = RigSession(rig, cancel, say)
        session.connection = session.agent = agent
        return session

    measured = measure(agent, connect=connect)
    assert measured.outcome.unreached is None
    assert agent.started == 2
    assert "during start, then resumed" in measured.outcome.cuts[0]
    assert len(measured.run_dir.readings("rig1").samples) == 8


def test_the_kernel_log_is_asked_from_the_plans_start_by_the_monotonic_clock(measure):
    agent = RecordedAgent(spool_files() | {"events.jsonl": lines(event(30, "step_started", "gpu_burn"))})
    asked = []
    kernel = agent._kernel
    agent._kernel = lambda *args: asked.append(args) or kernel(*args)
    measure(agent)
    assert asked == [("--since-mono", "28.000", "--boot-id", "b")]


def test_what_no_signal_reaches_is_said_and_not_called_idle(measure):
    agent = RecordedAgent(spool_files())
    agent._stop = lambda *_: {"was_active": False, "left_running": ["4242 gpu_burn"]}
    assert measure(agent).outcome.left == "still running: 4242 gpu_burn"


def test_the_kernels_words_before_a_reboot_come_home_beside_those_after_it(measure):
    fallen = {"t_wall_s": 0.5, "message": "NVRM: Xid (PCI:0000:02:00): 79, pid=1, name=x, GPU has fallen off the bus."}
    files = spool_files() | {"kernel.jsonl": lines(fallen, {"t_wall_s": 1.0, "message": "NVRM: loading"})}
    readings = measure(RecordedAgent(files)).run_dir.readings("rig1")
    assert [m.message for m in readings.kernel] == [fallen["message"], "NVRM: loading"]


def test_the_kernels_words_of_a_rig_that_was_lost_are_kept(measure):
    files = {"kernel.jsonl": lines({"t_wall_s": 0.5, "message": "NVRM: Xid"})} | spool_files()
    agent = RecordedAgent(files, step=400)
    agent._kernel = lambda *_: pytest.fail("it is gone")
    polls = iter([RecordedAgent._poll])

    def poll(*args):
        for known in polls:
            return known(agent, *args)
        raise ConnectionLost("gone")

    agent._poll = poll
    readings = measure(agent).run_dir.readings("rig1")
    assert [m.message for m in readings.kernel] == ["NVRM: Xid"]
    assert not readings.kernel_read


@pytest.mark.parametrize("file", ["events.jsonl", "telemetry.jsonl", "kernel.jsonl"])
@pytest.mark.parametrize("rubbish", [b"\0\0\0\n", b"7\n", b'{"seq": "x"}\n'])
def test_a_damaged_spool_is_an_error_of_its_rig_and_keeps_what_stood_before_it(measure, file, rubbish):
    files = spool_files()
    whole = files.get(file, lines({"t_wall_s": 0.5, "message": "NVRM: Xid"}))
    measured = measure(RecordedAgent(files | {file: whole + rubbish}, step=100_000))
    assert f"{file} on the rig holds a damaged line" in measured.outcome.unreached
    readings = measured.run_dir.readings("rig1")
    kept = {"events.jsonl": readings.events, "telemetry.jsonl": readings.samples, "kernel.jsonl": readings.kernel}
    assert len(kept[file]) == len(whole.splitlines())


def test_what_is_no_finite_number_in_the_spool_was_not_measured_and_damages_nothing(measure):
    files = spool_files()
    first, *others = files["telemetry.jsonl"].splitlines(keepends=True)
    odd = first.replace(b"{", b'{"wall_power_w": NaN, "cpu_temp_c": Infinity, "cpu_power_w": 31.5, ', 1)
    measured = measure(RecordedAgent(files | {"telemetry.jsonl": odd + b"".join(others)}, step=100_000))
    assert measured.outcome.unreached is None
    sample = measured.run_dir.readings("rig1").samples[0]
    assert (sample.wall_power_w, sample.cpu_temp_c, sample.cpu_power_w) == (None, None, 31.5)


def test_zeros_that_a_reboot_left_in_the_spool_do_not_hide_the_reboot(measure):
    files = spool_files()
    agent = RecordedAgent(files | {"telemetry.jsonl": files["telemetry.jsonl"] + b"\0\0\n"}, step=100_000)
    poll = agent._poll
    agent._poll = lambda *args: poll(*args) | {"boot_id": "another"}
    measured = measure(agent)
    assert measured.outcome.unreached is None
    assert measured.outcome.boot_id_after == "another"
    assert len(measured.run_dir.readings("rig1").samples) == 8


def test_no_load_starts_where_no_card_is_visible(measure):
    agent = RecordedAgent(spool_files())
    bare = facts().model_dump(mode="json")
    bare["driver"]["nvml_error"] = "Driver/library version mismatch"
    agent._facts = lambda *_: bare
    measured = measure(agent)
    assert "start" not in agent.asked
    assert "Driver/library version mismatch" in measured.outcome.left


def test_a_poll_that_skips_bytes_is_refused(measure):
    agent = RecordedAgent(spool_files())
    agent._poll = lambda *_: {
        "boot_id": "b",
        "unit": {"active": "active", "result": "success"},
        "files": {"events.jsonl": chunk(5, b"", 9)},
    }
    assert "from byte 5, asked was 0" in measure(agent).outcome.unreached


def test_a_long_burn_keeps_its_head_and_its_newest_rows():
    burn = BurnTail()
    burn.add("GPU 0: …\n")
    for row in range(5000):
        burn.add(f"row {row}\n")
    assert burn.text.startswith("GPU 0: …")
    assert burn.text.endswith("row 4999\n")
    assert len(burn.text) == 8192 + 4096


def test_a_fault_of_ours_on_one_rig_leaves_the_others_judged_and_recorded(tmp_path, monkeypatch):
    class Away(RecordedAgent):
        def connect(self) -> None:
            raise RigError("gone since it was measured")

    monkeypatch.setattr("rigctl.measure.carry.POLL_S", 0.0)
    agents = {
        "rig1": RecordedAgent({}, faults={"facts": ValueError("unforeseen")}),
        "rig2": Away(spool_files()),
    }
    sessions = partial(RigMeasurement, connect=lambda rig, *_: agents[rig.name])
    monkeypatch.setattr("rigctl.accept.RigMeasurement", sessions)
    rigs = tuple(RIG.model_copy(update={"name": name}) for name in agents)
    options = AcceptOptions(rigs=rigs, profile="standard", runs=tmp_path)
    outcome = accept(options, start_run(options), Progress(agents))
    verdicts = {(rig.name, one.check): one for rig in outcome.record.rigs for one in rig.verdicts}
    assert "unexpected ValueError: unforeseen" in verdicts["rig1", "measure.reached"].reason
    assert verdicts["rig2", "measure.reached"].verdict is Verdict.PASS
    assert outcome.run_dir.read_record() == outcome.record
