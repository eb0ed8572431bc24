"""What the guard promises, on a rig at time scale 1: heat at 5 °C/s, whatever is killed, the rig as it was before."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from .on_rig import BURN_DIR, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .on_rig import OnRig

pytestmark = [pytest.mark.rigs, pytest.mark.slow, pytest.mark.timeout(600)]

Record = Callable[[str, object], None]
"""pytest's own: what was measured stands in the JUnit report."""
RIGCTL = Path(sys.executable).parent / "rigctl"
LOST_S = 20
"""`controller_lost_s` of these runs."""
MINER = """[Service]
ExecStart=/bin/bash -c "printf 'gpu 0 other 0.1 500\\n' >/run/rigsim/load/$$$$; exec sleep infinity"
"""
"""A service that holds a card."""
FAST_J_PER_C = 75
"""Heat capacity of a card that heats at 5 °C/s once its pump is dead: 440 W less what it still gives away."""


def limits(rig: OnRig) -> list[float]:
    return [card["power_limit_w"] for card in rig.ask("facts")["gpus"]]


@pytest.fixture
def as_found(rig: OnRig) -> Iterator[OnRig]:
    """A rig with limits of its own and a service on a card; both are as before afterwards, whatever a test does."""
    rig.shell("nvidia-smi -i 0 -pl 300 && nvidia-smi -i 1 -pl 320")
    rig.put("/etc/systemd/system/miner.service", MINER.encode())
    rig.shell("systemctl daemon-reload && systemctl start miner")
    until(lambda: bool(rig.ask("facts")["compute_processes"]), 60)
    yield rig
    until(lambda: rig.active() not in {"active", "deactivating"}, 120)
    assert limits(rig) == [300, 320]
    until(lambda: rig.shell("systemctl is-active miner || true").strip() == "active", 60)
    rig.shell("systemctl stop miner; rm /etc/systemd/system/miner.service; systemctl daemon-reload; nvidia-smi -pl 450")


def start_burn(rig: OnRig, **changed: object) -> None:
    """In the middle of the ramp, when the limits are not the rig's own and its service stands still."""
    plan = {"controller_lost_s": 600, "ramp_s": 120, "evict_users": True, "asked_by": "test@desk"} | changed
    started = rig.start(seconds=1200, **plan)
    assert "error" not in started, started
    until(lambda: rig.burning() and "step gpu_burn" in rig.guard_status(), 60)
    state = rig.shell(
        "nvidia-smi --query-gpu=power.limit --format=csv,noheader,nounits; systemctl is-active miner; true"
    )
    assert "300" not in state, "not in the middle of the ramp"
    assert state.split()[-1] == "inactive"


def test_a_card_that_heats_at_5_degrees_a_second_is_stopped_before_its_limit(
    rig: OnRig, record_testsuite_property: Record
) -> None:
    rig.shell("/usr/local/lib/rigsim/fault apply pump_dead")
    rig.shell("cp /var/lib/rigsim/identity.json /var/backups/identity.json")
    change = f"i['card']['capacity_j_per_c'] = {FAST_J_PER_C}"
    rig.shell(
        f"python3 -c \"import json; p = '/var/lib/rigsim/identity.json'; i = json.load(open(p)); {change}; "
        "json.dump(i, open(p, 'w'))\" && systemctl restart rigsim-hardware"
    )
    try:
        until(lambda: len(rig.ask("facts")["gpus"]) == 2, 15)
        # The profile asks for one sample a second; the guard takes four while it gets warmer.
        rig.start(seconds=300, max_gpu_temp_c=80, controller_lost_s=600, sample_hz=1)
        until(lambda: rig.active() == "inactive", 120)
    finally:
        rig.shell("mv /var/backups/identity.json /var/lib/rigsim/identity.json; systemctl restart rigsim-hardware")
    stop = rig.stop_event()
    assert (stop["reason"], stop["limit"], stop["sensor"]) == ("temperature", 80, "core")
    samples = rig.samples()
    hottest = max(gpu.temp_c or 0 for sample in samples for gpu in sample.gpus)
    record_testsuite_property("hottest card at 5 °C/s, limit 80, °C", hottest)
    assert hottest < 82
    loaded = [sample for sample in samples if sample.step == "gpu_burn"]
    rise = (loaded[-1].gpus[0].temp_c or 0) - (loaded[0].gpus[0].temp_c or 0)
    seconds = loaded[-1].t_mono_s - loaded[0].t_mono_s
    assert 4 < rise / (seconds - 1) < 7, "the card did not heat as this test means it"
    assert len(loaded) / seconds > 3.5


def test_limits_are_raised_in_steps_and_samples_say_so(rig: OnRig) -> None:
    before = limits(rig)
    rig.start(seconds=60, ramp_s=4, controller_lost_s=600)
    until(lambda: any(event.event == "ramp_finished" for event in rig.events()), 90)
    assert limits(rig) == before
    ramp = [sample for sample in rig.samples() if sample.step == "ramp"]
    limits_w = [sample.gpus[0].limit_w or 0 for sample in ramp]
    # The very first sample may have been read while the limit was about to fall.
    seen = limits_w[next(n for n, watts in enumerate(limits_w) if watts < before[0]) :]
    assert seen == sorted(seen)
    assert len(set(seen)) >= 3
    assert rig.ask("stop", "--run", rig.run_id)["left_running"] == []


def test_a_burn_does_not_outlive_its_killed_guard_and_the_rig_is_as_before(
    as_found: OnRig, record_testsuite_property: Record
) -> None:
    start_burn(as_found)
    outlived_s = as_found.seconds_until_quiet(f"kill -KILL {as_found.guard_pid()}", 10)
    record_testsuite_property("burn outlived its killed guard, s", outlived_s)
    assert outlived_s < 5
    until(lambda: as_found.active() == "failed", 60)
    assert as_found.unit_result() == "signal"
    restored = json.loads("".join(as_found.spooled("restored.json")))
    assert restored["failed"] == []
    assert any("power limit 300 W" in words for words in restored["restored"])
    assert "service miner.service started again" in restored["restored"]


def test_a_burn_does_not_outlive_a_guard_that_hangs(as_found: OnRig, record_testsuite_property: Record) -> None:
    start_burn(as_found)
    outlived_s = as_found.seconds_until_quiet(f"kill -STOP {as_found.guard_pid()}", 10)
    record_testsuite_property("burn outlived its hanging guard, s", outlived_s)
    assert outlived_s < 5
    until(lambda: as_found.active() == "failed", 60)
    assert as_found.unit_result() == "watchdog"


def test_a_burn_does_not_outlive_the_last_word_of_its_controller(
    as_found: OnRig, record_testsuite_property: Record
) -> None:
    start_burn(as_found, controller_lost_s=30)
    until(lambda: as_found.active() == "inactive", 120)
    assert as_found.stop_event()["reason"] == "controller_lost"
    silent_s = as_found.event_s("load_exited") - as_found.heard_s()
    record_testsuite_property("beyond controller_lost_s, no word, s", round(silent_s - 30, 2))
    assert 30 < silent_s < 30 + 5


def test_a_killed_poll_is_no_stop_and_the_next_one_goes_on(rig: OnRig) -> None:
    rig.start(controller_lost_s=600)
    until(rig.burning, 60)
    poll = f"python3 -I /var/cache/rigctl/agent.pyz poll --run {rig.run_id}"
    rig.shell(f"for after in 0.02 0.1 0.3; do timeout -s KILL $after {poll} >/dev/null || true; done")
    assert rig.ask("poll", "--run", rig.run_id)["unit"]["active"] == "active"
    assert rig.burning()


def test_somebody_elses_work_stops_the_burn_and_is_named(rig: OnRig) -> None:
    rig.start(controller_lost_s=600)
    until(rig.burning, 60)
    rig.shell("id alice >/dev/null 2>&1 || useradd -m alice")
    rig.put("/opt/others", b"#!/bin/bash\nprintf 'gpu 1 train 0.5 900\\n' >/run/rigsim/load/$$\nexec sleep 300\n")
    rig.shell("setsid runuser -u alice /opt/others >/dev/null 2>&1 & true")
    try:
        until(lambda: rig.active() == "inactive", 90)
    finally:
        rig.shell("pkill -u alice || true")
    stop = rig.stop_event()
    assert stop["reason"] == "others_work"
    assert "sleep 300 (alice) on slot2" in stop["found"]


class Controller:
    """`rigctl accept` of the rig, as an operator has it."""

    def __init__(self, rig: OnRig, folder: Path) -> None:
        inventory = rig.state.inventory
        profile = {
            "idle_seconds": 1,
            "cpu_burn_seconds": 0,
            "gpu_burn_seconds": 900,
            "all_burn_seconds": 0,
            "train": False,
            "sample_hz": 4,
            "controller_lost_s": LOST_S,
        }
        settings = {"rig_profiles": {"guard": profile}, "gpu_burn_dir": BURN_DIR}
        (inventory / "group_vars" / "all" / "tests.yml").write_text(yaml.safe_dump(settings))
        words = ["accept", "rig1", "-i", str(inventory), "--runs", str(folder), "--profile", "guard", "--evict-users"]
        self.log = folder / "accept.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen([RIGCTL, *words], stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def kill(self) -> None:
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def burning(as_found: OnRig, tmp_path: Path) -> Iterator[tuple[OnRig, Controller]]:
    controller = Controller(as_found, tmp_path)
    try:
        until(lambda: as_found.burning() or controller.process.poll() is not None, 180)
        assert controller.process.poll() is None, controller.log.read_text()
        as_found.run_id = as_found.shell("ls /var/lib/rigctl/runs").split()[-1]
        yield as_found, controller
    finally:
        controller.kill()


def cut_network(rig: OnRig) -> Callable[[], object]:
    rig.shell("ip link set eth0 down")
    return lambda: rig.shell("ip link set eth0 up")


def kill_sshd(rig: OnRig) -> Callable[[], object]:
    rig.shell(
        "systemctl kill -s KILL ssh.service; systemctl stop ssh.service ssh.socket 2>/dev/null; pkill -KILL sshd; true"
    )
    return lambda: rig.shell("systemctl start ssh.service")


@pytest.mark.parametrize("cut", [cut_network, kill_sshd])
def test_a_burn_does_not_outlive_its_way_to_the_controller(
    burning: tuple[OnRig, Controller], cut: Callable[[OnRig], Callable[[], object]], record_testsuite_property: Record
) -> None:
    rig, _controller = burning
    mend = cut(rig)
    try:
        until(lambda: rig.active() == "inactive", 120)
        assert rig.stop_event()["reason"] == "controller_lost"
        silent_s = rig.event_s("load_exited") - rig.heard_s()
        record_testsuite_property(f"beyond controller_lost_s, {cut.__name__}, s", round(silent_s - LOST_S, 2))
        assert LOST_S < silent_s < LOST_S + 5
    finally:
        mend()


def test_a_burn_does_not_outlive_its_controller(
    burning: tuple[OnRig, Controller], record_testsuite_property: Record
) -> None:
    rig, controller = burning
    controller.kill()
    until(lambda: rig.active() == "inactive", 120)
    assert rig.stop_event()["reason"] == "controller_lost"
    silent_s = rig.event_s("load_exited") - rig.heard_s()
    record_testsuite_property("beyond controller_lost_s, controller killed, s", round(silent_s - LOST_S, 2))
    assert LOST_S < silent_s < LOST_S + 5


def test_a_second_acceptance_is_refused_with_who_and_since_when(rig: OnRig) -> None:
    rig.start(asked_by="alice@desk", controller_lost_s=600)
    # The load is begun a moment before the unit's own words say so.
    until(lambda: rig.burning() and "gpu_burn" in rig.guard_status(), 60)
    first = rig.run_id
    refused = rig.start(asked_by="bob@lab")
    assert f"run {first} of alice@desk is under way on this rig since 20" in refused["error"]
    assert "step gpu_burn" in refused["error"]
    taken = rig.start(asked_by="bob@lab", ignore_lock=True, controller_lost_s=600)
    assert "error" not in taken, taken
    second, rig.run_id = rig.run_id, first
    assert f"run {second} of bob@lab took the rig over (--ignore-lock)" in rig.stop_event()["found"]
    rig.ask("ack", "--run", first)
    rig.run_id = second


def test_who_uses_a_rig_is_said_and_it_is_not_burnt(as_found: OnRig) -> None:
    refused = as_found.start()
    assert "the rig is in use: root computes on slot1: sleep infinity (process" in refused["error"]
    assert "--evict-users" in refused["hint"]
    assert not as_found.burning()


def test_heavy_work_on_the_processor_and_people_logged_in_are_named(rig: OnRig) -> None:
    words = ["ssh", "-tt", "-F", str(rig.state.ssh_config), "rig1", "sleep 300"]
    held = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    rig.shell("nohup yes >/dev/null 2>&1 & true")
    try:
        until(lambda: "pts/" in rig.shell("who"), 60)
        refused = rig.start()
        assert "is logged in on pts/" in refused["error"]
        # Where this machine is so busy that the program gets less than a core, it is none that holds the rig.
        assert "cores busy: yes (process" in refused["error"] or os.getloadavg()[0] > (os.cpu_count() or 1)
        rig.shell("pkill -x yes || true")
        evicted = rig.start(seconds=20, evict_users=True, asked_by="bob@lab")
        assert "error" not in evicted, evicted
        told, _ = held.communicate(timeout=60)
        assert b"asked for by bob@lab, needs this rig" in told
    finally:
        rig.shell("pkill -x yes || true")
        held.terminate()
        held.wait()


def command(rig: OnRig, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    inventory = rig.state.inventory
    (inventory / "group_vars" / "all" / "tests.yml").write_text(yaml.safe_dump({"gpu_burn_dir": BURN_DIR}))
    asked = [RIGCTL, *words, "-i", str(inventory), "--json"]
    return subprocess.run(
        asked, capture_output=True, text=True, check=False, timeout=300, cwd=folder, stdin=subprocess.DEVNULL
    )


def test_one_card_is_found_by_its_load_and_the_other_rests(rig: OnRig, tmp_path: Path) -> None:
    done = command(rig, tmp_path, "identify", "rig1", "slot2", "--seconds", "10")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["slot"] == 2
    assert found["max_power_w"] > 5 * found["others_max_power_w"]
    assert found["stopped"] is None
    assert rig.shell("ls /var/lib/rigctl/runs").strip() == ""
    unknown = command(rig, tmp_path, "identify", "rig1", "ffff")
    assert (unknown.returncode, "means 0 cards" in unknown.stderr) == (3, True)


def test_the_evidence_of_a_rig_is_bundled_and_says_what_is_missing(rig: OnRig, tmp_path: Path) -> None:
    done = command(rig, tmp_path, "evidence", "rig1", "--output", "rig1.tar.gz")
    assert done.returncode == 0, done.stderr
    pieces = {piece["file"]: piece for piece in json.loads(done.stdout)["pieces"]}
    assert pieces["rig/nvidia-smi-q.xml"]["bytes"] > 1000
    assert pieces["rig/agent.json"]["problem"] is None
    assert pieces["rig/ipmi-events.txt"]["problem"], "no management controller is simulated"
    assert (tmp_path / "rig1.tar.gz").stat().st_mode & 0o077 == 0
