"""Processor sensors from hwmon, RAPL and /proc/stat, and the wall meter's forms."""

from __future__ import annotations

import json
import math
import os
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from rigctl.agent.cpu import CpuSensors, EnergyMeter, LoadMeter, cpu_temp_c, cpu_times, rapl_packages
from rigctl.agent.meters import MeterError, tasmota
from rigctl.agent.wall import WallMeter, asker

CORPUS = Path(os.environ.get("RIGCTL_CORPUS", Path(__file__).parents[3] / "shared" / "corpus"))


def hwmon(sys: Path, number: int, name: str, temps: dict[str, tuple[str | None, str]]) -> None:
    chip = sys / f"class/hwmon/hwmon{number}"
    chip.mkdir(parents=True)
    (chip / "name").write_text(f"{name}\n")
    for entry, (label, value) in temps.items():
        (chip / f"{entry}_input").write_text(value)
        if label is not None:
            (chip / f"{entry}_label").write_text(f"{label}\n")


@pytest.mark.parametrize(
    ("name", "temps", "found"),
    [
        ("k10temp", {"temp1": ("Tctl", "71250\n"), "temp3": ("Tccd1", "90000\n")}, 71.25),
        ("k10temp", {"temp1": ("Tctl", "81000\n"), "temp2": ("Tdie", "54000\n")}, 54.0),
        ("k10temp", {"temp1": (None, "48000\n")}, 48.0),
        ("coretemp", {"temp1": ("Package id 0", "63000\n"), "temp2": ("Core 0", "99000\n")}, 63.0),
        ("coretemp", {"temp1": ("Package id 0", "")}, None),
        ("nvme", {"temp1": ("Composite", "40000\n")}, None),
    ],
)
def test_cpu_temperature(tmp_path: Path, name: str, temps: dict[str, Any], found: float | None) -> None:
    hwmon(tmp_path, 0, "acpitz", {"temp1": (None, "20000\n")})
    hwmon(tmp_path, 1, name, temps)
    assert cpu_temp_c(tmp_path) == found


def test_the_hottest_package_counts(tmp_path: Path) -> None:
    hwmon(tmp_path, 0, "coretemp", {"temp1": ("Package id 0", "50000")})
    hwmon(tmp_path, 1, "coretemp", {"temp1": ("Package id 1", "61000")})
    assert cpu_temp_c(tmp_path) == 61


def rapl(sys: Path, domain: str, name: str, energy: str, span: str | None = "262143328850") -> None:
    folder = sys / "class/powercap" / domain
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "name").write_text(f"{name}\n")
    (folder / "energy_uj").write_text(energy)
    if span is not None:
        (folder / "max_energy_range_uj").write_text(span)


def test_rapl_counts_packages_only(tmp_path: Path) -> None:
    rapl(tmp_path, "intel-rapl:0", "package-0", "1000")
    rapl(tmp_path, "intel-rapl:0:0", "core", "900")
    rapl(tmp_path, "intel-rapl:1", "psys", "5000")
    assert rapl_packages(tmp_path) == {"intel-rapl:0": (1000, 262143328850)}


def test_power_is_energy_over_time() -> None:
    meter = EnergyMeter()
    assert meter.power_w(10.0, {"a": (0, 100_000_000), "b": (0, 100_000_000)}) is None
    assert meter.power_w(12.0, {"a": (100_000_000 - 1, None), "b": (60_000_000, None)}) == pytest.approx(80, abs=0.01)


def test_a_counter_that_wraps_gives_the_true_power() -> None:
    span = 100_000_000
    meter = EnergyMeter()
    meter.power_w(0.0, {"a": (95_000_000, span)})
    # 50 W for two seconds are 100 J: past the end of the range and exactly as far again.
    assert meter.power_w(1.0, {"a": (45_000_000, span)}) == pytest.approx(50)
    assert meter.power_w(2.0, {"a": (95_000_000, span)}) == pytest.approx(50)


def test_without_a_range_a_wrap_is_not_guessed() -> None:
    meter = EnergyMeter()
    meter.power_w(0.0, {"a": (95, None)})
    assert meter.power_w(1.0, {"a": (5, None)}) == 0


def test_power_follows_within_about_a_second() -> None:
    meter = EnergyMeter()
    energy, powers = 0, []
    for tick in range(60):
        energy += 1_000_000 if tick < 30 else 20_000_000
        powers.append(meter.power_w(tick / 10, {"a": (energy, None)}))
    assert powers[29] == pytest.approx(10)
    assert powers[45] == pytest.approx(200)


def test_load_from_ticks(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    stat.write_text("cpu  100 0 100 700 100 0 0 0 50 0\ncpu0 1 2 3\n")
    assert cpu_times(tmp_path) == (200, 1000)
    meter = LoadMeter()
    assert meter.util_pct(0.0, cpu_times(tmp_path)) is None
    stat.write_text("cpu  175 0 100 720 105 0 0 0 50 0\n")
    assert meter.util_pct(1.0, cpu_times(tmp_path)) == pytest.approx(75)


def test_what_is_not_there_is_none_with_a_reason(tmp_path: Path) -> None:
    sensors = CpuSensors(tmp_path, tmp_path)
    untold = ("cpu_temp_c", "cpu_power_w", "cpu_util_pct", "cpu_mhz")
    assert sensors.read(0.0) == {**dict.fromkeys(untold), "cpu_throttles": None}
    assert set(sensors.missing()) == set(untold)


STATUS_8 = {"StatusSNS": {"Time": "2026-11-30T02:00:00", "ENERGY": {"Total": 12.5, "Power": 1240, "Voltage": 229}}}


@pytest.mark.parametrize(
    ("answer", "power"),
    [
        (STATUS_8, 1240.0),
        ({"Time": "x", "ENERGY": {"Power": 96.5}}, 96.5),
        ({"StatusPWR": {"Total": 1.0, "Power": 88}}, 88.0),
        ({"ENERGY": {"Power": 0}}, 0.0),
    ],
)
def test_tasmota_forms(answer: Any, power: float) -> None:
    assert tasmota(answer).power_w == power


@pytest.mark.parametrize(
    "answer",
    [
        {},
        [],
        None,
        7,
        {"ENERGY": {"Power": "12"}},
        {"ENERGY": {"Power": True}},
        {"ENERGY": {"Power": math.nan}},
        {"ENERGY": {"Power": math.inf}},
        {"StatusSNS": "x"},
        {"Power": 3},
        {"ENERGY": {"Voltage": 230}},
        {"Command": "Unknown"},
        {"StatusPWR": [1]},
    ],
)
def test_what_holds_no_power_is_an_error_and_never_0(answer: Any) -> None:
    with pytest.raises(MeterError):
        tasmota(answer)


@pytest.mark.skipif(not (CORPUS / "power-meter").is_dir(), reason="no captures of real meters here")
def test_captures_of_real_meters() -> None:
    said = {path.name: json.loads(path.read_text()) for path in (CORPUS / "power-meter").glob("tasmota-*.json")}
    assert said
    for answer in said.values():
        assert tasmota(answer).power_w >= 0


class Meter(BaseHTTPRequestHandler):
    answer = json.dumps(STATUS_8).encode()

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(type(self).answer)

    def log_message(self, *_args: object) -> None:
        """Keep the test's output quiet."""


def test_reads_a_meter_over_http_and_says_when_it_is_gone() -> None:
    server = HTTPServer(("127.0.0.1", 0), Meter)
    url = f"http://127.0.0.1:{server.server_port}/cm?cmnd=Status%208"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    meter = WallMeter({"form": "tasmota", "url": url})
    assert meter.power() == (None, "no reading yet")
    meter.read_once()
    assert meter.power() == (1240.0, None)
    server.shutdown()
    server.server_close()
    meter.read_once()
    # The last reading is still the present power for a while; then the reason is told.
    assert meter.power() == (1240.0, None)
    meter._read_s = time.monotonic() - 10
    power, error = meter.power()
    assert power is None
    assert "does not answer" in (error or "")


def test_an_answer_that_is_no_http_does_not_end_the_readings() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            with server.accept()[0] as asking:
                asking.recv(4096)
                asking.sendall(b"\x00\x01 no meter speaks so\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        meter = WallMeter({"form": "tasmota", "url": f"http://127.0.0.1:{server.getsockname()[1]}/"})
        meter.read_once()
    power, error = meter.power()
    assert power is None
    assert "does not answer" in (error or "")


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/", "no url", "http://[broken"])
def test_a_wrong_address_is_an_error(url: str) -> None:
    with pytest.raises(MeterError):
        asker({"form": "tasmota", "url": url})()
