"""Every form of wall meter: asked as a rig asks it, and what it says when it cannot be read."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from rigctl.agent.meters import MeterError, plain
from rigctl.agent.wall import WallMeter, asker
from rigctl.sim.machine.hardware.rigsim.meter import WallMeter as SimulatedMeter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DCMI = """
    Instantaneous power reading:                  1239 Watts
    Minimum during sampling period:                  4 Watts
    Power reading state is:                   activated
"""


def program(folder: Path, name: str, text: str, status: int = 0) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\nexit {status}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.fixture
def first_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path


@pytest.fixture
def simulated() -> Iterator[SimulatedMeter]:
    meter = SimulatedMeter(lambda: (1238.6, 0.0), 230.0, 0)
    meter.set_online(online=True)
    yield meter
    meter.set_online(online=False)


def test_plugs_of_both_makers_are_asked_over_http(simulated: SimulatedMeter) -> None:
    address = f"http://127.0.0.1:{simulated.port}"
    assert asker({"form": "tasmota", "url": f"{address}/cm?cmnd=Status%208"})() == (1239, 1)
    assert asker({"form": "shelly", "url": f"{address}/rpc/Switch.GetStatus?id=0"})().power_w == 1238.6


class TwoOutlets(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        outlets = {f"switch:{n}": {"output": True, "apower": watts} for n, watts in enumerate((12.5, 1201.0))}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(outlets).encode())

    def log_message(self, *_args: object) -> None:
        """Keep the test's output quiet."""


def test_the_outlet_that_feeds_the_rig_is_read() -> None:
    with HTTPServer(("127.0.0.1", 0), TwoOutlets) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/rpc/Shelly.GetStatus"
        assert asker({"form": "shelly", "url": url, "channel": 1})().power_w == 1201


def test_a_ups_and_a_management_controller_are_asked_by_their_programs(first_on_path: Path) -> None:
    program(first_on_path, "upsc", 'echo "asked for $1" >&2; printf "ups.status: OL\\nups.realpower: 1236\\n"')
    program(first_on_path, "ipmitool", f'[ "$*" = "dcmi power reading" ] || exit 9\ncat <<E\n{DCMI}E')
    assert asker({"form": "nut", "ups": "rack@192.0.2.5"})().power_w == 1236
    assert asker({"form": "ipmi_dcmi"})().power_w == 1239


def test_a_command_of_the_users_own_prints_watts(tmp_path: Path) -> None:
    own = program(tmp_path, "meter", 'echo "$1.5 W"')
    meter = WallMeter({"form": "command", "command": [str(own), "1240"]})
    meter.read_once()
    assert meter.power() == (1240.5, None)


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        ("echo none", 0, "instead of one number"),
        ("echo 12; echo 13", 0, "instead of one number"),
        ("echo -5", 0, "instead of one number"),
        ("echo nan", 0, "instead of one number"),
        ("echo 99999999", 0, "which no rig draws"),
        ("echo 1240; echo no route >&2", 1, "failed with 1: no route"),
        (":", 3, "it said nothing"),
        (":", 0, "instead of one number"),
    ],
)
def test_what_is_no_power_is_said_and_never_0(tmp_path: Path, text: str, status: int, said: str) -> None:
    meter = WallMeter({"form": "command", "command": [str(program(tmp_path, "meter", text, status))]})
    meter.read_once()
    power, error = meter.power()
    assert power is None
    assert said in (error or "")


def test_a_program_that_hangs_or_is_not_there_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rigctl.agent.wall.TIMEOUT_S", 0.1)
    slow = program(tmp_path, "slow", "exec sleep 60")
    with pytest.raises(MeterError, match="did not answer within"):
        asker({"form": "command", "command": [str(slow)]})()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MeterError, match="ipmitool cannot be run"):
        asker({"form": "ipmi_dcmi"})()


@pytest.mark.parametrize("raw", [{"form": "abacus"}, {"form": "nut"}, {"form": "shelly"}, {"form": "command"}])
def test_a_meter_that_is_not_described_whole_is_refused(raw: dict[str, Any]) -> None:
    with pytest.raises((KeyError, ValueError)):
        asker(raw)


@pytest.mark.parametrize("text", ["1240", "1240 W", "1240.25W", " 1240 watts\n"])
def test_one_number_with_or_without_its_unit(text: str) -> None:
    assert 1240 <= plain(text).power_w <= 1240.25
