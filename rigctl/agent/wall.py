"""The meter at the wall: read in a thread of its own, at most once a second, so that it never holds the sampling."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import threading
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

from . import meters
from .meters import MeterError

if TYPE_CHECKING:
    from collections.abc import Callable

READ_EVERY_S = 1.0
TIMEOUT_S = 2.0
MAX_AGE_S = 3.0
"""A reading older than this is no longer the present power, seconds."""
MAX_BYTES = 64 * 1024
DCMI = ("ipmitool", "dcmi", "power", "reading")
FORMS = ("tasmota", "shelly", "nut", "ipmi_dcmi", "command")


def asker(meter: dict[str, Any]) -> Callable[[], meters.Reading]:
    """What asks this meter once; ValueError or KeyError where the plan's words for it are not whole.

    The returned function raises MeterError, which says in words why there is no reading.
    """
    form = meter["form"]
    if form == "tasmota":
        url = str(meter["url"])
        return lambda: meters.tasmota(_fetched(url))
    if form == "shelly":
        url, channel = str(meter["url"]), int(meter.get("channel", 0))
        return lambda: meters.shelly(_fetched(url), channel)
    if form == "nut":
        ups = str(meter["ups"])
        return lambda: meters.upsc(_said(("upsc", ups)))
    if form == "ipmi_dcmi":
        return lambda: meters.dcmi(_said(DCMI))
    if form == "command":
        argv = tuple(map(str, meter["command"]))
        return lambda: meters.plain(_said(argv))
    raise ValueError(f"wall_meter.form is {form!r}, known are {', '.join(FORMS)}")


def _fetched(url: str) -> Any:
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
        return json.loads(body)
    except ValueError as error:
        raise MeterError("the meter's answer is not JSON") from error


def _said(argv: tuple[str, ...]) -> str:
    """Standard output of a program that asks a meter; it is killed after 2 s."""
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
    except subprocess.TimeoutExpired as error:
        raise MeterError(f"{argv[0]} did not answer within {TIMEOUT_S:g} s") from error
    except (OSError, ValueError) as error:  # not installed or not to be executed; ValueError: a NUL in an argument
        raise MeterError(f"{argv[0]} cannot be run: {error}") from error
    if done.returncode != 0:
        words = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
        raise MeterError(f"{argv[0]} failed with {done.returncode}: {words[-1][:160] if words else 'it said nothing'}")
    return done.stdout[:MAX_BYTES].decode(errors="replace")


class WallMeter(threading.Thread):
    """Keeps the newest power reading; `power()` never waits."""

    def __init__(self, meter: dict[str, Any]) -> None:
        super().__init__(name="wall-meter", daemon=True)
        self._ask = asker(meter)
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
            power = self._ask().power_w
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
