"""What meters answer, as power at the wall: Tasmota, Shelly, NUT's `upsc`, `ipmitool dcmi power reading`, a number.

Pure: an answer in, a power in watts out, or MeterError with the reason. A plug whose relay is off feeds nothing, a
value that the meter itself calls invalid is none, and a power that no rig can draw is none either.
"""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

MAX_POWER_W = 100_000.0
"""More than any rack is fed with; a meter that says more has lost its scale."""


class MeterError(Exception):
    """The meter did not answer, or not with a power."""


class Reading(NamedTuple):
    """A power, and in which steps the meter can tell it."""

    power_w: float
    step_w: float | None = None
    """None where the answer does not tell."""


def _power(found: Any, where: str) -> float:
    if isinstance(found, bool) or not isinstance(found, (int, float)):
        raise MeterError(f"the meter's answer holds no {where}")
    # By comparing, not by converting: JSON's whole numbers have no end.
    if not (0 <= found <= MAX_POWER_W and math.isfinite(found)):
        raise MeterError(f"the meter says {str(found)[:40]} for {where}, which no rig draws")
    return float(found)


def tasmota(answer: Any) -> Reading:
    """From Tasmota's `Status 8`, its sensor message, or the `StatusPWR` of old firmware."""
    energy = None
    if isinstance(answer, dict):
        sensors = answer.get("StatusSNS", answer)
        energy = answer.get("StatusPWR") or (sensors.get("ENERGY") if isinstance(sensors, dict) else None)
    found = energy.get("Power") if isinstance(energy, dict) else None
    return Reading(_power(found, "ENERGY.Power"), 1.0 if isinstance(found, int) else None)


def shelly(answer: Any, channel: int = 0) -> Reading:
    """From Shelly's generation 2 (`Switch.GetStatus`, `Shelly.GetStatus`) or generation 1 (`/status`, `/meter/0`)."""
    if not isinstance(answer, dict):
        raise MeterError("the meter's answer is no object")
    switch = answer.get(f"switch:{channel}", answer if "apower" in answer else None)
    if isinstance(switch, dict):
        if switch.get("output") is not True:
            raise MeterError("the plug's relay is off: what it measures does not feed the rig")
        if switch.get("errors"):
            raise MeterError(f"the plug reports {switch['errors']}")
        return Reading(_power(switch.get("apower"), "apower"))
    return _shelly_gen1(answer, channel)


def _shelly_gen1(answer: dict[str, Any], channel: int) -> Reading:
    meters, relays = answer.get("meters"), answer.get("relays")
    meter = meters[channel] if isinstance(meters, list) and channel < len(meters) else answer
    relay = relays[channel] if isinstance(relays, list) and channel < len(relays) else {}
    if not isinstance(meter, dict) or not isinstance(relay, dict):
        raise MeterError("the meter's answer has an unknown form")
    found = _power(meter.get("power"), f"meters[{channel}].power")
    if meter.get("is_valid") is not True:
        raise MeterError("the plug calls its own reading invalid")
    if relay.get("ison") is False:
        raise MeterError("the plug's relay is off: what it measures does not feed the rig")
    return Reading(found)


_UPS_LINE = re.compile(r"([A-Za-z0-9_.-]+): ?(.*)")
_UPS_NOISE = re.compile(r"Init SSL without certificate database|Warning: .*")
_FIGURE = re.compile(r"-?[0-9]{1,9}(?:\.[0-9]{1,6})?")


def upsc(text: str) -> Reading:
    """From `upsc UPS`: `ups.realpower`, or else the load in per cent of `ups.realpower.nominal`."""
    variables: dict[str, str] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        match = _UPS_LINE.fullmatch(line)
        if _UPS_NOISE.fullmatch(line):
            continue
        if match is None or line.startswith("Error:"):
            raise MeterError(f"upsc says {line[:160]!r}")
        variables[match[1]] = match[2].strip()
    status = variables.get("ups.status", "").split()
    if not status:
        raise MeterError("upsc tells no ups.status")
    if "OFF" in status:
        raise MeterError(f"the UPS is {' '.join(status)}: what it measures does not feed the rig")
    if "ups.realpower" in variables:
        return Reading(_power(_figure(variables, "ups.realpower"), "ups.realpower"))
    if "ups.load" not in variables or "ups.realpower.nominal" not in variables:
        raise MeterError("the UPS tells neither ups.realpower nor ups.load with ups.realpower.nominal")
    load, nominal = _figure(variables, "ups.load"), _figure(variables, "ups.realpower.nominal")
    step = nominal / (100 if "." not in variables["ups.load"] else 1000)
    return Reading(_power(load * nominal / 100, "ups.load × ups.realpower.nominal"), step)


def _figure(variables: dict[str, str], name: str) -> float:
    if not _FIGURE.fullmatch(variables[name]):
        raise MeterError(f"the UPS says {variables[name][:40]!r} for {name}")
    return float(variables[name])


_DCMI = re.compile(r"([A-Z][A-Za-z ]+):\s*(.*)")
_WATTS = re.compile(r"([0-9]{1,9}) Watts")


def dcmi(text: str) -> Reading:
    """From `ipmitool dcmi power reading`, the present power.

    Its minimum, maximum and average cover a sampling period of minutes to days, and are not taken.
    """
    said: dict[str, str] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        match = _DCMI.fullmatch(line)
        if match is None:
            raise MeterError(f"ipmitool says {line[:160]!r}")
        said[match[1].strip()] = match[2].strip()
    state = said.get("Power reading state is")
    if state != "activated":
        raise MeterError(f"the management controller's power reading is {state or 'not told'}")
    watts = _WATTS.fullmatch(said.get("Instantaneous power reading", ""))
    if watts is None:
        raise MeterError(f"ipmitool says {said.get('Instantaneous power reading', 'nothing')!r} for the present power")
    if int(watts[1]) == 0:
        # A machine that answers is on: controllers that cannot measure say 0.
        raise MeterError("the management controller says 0 W, which no running machine draws")
    return Reading(_power(int(watts[1]), "the present power"), 1.0)


_PLAIN = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)(?: ?(?:W|[Ww]atts?))?")


def plain(text: str) -> Reading:
    """From a command of the user's own: one number on one line, watts."""
    match = _PLAIN.fullmatch(text.strip())
    if match is None:
        raise MeterError(f"the meter's command says {text.strip()[:160]!r} instead of one number in watts")
    return Reading(_power(float(match[1]), "the command's number"))


_SENSOR = re.compile(r"(.+?)\s*\| (\w{2,3})h \| (\w+)\s*\|\s*([0-9.]+) \|\s?(.*)")
_SENSOR_WATTS = re.compile(r"([0-9]{1,7}(?:\.[0-9]+)?) Watts(?:, .*)?")


def sensor_watts(text: str) -> dict[str, float]:
    """From `ipmitool sdr elist`: every sensor that reads watts and is well; one without a reading is left out."""
    found: dict[str, float] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        match = _SENSOR.fullmatch(line)
        if match is None:
            raise MeterError(f"ipmitool says {line[:160]!r}")
        watts = _SENSOR_WATTS.fullmatch(match[5].strip())
        if watts and match[3] == "ok":
            found[match[1]] = _power(float(watts[1]), match[1])
    return found
