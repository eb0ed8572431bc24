"""The guard as a whole: real threads, real processes, real files; only the sensors are put in by hand."""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from rigctl.agent import guard as guard_module
from rigctl.agent import spool as spool_module
from rigctl.agent.clock import boot_id, stamp
from rigctl.agent.guard import Guard, Heartbeat
from rigctl.agent.loads import Command, group_members
from rigctl.agent.notify import Notifier
from rigctl.agent.places import Places, write_atomically
from rigctl.agent.plan import Plan, Step, parse_plan
from rigctl.agent.sampler import Sampler
from rigctl.agent.seeing import Thresholds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

CARDS = ("GPU-aaaa", "GPU-bbbb")


class Cards:
    """Sensors by hand: temperatures, errors, and a call that hangs."""

    def __init__(self) -> None:
        self.temps = dict.fromkeys(CARDS, 50.0)
        self.errors: dict[str, str] = {}
        self.more: dict[str, Any] = {}
        self.others: dict[int, str] = {}
        self.hangs = threading.Event()
        self.release = threading.Event()

    def read(self, seq: int, step: str) -> dict[str, Any]:
        if self.hangs.is_set():
            self.release.wait(30)
        gpus = [
            {"uuid": uuid, "slot": slot, "error": self.errors[uuid]}
            if uuid in self.errors
            else {"uuid": uuid, "slot": slot, "temp_c": self.temps[uuid]}
            for slot, uuid in enumerate(CARDS, start=1)
        ]
        return {"seq": seq, **stamp(), "boot_id": boot_id(), "step": step, "gpus": gpus, **self.more}

    def thresholds(self) -> dict[str, Thresholds]:
        return dict.fromkeys(CARDS, Thresholds(94.0))

    def others_work(self) -> dict[int, str]:
        return dict(self.others)


class Bench:
    """A run on this machine in a temporary place, with `sleep` for a burn."""

    def __init__(self, folder: Path) -> None:
        self.places = Places(folder / "spool", folder / "run")
        self.cards = Cards()
        self.guard: Guard
        self.pids: list[int] = []
        self.told: list[str] = []

    def plan(self, steps: list[dict[str, Any]], **changed: Any) -> Plan:
        raw: dict[str, Any] = {
            "run_id": "r1",
            "sample_hz": 20,
            "controller_lost_s": 30,
            "max_gpu_temp_c": 80,
            "stale_sample_s": 5,
            "expected_gpus": CARDS,
            "gpu_burn_dir": "/nowhere",
            "torch_venv": "/nowhere",
            "steps": steps,
        }
        return parse_plan(json.dumps(raw | changed))

    def run(self, plan: Plan, when_burning: Callable[[], None] | None = None) -> tuple[int, float]:
        """Exit status, and seconds from `when_burning` to the guard's end."""
        self.places.spool("r1").mkdir(parents=True)
        write_atomically(self.places.heartbeat("r1"), str(time.monotonic()))
        self.guard = Guard(plan, self.places, self.cards, Notifier(None))
        began = [time.monotonic()]

        def act() -> None:
            while not any(event["event"] == "load_started" for event in self.events()):
                time.sleep(0.02)
            began[0] = time.monotonic()
            if when_burning:
                when_burning()

        threading.Thread(target=act, daemon=True).start()
        return self.guard.run(), time.monotonic() - began[0]

    def events(self) -> list[dict[str, Any]]:
        return self._lines("events.jsonl")

    def samples(self) -> list[dict[str, Any]]:
        return self._lines("telemetry.jsonl")

    def _lines(self, name: str) -> list[dict[str, Any]]:
        path = self.places.spool("r1") / name
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def stop_event(self) -> dict[str, Any]:
        stops = [event for event in self.events() if event["event"] == "guard_stopped"]
        assert len(stops) == 1
        detail: dict[str, Any] = stops[0]["detail"]
        return detail

    def seconds_between(self, event: str, later: str) -> float:
        at = {line["event"]: line["t_mono_s"] for line in self.events()}
        return float(at[later] - at[event])


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    made = Bench(tmp_path)

    def command(kind: str, step: Step, plan: Plan, places: Places) -> Command:
        seconds = str(step.seconds)
        return Command(kind, ("sh", "-c", f"echo $$; trap '' TERM; sleep {seconds}"), tmp_path / f"{step.name}.log")

    monkeypatch.setattr(guard_module, "command_for", command)
    monkeypatch.setattr("rigctl.agent.kernel.read_entries", lambda _after: ([], None))
    monkeypatch.setattr("rigctl.agent.announce.tell", made.told.append)
    monkeypatch.setattr("rigctl.agent.guard.cpu_critical_temp_c", lambda: None)
    kept = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield made
    made.cards.release.set()
    for number, handler in kept.items():
        signal.signal(number, handler)
    for log in tmp_path.glob("*.log"):
        assert group_members(int(log.read_text().split()[0])) == [], f"{log.name} left something running"


BURN = [{"name": "idle", "seconds": 0.2, "loads": []}, {"name": "gpu_burn", "seconds": 60, "loads": ["gpu"]}]


def test_counters_are_noted_before_the_first_load_and_after_the_last(bench: Bench) -> None:
    bench.run(bench.plan([{"name": "gpu_burn", "seconds": 0.2, "loads": ["gpu"]}]))
    noted = bench._lines("counters.jsonl")
    assert [line["when"] for line in noted] == ["before", "after"]
    at = {event["event"]: event["t_mono_s"] for event in bench.events()}
    assert noted[0]["t_mono_s"] <= at["load_started"] < at["load_exited"] <= noted[1]["t_mono_s"]


def test_a_plan_runs_to_its_end(bench: Bench) -> None:
    steps = [{"name": "idle", "seconds": 0.3, "loads": []}, {"name": "cpu_burn", "seconds": 0.5, "loads": ["cpu"]}]
    status, _ = bench.run(bench.plan(steps))
    assert status == 0
    events = bench.events()
    assert [event["event"] for event in events] == [
        "guard_limits",
        "step_started",
        "step_finished",
        "step_started",
        "load_started",
        "load_exited",
        "step_finished",
        "plan_finished",
    ]
    assert [event["seq"] for event in events] == list(range(len(events)))
    assert events[-1]["detail"]["stopped"] is None
    samples = bench.samples()
    assert [sample["seq"] for sample in samples] == list(range(len(samples)))
    assert len(samples) == events[-1]["detail"]["samples"]
    assert [sample["step"] for sample in samples][-1] == "after"
    assert {sample["step"] for sample in samples} <= {"before", "idle", "cpu_burn", "after"}
    assert len(samples) >= 0.8 * 20 * 0.7


def test_a_load_that_cannot_start_is_its_error_and_the_guard_goes_on(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = guard_module.command_for

    def command(kind: str, step: Step, plan: Plan, places: Places) -> Command:
        if kind == "gpu":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "gpu_burn.log")
        return made(kind, step, plan, places)

    monkeypatch.setattr(guard_module, "command_for", command)
    steps = [
        {"name": "gpu_burn", "seconds": 60, "loads": ["gpu"]},
        {"name": "cpu_burn", "seconds": 0.5, "loads": ["cpu"]},
    ]
    status, _ = bench.run(bench.plan(steps))
    assert status == 0
    events = [(event["event"], event["step"]) for event in bench.events()]
    assert events[:4] == [
        ("guard_limits", "before"),
        ("step_started", "gpu_burn"),
        ("error", "gpu_burn"),
        ("step_finished", "gpu_burn"),
    ]
    assert events[-2:] == [("step_finished", "cpu_burn"), ("plan_finished", "after")]
    error = bench.events()[2]["detail"]
    assert error["load"] == "gpu"
    assert "No space left" in error["error"]
    assert "needs" not in error
    assert {sample["step"] for sample in bench.samples()} >= {"cpu_burn", "after"}


def test_heat_stops_the_burn_within_a_second(bench: Bench) -> None:
    _, seconds = bench.run(bench.plan(BURN), lambda: bench.cards.temps.update({CARDS[1]: 80.0}))
    stop = bench.stop_event()
    assert (stop["reason"], stop["slot"], stop["found"], stop["limit"]) == ("temperature", 2, 80.0, 80.0)
    assert bench.seconds_between("guard_stopped", "load_exited") < 1
    assert seconds < 3
    assert bench.events()[-1]["detail"]["stopped"] == "temperature"


def test_a_rise_that_will_cross_the_limit_stops_the_burn_below_it(bench: Bench) -> None:
    heating = threading.Event()

    def heat() -> None:
        began = time.monotonic()
        while not heating.wait(0.02):
            # In whole degrees, as NVML says it.
            bench.cards.temps[CARDS[0]] = float(int(60 + 5 * (time.monotonic() - began)))

    _, seconds = bench.run(bench.plan(BURN), lambda: threading.Thread(target=heat, daemon=True).start())
    heating.set()
    stop = bench.stop_event()
    assert (stop["reason"], stop["slot"], stop["limit"], stop["sensor"]) == ("temperature", 1, 80.0, "core")
    assert 68 <= stop["found"] <= 76
    assert stop["expected_c"] >= 80
    assert seconds < 8


def test_a_hot_processor_stops_the_burn(bench: Bench) -> None:
    bench.run(bench.plan(BURN, max_cpu_temp_c=95), lambda: bench.cards.more.update(cpu_temp_c=95.5))
    stop = bench.stop_event()
    assert (stop["reason"], stop["sensor"], stop["found"], stop["limit"]) == ("temperature", "processor", 95.5, 95.0)


def test_a_power_brake_stops_the_burn(bench: Bench) -> None:
    card = {"uuid": CARDS[0], "slot": 1, "temp_c": 50.0, "throttle": 0x88}
    bench.run(bench.plan(BURN, stale_sample_s=20), lambda: bench.cards.more.update(gpus=[card]))
    assert (bench.stop_event()["reason"], bench.stop_event()["slot"]) == ("power_brake", 1)
    assert bench.seconds_between("guard_stopped", "load_exited") < 1


def test_a_pump_that_stands_still_stops_the_burn_only_where_it_is_hot(bench: Bench) -> None:
    bench.cards.more["fans_rpm"] = {"nct6798 pump": 2400, "nct6798 fan7": 0}

    def seize() -> None:
        bench.cards.temps[CARDS[1]] = 61.0
        bench.cards.more["fans_rpm"] = {"nct6798 pump": 0, "nct6798 fan7": 0}

    bench.run(bench.plan(BURN), seize)
    stop = bench.stop_event()
    assert (stop["reason"], stop["sensor"], stop["found"], stop["limit"]) == ("fan_still", "nct6798 pump", 61.0, 60)


def test_somebody_elses_work_stops_the_burn(bench: Bench) -> None:
    bench.run(bench.plan(BURN), lambda: bench.cards.others.update({77: "77 train.py (alice) on slot1"}))
    stop = bench.stop_event()
    assert (stop["reason"], stop["found"]) == ("others_work", "77 train.py (alice) on slot1")


def test_people_are_told_when_it_begins_and_ends(bench: Bench) -> None:
    steps = [{"name": "cpu_burn", "seconds": 0.3, "loads": ["cpu"]}]
    bench.run(bench.plan(steps, asked_by="alice@desk"))
    begins, ends = bench.told
    assert "run r1, asked for by alice@desk, puts this rig under full load" in begins
    assert "sudo systemctl stop rigctl-r1.service" in begins
    assert "has ended" in ends
    bench.told.clear()


def test_a_plan_without_loads_bothers_nobody(bench: Bench) -> None:
    bench.run(bench.plan([{"name": "idle", "seconds": 0.2, "loads": []}]))
    assert bench.told == []


def test_the_cards_own_slowdown_makes_the_limit_tighter(bench: Bench) -> None:
    bench.run(bench.plan(BURN, max_gpu_temp_c=110), lambda: bench.cards.temps.update({CARDS[0]: 89.5}))
    assert bench.stop_event()["limit"] == 89.0


def test_one_card_that_cannot_be_read_stops_the_burn(bench: Bench) -> None:
    plan = bench.plan(BURN, stale_sample_s=0.6)
    bench.run(plan, lambda: bench.cards.errors.update({CARDS[0]: "GPU is lost"}))
    stop = bench.stop_event()
    assert (stop["reason"], stop["slot"], stop["limit"]) == ("no_valid_sample", 1, 0.6)
    assert stop["found"] < 1
    # The other card went on being sampled, and the lost one says why it is not.
    last = bench.samples()[-1]["gpus"]
    assert last[0]["error"] == "GPU is lost"
    assert last[1]["temp_c"] == 50


def test_a_sampling_thread_that_hangs_stops_the_burn(bench: Bench) -> None:
    status, seconds = bench.run(bench.plan(BURN, stale_sample_s=0.6), bench.cards.hangs.set)
    assert bench.stop_event()["reason"] == "no_valid_sample"
    assert bench.seconds_between("guard_stopped", "load_exited") < 1
    assert bench.events()[-1]["detail"]["sampler_hangs"] is True
    assert status == 0
    assert seconds < 8


def test_a_lost_controller_stops_the_burn(bench: Bench) -> None:
    _, seconds = bench.run(bench.plan(BURN, controller_lost_s=1))
    assert bench.stop_event()["reason"] == "controller_lost"
    assert seconds < 5


def test_a_word_from_the_controller_keeps_the_burn_alive(bench: Bench) -> None:
    steps = [{"name": "gpu_burn", "seconds": 2.5, "loads": ["gpu"]}]
    talking = threading.Event()

    def talk() -> None:
        while not talking.wait(0.2):
            write_atomically(bench.places.heartbeat("r1"), str(time.monotonic()))

    bench.run(bench.plan(steps, controller_lost_s=1), talk)
    talking.set()
    assert not [event for event in bench.events() if event["event"] == "guard_stopped"]


def test_sigterm_stops_cleanly_with_the_reason_beside_it(bench: Bench) -> None:
    def ask() -> None:
        write_atomically(bench.places.stop_reason("r1"), "the person pressed Ctrl-C\n")
        os.kill(os.getpid(), signal.SIGTERM)

    status, seconds = bench.run(bench.plan(BURN), ask)
    stop = bench.stop_event()
    assert (stop["reason"], stop["found"]) == ("asked", "the person pressed Ctrl-C")
    assert (status, bench.events()[-1]["event"]) == (0, "plan_finished")
    assert seconds < 4


def test_a_full_disk_stops_the_burn_and_its_event_still_reaches_the_disk(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.write
    reserve = bench.places.spool("r1") / ".reserve"
    full = threading.Event()

    def write(descriptor: int, data: bytes) -> int:
        if full.is_set() and reserve.exists():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(descriptor, data)

    monkeypatch.setattr(spool_module.os, "write", write)
    status, _ = bench.run(bench.plan(BURN), full.set)
    stop = bench.stop_event()
    assert stop["reason"] == "spool_failed"
    assert "No space left" in stop["found"]
    assert bench.seconds_between("guard_stopped", "load_exited") < 1
    assert status == 0
    seqs = [sample["seq"] for sample in bench.samples()]
    assert seqs == list(range(len(seqs)))


def test_a_disk_that_never_comes_back_is_told_by_the_exit_status(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    real, full = os.write, threading.Event()

    def write(descriptor: int, data: bytes) -> int:
        if full.is_set():
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real(descriptor, data)

    monkeypatch.setattr(spool_module.os, "write", write)
    status, seconds = bench.run(bench.plan(BURN), full.set)
    assert status == 1
    assert seconds < 6


def test_no_load_is_started_before_every_card_was_read(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard_module, "FIRST_SAMPLE_S", 0.6)
    bench.cards.errors[CARDS[1]] = "Driver/library version mismatch"
    bench.run(bench.plan(BURN, stale_sample_s=0.5))
    names = [event["event"] for event in bench.events()]
    assert "load_started" not in names
    assert bench.stop_event()["reason"] == "no_valid_sample"
    assert [event["step"] for event in bench.events() if event["event"] == "step_skipped"] == ["idle", "gpu_burn"]


def test_a_heartbeat_from_the_future_counts_as_now(tmp_path: Path) -> None:
    path = tmp_path / "heartbeat"
    beat = Heartbeat(path)
    first = beat.last_s()
    path.write_text(str(time.monotonic() + 1e6))
    assert beat.last_s() <= time.monotonic()
    path.write_text("nonsense")
    assert beat.last_s() >= first


def test_a_source_that_raises_gives_no_valid_sample_and_the_thread_lives(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Cards):
        def read(self, seq: int, step: str) -> dict[str, Any]:
            raise ValueError("a sensor of an unknown kind")

    sampler = Sampler(Broken(), 50, lambda _line: None)
    sampler.start()
    time.sleep(0.1)
    assert sampler.is_alive()
    assert sampler.seeing.cards() == {}
    assert sampler.end(timeout_s=1)
    assert "unknown kind" in caplog.text


def test_a_sample_during_which_the_limits_began_to_rise_belongs_to_the_ramp() -> None:
    class Ramping(Cards):
        def read(self, seq: int, step: str) -> dict[str, Any]:
            sampler.step = "ramp"
            return super().read(seq, step)

    taken: list[dict[str, Any]] = []
    enough = threading.Event()

    def write(line: dict[str, Any]) -> None:
        taken.append(line)
        enough.set()

    sampler = Sampler(Ramping(), 50, write)
    sampler.step = "all_burn"
    sampler.start()
    assert enough.wait(5)
    assert sampler.end(timeout_s=1)
    assert {sample["step"] for sample in taken} == {"ramp"}
    assert sampler.has_sampled("ramp")
    assert not sampler.has_sampled("all_burn")


def test_sd_notify_speaks_to_the_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address = str(tmp_path / "notify")
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    monkeypatch.setenv("WATCHDOG_USEC", "15000000")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(address)
        listener.settimeout(1)
        notifier = Notifier.from_environment()
        notifier.ready("run r1")
        notifier.alive()
        notifier.stopping()
        assert [listener.recv(100) for _ in range(3)] == [b"READY=1\nSTATUS=run r1", b"WATCHDOG=1", b"STOPPING=1"]
    assert "NOTIFY_SOCKET" not in os.environ
    assert "WATCHDOG_USEC" not in os.environ


def test_sd_notify_knows_abstract_sockets_and_silence() -> None:
    name = f"rigctl-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(f"\0{name}")
        listener.settimeout(1)
        Notifier(f"@{name}").alive()
        assert listener.recv(100) == b"WATCHDOG=1"
    Notifier(None).alive()


def test_the_watchdog_is_not_fed_while_a_load_resists(bench: Bench) -> None:
    class Counted(Notifier):
        alive_calls = 0

        def alive(self) -> None:
            self.alive_calls += 1

    notifier = Counted(None)
    bench.places.spool("r1").mkdir(parents=True)
    guard = Guard(bench.plan(BURN), bench.places, bench.cards, notifier)
    guard._keep_alive(100.0)
    guard._keep_alive(100.2)
    guard._keep_alive(101.1)
    assert notifier.alive_calls == 2
    guard.steps.stuck_s = lambda _now: 6.0  # type: ignore[method-assign]
    guard._keep_alive(110.0)
    assert notifier.alive_calls == 2


def test_a_run_that_was_told_to_go_on_alone_needs_no_word(bench: Bench) -> None:
    steps = [{"name": "gpu_burn", "seconds": 1.5, "loads": ["gpu"]}]
    bench.run(bench.plan(steps, controller_lost_s=0.5, detached=True))
    assert [event["event"] for event in bench.events()][-1] == "plan_finished"
    assert not [event for event in bench.events() if event["event"] == "guard_stopped"]


def test_it_still_stops_for_its_cards(bench: Bench) -> None:
    bench.run(bench.plan(BURN, stale_sample_s=0.6, detached=True), bench.cards.hangs.set)
    assert bench.stop_event()["reason"] == "no_valid_sample"


@pytest.mark.parametrize("word", ["yes", 1, None])
def test_only_the_very_word_lets_a_run_go_on_alone(bench: Bench, word: object) -> None:
    assert bench.plan(BURN, detached=word).detached is False
