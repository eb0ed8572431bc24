"""The ways to a supply, each against something that speaks as the real one does."""

from __future__ import annotations

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import SecretStr

from rigctl.model.power import Ipmi, Plug, Power, Wake
from rigctl.power import switch
from rigctl.power.switch import (
    IpmiSwitch,
    PlugSwitch,
    SwitchFailed,
    ipmi_state,
    magic_packet,
    plug_state,
    switches,
    wake,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECRET = SecretStr("geheim")
IPMI = Ipmi(address="192.0.2.51", user="rigctl", password=SECRET)
IPMITOOL = """#!/bin/sh
echo "$*" >>"{log}"
[ "$IPMI_PASSWORD" = geheim ] || {{ echo "Error: Unable to establish IPMI v2 / RMCP+ session" >&2; exit 1; }}
case "$*" in
  *status) echo "Chassis Power is on" ;;
  *on) echo "Chassis Power Control: Up/On" ;;
  *off) echo "Chassis Power Control: Down/Off" ;;
esac
"""


@pytest.fixture
def ipmitool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program, log = tmp_path / "ipmitool", tmp_path / "asked"
    program.write_text(IPMITOOL.format(log=log))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return log


def test_ipmi_is_asked_without_its_password_on_the_command_line(ipmitool: Path) -> None:
    one = IpmiSwitch(IPMI)
    assert one.state() == "on"
    one.set_off()
    one.set_on()
    login = "-I lanplus -H 192.0.2.51 -U rigctl -E chassis power"
    assert ipmitool.read_text().splitlines() == [f"{login} status", f"{login} off", f"{login} on"]
    assert "geheim" not in repr(IPMI)


def test_ipmi_that_refuses_speaks_for_itself(ipmitool: Path) -> None:
    wrong = IPMI.model_copy(update={"password": SecretStr("falsch")})
    with pytest.raises(SwitchFailed, match=r"IPMI at 192\.0\.2\.51: Error: Unable to establish IPMI v2"):
        IpmiSwitch(wrong).state()


def test_ipmitool_that_is_missing_or_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SwitchFailed, match="ipmitool is not installed"):
        IpmiSwitch(IPMI).state()
    program = tmp_path / "ipmitool"
    program.write_text("#!/bin/sh\nexec /bin/sleep 20\n")
    program.chmod(0o755)
    monkeypatch.setattr(switch, "IPMI_S", 0.2)
    with pytest.raises(SwitchFailed, match=r"no answer within 0\.2 s"):
        IpmiSwitch(IPMI).state()


@pytest.mark.parametrize("text", ["", "Chassis Power is unknown", "Chassis Power is on\nChassis Power is off", "on"])
def test_another_form_of_ipmitool_is_no_state(text: str) -> None:
    with pytest.raises(SwitchFailed, match="neither on nor off"):
        ipmi_state(text)
    assert ipmi_state("Chassis Power is off\n") == "off"


class Relay(BaseHTTPRequestHandler):
    """A plug of any of the three forms."""

    is_on = True
    locked = False
    asked: list[str] = []  # noqa: RUF012 - shared by the handlers of one test on purpose

    def do_GET(self) -> None:
        path = self.path
        type(self).asked.append(path)
        if not self.locked and any(word in path for word in ("%20On", "on=true", "turn=on")):
            type(self).is_on = True
        if not self.locked and any(word in path for word in ("%20Off", "on=false", "turn=off")):
            type(self).is_on = False
        body = json.dumps(self.answer(path)).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def answer(self, path: str) -> dict[str, Any]:
        if path.startswith("/cm"):
            return {"POWER2" if "Power2" in path else "POWER": "ON" if self.is_on else "OFF"}
        if path.startswith("/relay"):
            return {"ison": self.is_on, "has_timer": False}
        return {"was_on": not self.is_on} if "Set" in path else {"id": 0, "output": self.is_on, "apower": 812.4}

    def log_message(self, *_args: object) -> None:
        return


@pytest.fixture
def relay() -> Iterator[tuple[type[Relay], str]]:
    handler = type("OneRelay", (Relay,), {"is_on": True, "locked": False, "asked": []})
    server = HTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield handler, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize(
    ("form", "channel", "asks"),
    [
        ("tasmota", 0, "/cm?cmnd=Power"),
        ("tasmota", 2, "/cm?cmnd=Power2"),
        ("shelly", 0, "/rpc/Switch.GetStatus?id=0"),
        ("shelly_gen1", 1, "/relay/1"),
    ],
)
def test_a_plug_is_switched_and_looked_at_again(
    relay: tuple[type[Relay], str], form: Any, channel: int, asks: str
) -> None:
    handler, url = relay
    plug = PlugSwitch(Plug(form=form, url=url, channel=channel))
    assert plug.state() == "on"
    plug.set_off()
    assert plug.state() == "off"
    plug.set_on()
    assert handler.is_on
    assert handler.asked.count(asks) == 4


def test_a_plug_that_stays_as_it_is_is_an_error(relay: tuple[type[Relay], str]) -> None:
    handler, url = relay
    handler.locked = True
    with pytest.raises(SwitchFailed, match="stays on"):
        PlugSwitch(Plug(form="tasmota", url=url)).set_off()


def test_a_plug_that_does_not_answer_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(SwitchFailed, match="Connection refused"):
        PlugSwitch(Plug(form="shelly", url=f"http://127.0.0.1:{port}")).state()


@pytest.mark.parametrize(
    ("form", "answer"),
    [
        ("tasmota", {"WARNING": "Need user=<username>&password=<password>"}),
        ("tasmota", {"POWER": "BLINK"}),
        ("tasmota", {"POWER1": "ON", "POWER2": "OFF"}),
        ("shelly", {"output": "yes"}),
        ("shelly", {"ison": True}),
        ("shelly_gen1", []),
        ("shelly_gen1", None),
    ],
)
def test_an_answer_that_names_no_relay_is_an_error(form: str, answer: Any) -> None:
    with pytest.raises(SwitchFailed, match=f"no {form} relay"):
        plug_state(form, answer)


def test_the_packet_that_wakes() -> None:
    packet = magic_packet("52:54:00:12:34:56")
    assert len(packet) == 6 + 16 * 6
    assert packet[:6] == b"\xff" * 6
    assert packet[6:12] == packet[-6:] == bytes.fromhex("525400123456")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as rig:
        rig.bind(("127.0.0.1", 0))
        rig.settimeout(2)
        wake(Wake(mac="52:54:00:12:34:56", broadcast="127.0.0.1", port=rig.getsockname()[1]))
        assert rig.recv(200) == packet
    with pytest.raises(SwitchFailed, match="wake-on-LAN to nowhere"):
        wake(Wake(mac="52:54:00:12:34:56", broadcast="nowhere.invalid"))


def test_the_management_controller_is_asked_before_mains_are_cut() -> None:
    plug = Plug(form="tasmota", url="http://192.0.2.101")
    found = switches(Power(ipmi=IPMI, plug=plug, wake=Wake(mac="52:54:00:12:34:56")))
    assert [one.cuts_mains for one in found] == [False, True]
    assert switches(Power(wake=Wake(mac="52:54:00:12:34:56"))) == []
