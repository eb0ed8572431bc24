"""The daemon: what it shows, what it does with loads, limits, the module and faults."""

from __future__ import annotations

import json
import urllib.error
import urllib.request

import pytest

from rigctl.sim.machine.hardware.rigsim import daemon as daemon_module
from rigctl.sim.machine.hardware.rigsim import faultctl, module, sysfs
from rigctl.sim.machine.hardware.rigsim.faults import CATALOGUE, FaultError

from .conftest import Daemon, put_load, state_of


def tick(daemon: Daemon, times: int = 1) -> dict[str, str]:
    for _ in range(times):
        daemon.tick(0.1)
    return state_of(daemon)


def get(url: str) -> dict[str, object]:
    with urllib.request.urlopen(url, timeout=5) as reply:  # noqa: S310 (the meter that the test started)
        found: dict[str, object] = json.load(reply)
    return found


def apply(daemon: Daemon, name: str, when: str = "now", **parameters: str) -> dict[str, str]:
    faultctl.apply(daemon.paths, name, parameters, when)
    return tick(daemon, 2)


def test_state_at_rest(daemon):
    state = tick(daemon, 20)
    assert state["gpu.count"] == "2"
    assert state["gpu.0.slot"] == "1"
    assert state["gpu.0.pcie_gen"] == "1"
    assert state["gpu.0.pcie_width"] == "8"
    assert state["gpu.0.power_limit_mw"] == "450000"
    assert state["gpu.1.link.3.remote_bus_id"] == state["gpu.0.pci_bus_id"]


@pytest.mark.parametrize("by_uuid", [True, False])
def test_a_load_makes_one_card_work(daemon, by_uuid):
    card = state_of(daemon)["gpu.1.uuid"] if by_uuid else "1"
    put_load(daemon.paths, f"gpu {card} compute 1.0 21000")
    state = tick(daemon, 30)
    assert int(state["gpu.1.power_mw"]) > 400_000
    assert state["gpu.1.pcie_gen"] == "4"
    assert state["gpu.1.pstate"] == "2"
    assert state["gpu.1.memory_used_mib"] == "21001"
    assert int(state["gpu.0.power_mw"]) < 25_000


def test_the_load_of_a_dead_process_ends(daemon):
    (daemon.paths.loads / "999999999").write_text("gpu 0 compute 1.0 0\n", encoding="ascii")
    assert tick(daemon)["gpu.0.util_gpu_pct"] == "0"
    assert not list(daemon.paths.loads.iterdir())


def test_a_half_written_load_is_left_alone(daemon):
    put_load(daemon.paths, "gpu 0", "gpu 1 compute many 0")
    assert tick(daemon)["gpu.0.util_gpu_pct"] == "0"


def test_a_limit_holds_until_the_module_is_loaded_again(daemon):
    module.load(daemon.paths, "515.105.01")
    tick(daemon)
    (daemon.paths.control / "slot.2.power_limit_mw").write_text("300000\n", encoding="ascii")
    assert tick(daemon)["gpu.1.power_limit_mw"] == "300000"
    module.load(daemon.paths, "525.147.05")
    state = tick(daemon)
    assert state["gpu.1.power_limit_mw"] == "450000"
    lines = daemon.paths.kernel_log.read_text().splitlines()
    assert any("NVRM: loading NVIDIA UNIX x86_64 Kernel Module  525.147.05" in line for line in lines)


def test_a_restarted_daemon_takes_the_module_as_it_is(daemon, identity):
    module.load(daemon.paths, "515.105.01")
    tick(daemon)
    (daemon.paths.control / "slot.1.power_limit_mw").write_text("480000\n", encoding="ascii")
    again = Daemon(daemon.paths, identity, {}, port=0)
    again.start()
    assert state_of(again)["gpu.0.power_limit_mw"] == "480000"
    assert daemon.paths.kernel_log.read_text().count("NVRM: loading") == 1
    again.meter.set_online(online=False)


def test_card_missing(daemon):
    state = apply(daemon, "card_missing", slot="1")
    assert state["gpu.count"] == "1"
    assert state["gpu.0.slot"] == "2"
    assert state["gpu.0.link.0.active"] == "0"


def test_nv3(daemon):
    state = apply(daemon, "nv3", link="2")
    assert [state[f"gpu.0.link.{link}.active"] for link in range(4)] == ["1", "1", "0", "1"]
    assert state["gpu.1.link.2.mb_per_s"] == "0"


def test_pump_dead_is_felt_under_load_only(daemon):
    apply(daemon, "pump_dead")
    assert float(tick(daemon, 100)["gpu.0.temp_c"]) < 40
    put_load(daemon.paths, "gpu 0 compute 1 0", "gpu 1 compute 1 0")
    state = tick(daemon, 60)
    assert float(state["gpu.0.temp_c"]) > 83
    assert int(state["gpu.0.throttle"]) & 0x60


def test_burn_errors(daemon):
    state = apply(daemon, "burn_errors", slot="2", per_s="500")
    assert state["gpu.0.compute_errors_per_s"] == "0"
    assert state["gpu.1.compute_errors_per_s"] == "500"


def test_faults_of_the_power_are_felt_and_go_away(daemon):
    power_w = float(tick(daemon, 5)["gpu.1.power_mw"]) / 1000
    assert float(apply(daemon, "idle_power_high", slot="2")["gpu.1.power_mw"]) / 1000 > power_w + 60
    assert apply(daemon, "power_limit_low", slot="2")["gpu.1.power_limit_mw"] == "300000"
    put_load(daemon.paths, "gpu 0 compute 1 0", "gpu 1 compute 1 0")
    apply(daemon, "power_brake", slot="1")
    state = tick(daemon, 5)
    assert int(state["gpu.0.throttle"]) & 0x80
    assert int(state["gpu.1.throttle"]) & 0x84 == 0x4
    assert sorted(faultctl.clear(daemon.paths, None)) == ["idle_power_high", "power_brake", "power_limit_low"]
    state = tick(daemon, 5)
    assert state["gpu.1.power_limit_mw"] != "300000"
    assert not int(state["gpu.0.throttle"]) & 0x80


def test_cards_may_get_less_done_with_newer_drivers_alone(daemon):
    def rates(driver):
        module.load(daemon.paths, driver)
        tick(daemon, 1)
        put_load(daemon.paths, "gpu 0 compute 1 0", "gpu 1 compute 1 0")
        state = tick(daemon, 5)
        return [float(state[f"gpu.{index}.gflops"]) for index in range(2)], int(state["gpu.0.throttle"])

    whole, throttle = rates("515.105.01")
    apply(daemon, "cards_slow", since="535")
    assert rates("515.105.01") == (pytest.approx(whole, rel=0.02), throttle)
    assert rates("535.183.01") == (pytest.approx([0.85 * rate for rate in whole], rel=0.02), throttle)
    apply(daemon, "cards_slow", pct="50")
    assert rates("515.105.01")[0] == pytest.approx([0.5 * rate for rate in whole], rel=0.02)


def test_a_wall_meter_can_be_stuck_or_lose_its_scale(daemon):
    tick(daemon, 5)
    base = f"http://127.0.0.1:{daemon.meter.port}"
    rest_w = daemon.wall_w
    apply(daemon, "wall_meter_stuck")
    put_load(daemon.paths, "gpu 0 compute 1 0", "gpu 1 compute 1 0")
    tick(daemon, 20)
    assert daemon.wall_w > rest_w + 500
    assert get(f"{base}/rpc/Switch.GetStatus?id=0")["apower"] == pytest.approx(rest_w, rel=0.1)
    assert faultctl.clear(daemon.paths, None) == ["wall_meter_stuck"]
    apply(daemon, "wall_meter_absurd")
    assert get(f"{base}/rpc/Switch.GetStatus?id=0")["apower"] == pytest.approx(daemon.wall_w / 10, abs=0.1)


def test_wall_meter_speaks_two_languages_and_can_be_offline(daemon):
    tick(daemon, 5)
    base = f"http://127.0.0.1:{daemon.meter.port}"
    tasmota = get(f"{base}/cm?cmnd=Status%208")
    assert tasmota["StatusSNS"]["ENERGY"]["Power"] == pytest.approx(daemon.wall_w, abs=1)
    shelly = get(f"{base}/rpc/Switch.GetStatus?id=0")
    assert shelly["apower"] == pytest.approx(daemon.wall_w, abs=1)
    apply(daemon, "wall_meter_offline")
    with pytest.raises(urllib.error.URLError):
        get(f"{base}/cm?cmnd=Status%208")


def test_a_fault_can_wait_for_a_load(daemon):
    assert apply(daemon, "card_missing", when="load")["gpu.count"] == "2"
    put_load(daemon.paths, "gpu 0 compute 1.0 0")
    assert tick(daemon, 2)["gpu.count"] == "1"
    assert [one.status for one in daemon.faults] == ["active"]


def test_a_fault_can_wait_for_a_boot(daemon, identity, tmp_path, monkeypatch):
    assert apply(daemon, "nv3", when="boot")["gpu.0.link.3.active"] == "1"
    same_boot = Daemon(daemon.paths, identity, {}, port=0)
    same_boot.start()
    assert state_of(same_boot)["gpu.0.link.3.active"] == "1"
    same_boot.meter.set_online(online=False)
    (tmp_path / "boot_id").write_text("another\n")
    monkeypatch.setattr(daemon_module, "BOOT_ID", tmp_path / "boot_id")
    next_boot = Daemon(daemon.paths, identity, {}, port=0)
    next_boot.start()
    assert state_of(next_boot)["gpu.0.link.3.active"] == "0"
    next_boot.meter.set_online(online=False)


def test_a_fault_that_is_no_hardware_runs_its_program_at_the_load(daemon):
    program = daemon.paths.machine / "faults.d" / "ssh_down"
    program.parent.mkdir(parents=True)
    program.write_text(
        f'#!/bin/sh\necho "$@" > {daemon.paths.run}/called.new\n'
        f"mv {daemon.paths.run}/called.new {daemon.paths.run}/called\n"
    )
    program.chmod(0o755)
    apply(daemon, "ssh_down", when="load", seconds="20")
    assert not (daemon.paths.run / "called").exists()
    put_load(daemon.paths, "gpu 0 compute 1.0 0")
    tick(daemon)
    for _ in range(200):
        if (daemon.paths.run / "called").exists():
            break
        daemon_module.time.sleep(0.02)
    assert (daemon.paths.run / "called").read_text() == "apply seconds=20\n"


def test_a_card_that_gets_too_hot_falls_off_the_bus(daemon):
    daemon.machine.cards[0].temp_c = 120.0
    state = tick(daemon)
    assert state["gpu.0.lost"] == "1"
    assert "Xid (PCI:0000:01:00): 79" in daemon.paths.kernel_log.read_text()


@pytest.mark.parametrize(
    ("name", "parameters", "when", "says"),
    [
        ("card_missing", {"slot": "two"}, "now", "slot=two"),
        ("nv3", {"link": "9"}, "now", "0 to 3"),
        ("pump_dead", {"speed": "1"}, "now", "no parameter speed"),
        ("pump_dead", {}, "later", "when=later"),
        ("no_such", {}, "now", "no fault no_such"),
    ],
)
def test_bad_faults_are_refused(daemon, name, parameters, when, says):
    with pytest.raises(FaultError, match=says):
        faultctl.apply(daemon.paths, name, parameters, when)


def test_clearing_gives_the_hardware_back(daemon):
    apply(daemon, "card_missing")
    apply(daemon, "nv3")
    assert faultctl.clear(daemon.paths, "card_missing") == ["card_missing"]
    assert faultctl.clear(daemon.paths, None) == ["nv3"]
    state = tick(daemon)
    assert state["gpu.count"] == "2"
    assert state["gpu.0.link.3.active"] == "1"


def test_the_entry_speaks_json(daemon, monkeypatch, capsys):
    monkeypatch.setenv("RIGSIM_RUN", str(daemon.paths.run))
    monkeypatch.setenv("RIGSIM_KEPT", str(daemon.paths.kept))
    assert faultctl.main(["apply", "burn_errors", "slot=1", "when=load"]) == 0
    assert json.loads(capsys.readouterr().out)["applied"]["values"] == {"slot": 1, "per_s": 40_000}
    assert faultctl.main(["list"]) == 0
    assert json.loads(capsys.readouterr().out)["faults"][0]["status"] == "waiting for a load"
    assert faultctl.main(["apply"]) == 2
    assert "usage" in json.loads(capsys.readouterr().err)["error"]


def test_every_fault_of_the_catalogue_can_be_applied(daemon):
    for info in CATALOGUE:
        assert faultctl.apply(daemon.paths, info.name, {}, "now").active
    tick(daemon)


def test_sensors_and_counters_are_shown_as_the_kernel_shows_them(daemon):
    tick(daemon, 10)
    hwmon = daemon.paths.sys / "class" / "hwmon" / "hwmon0"
    assert (hwmon / "name").read_text() == "k10temp\n"
    assert int((hwmon / "temp1_input").read_text()) == pytest.approx(1000 * daemon.machine.cpu_temp_c, abs=63)
    assert (hwmon / "device").resolve().name == "0000:00:18.3"
    assert (hwmon / "device" / "subsystem").resolve().name == "pci"
    energy = daemon.paths.sys / "class" / "powercap" / "intel-rapl:0" / "energy_uj"
    assert int(energy.read_text()) > 0
    assert energy.stat().st_mode & 0o777 == 0o400
    assert "simulated" in (daemon.paths.sys / "class" / "dmi" / "id" / "product_name").read_text()


def test_the_energy_counter_wraps(daemon):
    sysfs.update(daemon.paths, 50.0, sysfs.RAPL_RANGE_UJ / 1e6 + 3.0)
    energy = daemon.paths.sys / "class" / "powercap" / "intel-rapl:0" / "energy_uj"
    assert int(energy.read_text()) == pytest.approx(3_000_000, abs=2)


def test_a_lying_tachometer_says_one_figure_and_the_others_tremble(daemon):
    fans = [daemon.paths.sys / "class/hwmon/hwmon1" / f"fan{number}_input" for number in (1, 2)]

    def speeds(number):
        seen = []
        for _ in range(8):
            tick(daemon)
            seen.append(int(fans[number].read_text()))
        return seen

    assert len(set(speeds(0))) > 1
    apply(daemon, "tachometer_lies")
    assert set(speeds(0)) == {1500}
    assert len(set(speeds(1))) > 1


def test_a_broken_sensor_says_zero_and_the_card_is_as_warm_as_it_was(daemon):
    state = apply(daemon, "sensors_invalid", slot="1")
    assert (state["gpu.0.temp_c"], float(state["gpu.1.temp_c"]) > 20) == ("0.00", True)
    assert daemon.machine.cards[0].temp_c > 20
