"""The wall meter: a plug with an HTTP interface, in the forms of Tasmota and of Shelly's second generation."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable

POWER_FACTOR = 0.98
JOULES_PER_KWH = 3.6e6


class WallMeter:
    """Serves what `read` says (watts, joules so far) on a loopback port; `online` False closes the port."""

    def __init__(self, read: Callable[[], tuple[float, float]], mains_v: float, port: int) -> None:
        self._read = read
        self._mains_v = mains_v
        self._port = port
        self._server: ThreadingHTTPServer | None = None

    @property
    def port(self) -> int:
        """The port that it listens on, or would."""
        return self._server.server_address[1] if self._server is not None else self._port

    def set_online(self, *, online: bool) -> None:
        """Open or close the port; OSError when it is taken."""
        if online and self._server is None:
            self._server = _Server(("127.0.0.1", self._port), self)
            threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()
        elif not online and self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def tasmota(self) -> dict[str, Any]:
        """Status 8 (and 10) of a Tasmota plug."""
        power_w, energy_j = self._read()
        kwh = energy_j / JOULES_PER_KWH
        energy = {
            "TotalStartTime": time.strftime("%Y-%m-%dT00:00:00"),
            "Total": round(kwh, 3),
            "Yesterday": 0.0,
            "Today": round(kwh, 3),
            "Power": round(power_w),
            "ApparentPower": round(power_w / POWER_FACTOR),
            "ReactivePower": round(power_w / POWER_FACTOR * (1 - POWER_FACTOR**2) ** 0.5),
            "Factor": POWER_FACTOR,
            "Voltage": round(self._mains_v),
            "Current": round(power_w / POWER_FACTOR / self._mains_v, 3),
        }
        return {"StatusSNS": {"Time": time.strftime("%Y-%m-%dT%H:%M:%S"), "ENERGY": energy}}

    def shelly(self) -> dict[str, Any]:
        """Switch.GetStatus of a Shelly plug."""
        power_w, energy_j = self._read()
        amperes = round(power_w / POWER_FACTOR / self._mains_v, 3)
        total_wh = round(energy_j / 3600, 3)
        return {
            "id": 0,
            "output": True,
            "apower": round(power_w, 1),
            "voltage": self._mains_v,
            "current": amperes,
            "aenergy": {"total": total_wh},
        }

    def answer(self, target: str) -> dict[str, Any] | None:
        """The answer to one request; None for a path that neither kind of plug has."""
        url = urlsplit(target)
        if url.path == "/cm":
            words = parse_qs(url.query).get("cmnd", [""])[0].lower().split()
            return self.tasmota() if words in (["status", "8"], ["status", "10"]) else {"Command": "Unknown"}
        if url.path == "/rpc/Switch.GetStatus":
            return self.shelly()
        return None


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, address: tuple[str, int], meter: WallMeter) -> None:
        super().__init__(address, _Handler)
        self.meter = meter


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        answer = self.server.meter.answer(self.path)
        body = json.dumps(answer or {"error": "not found"}).encode()
        self.send_response(200 if answer is not None else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base class's name)
        """Say nothing: a plug keeps no log on the rig."""
