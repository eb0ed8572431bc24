"""The guard where it works: in a systemd unit on a simulated rig, with a burner that takes no notice of SIGTERM."""

from __future__ import annotations

import base64
import time
from typing import TYPE_CHECKING

import pytest

from rigctl.model.reading import Sample

from .on_rig import until

if TYPE_CHECKING:
    from .on_rig import OnRig

pytestmark = pytest.mark.rigs


def test_a_burn_is_polled_by_offset_and_acknowledged(rig: OnRig) -> None:
    started = rig.start(seconds=3)
    assert started["unit"] == f"rigctl-{rig.run_id}.service"
    fetched: dict[str, bytes] = {}

    def poll() -> bool:
        offsets = [word for name, data in fetched.items() for word in ("--offset", f"{name}={len(data)}")]
        reply = rig.ask("poll", "--run", rig.run_id, *offsets)
        for name, part in reply["files"].items():
            assert part["offset"] == len(fetched.get(name, b""))
            fetched[name] = fetched.get(name, b"") + base64.b64decode(part["data"])
        return bool(reply["unit"]["active"] != "active")

    until(poll, 30)
    samples = [Sample.model_validate_json(line) for line in fetched["telemetry.jsonl"].splitlines()]
    assert [sample.seq for sample in samples] == list(range(len(samples)))
    loaded = [sample for sample in samples if sample.step == "gpu_burn"]
    assert len(loaded) >= 0.7 * 10 * 3
    assert all(gpu.error is None and gpu.links_active for sample in loaded for gpu in sample.gpus)
    assert loaded[-1].gpus[0].pcie_gen == 4
    assert loaded[-1].wall_power_w is not None
    assert fetched["events.jsonl"] == "\n".join(rig.spooled("events.jsonl")).encode() + b"\n"
    assert [event.event for event in rig.events()][-1] == "plan_finished"
    assert rig.ask("ack", "--run", rig.run_id) == {"removed": True}
    assert "no readings" in rig.ask("poll", "--run", rig.run_id)["error"]


def test_a_second_run_is_refused_while_one_is_under_way(rig: OnRig) -> None:
    rig.start()
    until(rig.burning, 15)
    first = rig.run_id
    refused = rig.start()
    rig.run_id = first
    assert f"run {first} is under way" in refused["error"]
    rig.run_number -= 2
    assert rig.start()["already_started"] is True
    assert rig.run_id == first
    assert "still under way" in rig.ask("ack", "--run", first)["error"]
    stopped = rig.ask("stop", "--run", first, "--reason", "enough")
    assert stopped["was_active"] is True
    assert stopped["left_running"] == []
    assert rig.stop_event()["found"] == "enough"
    again = rig.ask("stop", "--run", first)
    assert (again["was_active"], again["left_running"]) == (False, [])


def test_a_lost_controller_stops_the_burn_in_time(rig: OnRig) -> None:
    rig.start(controller_lost_s=10)
    until(rig.burning, 15)
    silent_for = until(lambda: not rig.burning(), 15)
    assert silent_for < 15
    until(lambda: rig.active() == "inactive", 15)
    stop = rig.stop_event()
    assert (stop["reason"], stop["limit"]) == ("controller_lost", 10)


def test_a_dead_pump_stops_the_burn_at_the_limit(rig: OnRig) -> None:
    rig.shell("/usr/local/lib/rigsim/fault apply pump_dead")
    # Above what a cooled card settles at, so that only the dead pump can lead there.
    rig.start(seconds=300, max_gpu_temp_c=62, controller_lost_s=300)
    until(lambda: rig.active() == "inactive", 240)
    stop = rig.stop_event()
    assert (stop["reason"], stop["limit"]) == ("temperature", 62)
    # Stopped on the way there: the rise would have crossed the limit within 2 s.
    assert 54 <= stop["found"] <= 63
    assert max(gpu.temp_c or 0 for sample in rig.samples() for gpu in sample.gpus) < 64
    at = {event.event: event.t_mono_s for event in rig.events()}
    assert at["load_exited"] - at["guard_stopped"] < 1


def test_a_run_that_takes_too_long_is_ended_by_systemd(rig: OnRig) -> None:
    rig.start(short=True)
    until(rig.burning, 15)
    until(lambda: rig.active() not in {"active", "deactivating"}, 25)
    assert not rig.burning()
    assert rig.unit_result() == "timeout"
    assert rig.stop_event()["reason"] == "asked"
    assert rig.events()[-1].event == "plan_finished"


def test_a_guard_that_hangs_takes_the_burn_with_it(rig: OnRig) -> None:
    rig.start()
    until(rig.burning, 15)
    rig.shell(f"kill -STOP {rig.guard_pid()}")
    assert until(lambda: not rig.burning(), 25) < 25
    assert rig.unit_result() == "watchdog"
    assert rig.ask("stop", "--run", rig.run_id)["left_running"] == []


def test_a_guard_that_is_killed_takes_the_burn_with_it(rig: OnRig) -> None:
    rig.start()
    until(rig.burning, 15)
    rig.shell(f"kill -KILL {rig.guard_pid()}")
    assert until(lambda: not rig.burning(), 5) < 5
    assert rig.ask("poll", "--run", rig.run_id)["unit"] | {"status": ""} == {
        "active": "failed",
        "result": "signal",
        "status": "",
        "exit_status": "9",
    }


def test_a_driver_that_no_longer_answers_stops_the_burn(rig: OnRig) -> None:
    rig.start()
    until(rig.burning, 15)
    # The simulated driver answers from what its daemon says; a daemon that stands still is a driver that does.
    rig.shell("systemctl kill -s STOP rigsim-hardware")
    try:
        assert until(lambda: not rig.burning(), 20) < 20
    finally:
        rig.shell("systemctl kill -s CONT rigsim-hardware")
    until(lambda: rig.active() == "inactive", 20)
    stop = rig.stop_event()
    assert (stop["reason"], stop["limit"]) == ("no_valid_sample", 5)


def test_a_full_disk_stops_the_burn_and_says_so(rig: OnRig) -> None:
    rig.shell("mkdir -p /var/lib/rigctl && mount -t tmpfs -o size=1M tmpfs /var/lib/rigctl")
    try:
        rig.start()
        until(rig.burning, 15)
        spool = f"/var/lib/rigctl/runs/{rig.run_id}"
        rig.shell(f"dd if=/dev/zero of={spool}/.filler bs=4k &>/dev/null || true")
        until(lambda: rig.active() != "active", 20)
        assert not rig.burning()
        stop = rig.stop_event()
        assert stop["reason"] == "spool_failed"
        assert "No space left" in stop["found"]
        assert rig.events()[-1].event == "plan_finished"
    finally:
        rig.ask("stop", "--run", rig.run_id)
        rig.shell("umount -l /var/lib/rigctl")


def test_a_rig_without_the_burner_goes_on_with_the_other_steps(rig: OnRig) -> None:
    rig.start(
        gpu_burn_dir="/nowhere",
        steps=[
            {"name": "gpu_burn", "seconds": 5, "loads": ["gpu"]},
            {"name": "idle", "seconds": 1, "loads": []},
        ],
    )
    until(lambda: rig.active() == "inactive", 20)
    events = rig.events()
    (error,) = [event.detail for event in events if event.event == "error"]
    assert error["needs"] == "gpu_burn"
    assert "rigctl provision" in str(error["hint"])
    assert ("step_finished", "idle") in [(event.event, event.step) for event in events]


def test_the_kernel_log_is_read_and_kept(rig: OnRig) -> None:
    told = rig.ask("kernel", "--since-mono", "0", "--boot-id", "any")
    assert told["kernel_read"] is True
    assert any("NVRM: loading" in message["message"] for message in told["kernel"])
    # The rig's monotonic clock is this machine's.
    later = rig.ask("kernel", "--since-mono", f"{time.monotonic() + 60:.0f}", "--boot-id", told["boot_id"])
    assert (later["kernel"], later["kernel_read"]) == ([], True)
    rig.start(seconds=1)
    until(lambda: rig.active() == "inactive", 20)
