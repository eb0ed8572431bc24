"""The meter at the wall: read in a thread of its own, at most once a second, so that it never holds the sampling."""

from __future__ import annotations

import http.client
import json
import threading
import time
import urllib.error
import urllib.request
from typing import Any

from .meters import MeterError, tasmota

READ_EVERY_S = 1.0
TIMEOUT_S = 2.0
MAX_AGE_S = 3.0
"""A reading older than this is no longer the present power, seconds."""
MAX_BYTES = 64 * 1024


def tasmota_power_w(answer: Any) -> float:
    """Power at the wall, W, from Tasmota's `Status 8`, its sensor message, or the form of old firmware."""
    return tasmota(answer).power_w


def read_tasmota(url: str) -> float:
    """Ask a Tasmota meter once; MeterError says in words why it did not work."""
    # The meter stands in the rig's own network: no proxy.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=TIMEOUT_S) as reply:
            body = reply.read(MAX_BYTES)
    except (OSError, ValueError, http.client.HTTPException) as error:
        # URLError and time-outs are OSErrors; ValueError: not a URL; HTTPException: something answers, but no HTTP.
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        raise MeterError(f"the meter does not answer: {reason}") from error
    try:
        answer = json.loads(body)
    except ValueError as error:
        raise MeterError("the meter's answer is not JSON") from error
    return tasmota_power_w(answer)


class WallMeter(threading.Thread):
    """Keeps the newest power reading; `power()` never waits."""

    def __init__(self, url: str) -> None:
        super().__init__(name="wall-meter", daemon=True)
        self._url = url
        self._lock = threading.Lock()
        self._power_w: float | None = None
        self._read_s = 0.0
        self._error = "no reading yet"

    def run(self) -> None:
        """Read once a second for as long as the process lives."""
        while True:
            began = time.monotonic()
            self.read_once()
            time.sleep(max(0.0, READ_EVERY_S - (time.monotonic() - began)))

    def read_once(self) -> None:
        """Read the meter now; waits for it for up to 2 s."""
        try:
            power = read_tasmota(self._url)
        except MeterError as error:
            with self._lock:
                self._error = str(error)
            return
        with self._lock:
            self._power_w, self._read_s, self._error = power, time.monotonic(), ""

    def power(self) -> tuple[float | None, str | None]:
        """Power in W, or None and why; a reading is used for 3 s."""
        with self._lock:
            age = time.monotonic() - self._read_s
            if self._power_w is not None and age <= MAX_AGE_S:
                return self._power_w, None
            return None, self._error or f"the last reading is {age:.0f} s old"
