"""`lspci -nn` and `lspci -vvv`: which devices the bus has, and how the PCIe link of each is.

A link that lspci calls `downgraded` in speed is asleep more often than broken: cards lower it when idle. Without root
the capabilities are not shown (`<access denied>`), and then nothing is known of the link. Only lines that are read here
must have a known form; devices print many others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from rigctl.parse import ParseError

_WHAT = "lspci"
_SLOT = r"(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
_DEVICE = re.compile(rf"({_SLOT}) ([^:\[]+?)(?: \[([0-9a-f]{{4}})\])?: (.+)", re.ASCII)
_IDS = re.compile(r"(.+) \[([0-9a-f]{4}):([0-9a-f]{4})\]", re.ASCII)
_REVISION = re.compile(r"(?: \(rev [0-9a-f]{2}\))?(?: \(prog-if [0-9a-f]{2} \[[^\]]*\]\))?$", re.ASCII)
_NOTE = re.compile(r"lspci: .*|pcilib: .*")
_LINK = re.compile(
    r"LnkCap:\s+Port #\d+, Speed (?:(\d+(?:\.\d+)?)GT/s|unknown), Width x(\d{1,2})(?:, ASPM ([^,]+))?(?:,.*)?", re.ASCII
)
_STATE = re.compile(
    r"LnkSta:\s+Speed (?:(\d+(?:\.\d+)?)GT/s|unknown)(?: \((ok|downgraded|overdriven|strange)\))?"
    r", Width x(\d{1,2})(?: \((ok|downgraded|overdriven|strange)\))?(?:[, ].*)?",
    re.ASCII,
)
_CONTROL = re.compile(r"LnkCtl:\s+ASPM ([^;]+);.*")
_STATUS = re.compile(r"DevSta:\s+CorrErr([+-]) (?:Non|Un)?FatalErr([+-]) FatalErr([+-]) Unsupp?Req([+-]).*")
_NUMA = re.compile(r"NUMA node: (\d{1,4})", re.ASCII)
_SLOT_NUMBER = re.compile(r"Physical Slot: (\S+)")
_DENIED = re.compile(r"Capabilities: <access denied>")
_DRIVER = re.compile(r"Kernel driver in use: (\S+)")
_GENERATIONS = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6}
"""GT/s → PCIe generation."""


@dataclass(frozen=True)
class Link:
    """A PCIe link, as its device can and as it is."""

    max_generation: int | None
    max_width: int
    aspm: str | None = None
    """What the device can (`L0s L1`, `L1`, `not supported`)."""
    aspm_now: str | None = None
    """What is switched on (`Disabled`, `L1 Enabled`)."""
    generation: int | None = None
    width: int | None = None
    """None where it is not told."""


@dataclass(frozen=True)
class Device:
    """One device of the bus."""

    slot: str
    """Its address."""
    kind: str
    name: str
    vendor: str | None = None
    """Hexadecimal digits, with `-nn`; NVIDIA is 10de."""
    device: str | None = None
    numa: int | None = None
    physical_slot: str | None = None
    driver: str | None = None
    link: Link | None = None
    errors: tuple[str, ...] | None = None
    """Kinds of errors that its status register remembers (`corrected`, `non-fatal`, `fatal`, `unsupported request`)."""
    denied: bool = False
    """Its capabilities were not shown: lspci did not run as root."""

    @property
    def is_gpu(self) -> bool:
        """Whether it is a card of NVIDIA's that draws or computes."""
        nvidia = self.vendor == "10de" or self.name.startswith("NVIDIA Corporation")
        return nvidia and self.kind in {"VGA compatible controller", "3D controller", "Display controller"}


def parse(text: str) -> tuple[Device, ...]:
    """Read `lspci` with any of `-nn`, `-D`, `-k`, `-v`. Raises ParseError with the first line of an unknown form."""
    devices: list[Device] = []
    for line in filter(str.strip, text.splitlines()):
        if line[0].isspace():
            if not devices:
                raise ParseError(_WHAT, line)
            devices.append(_detail(devices.pop(), line.strip()))
        elif match := _DEVICE.fullmatch(line.rstrip()):
            name = _REVISION.sub("", match[4])
            ids = _IDS.fullmatch(name)
            names = (ids[1], ids[2], ids[3]) if ids else (name, None, None)
            devices.append(Device(match[1], match[2], *names))
        elif not _NOTE.fullmatch(line):
            raise ParseError(_WHAT, line)
    if len({device.slot for device in devices}) != len(devices):
        raise ParseError(_WHAT, "the same device twice")
    return tuple(devices)


def _detail(device: Device, line: str) -> Device:
    """Take one line below a device."""
    for start, take in _DETAILS.items():
        if line.startswith(start):
            return take(device, line)
    if _DENIED.fullmatch(line):
        return replace(device, denied=True)
    if match := _NUMA.fullmatch(line):
        return replace(device, numa=int(match[1]))
    if match := _SLOT_NUMBER.fullmatch(line):
        return replace(device, physical_slot=match[1])
    if match := _DRIVER.fullmatch(line):
        return replace(device, driver=match[1])
    return device


def _generation(line: str, speed: str | None) -> int | None:
    if speed is None:
        return None
    if float(speed) not in _GENERATIONS:
        raise ParseError(_WHAT, line)
    return _GENERATIONS[float(speed)]


def _capability(device: Device, line: str) -> Device:
    match = _LINK.fullmatch(line)
    if match is None or device.link is not None:
        raise ParseError(_WHAT, line)
    return replace(device, link=Link(_generation(line, match[1]), int(match[2]), match[3]))


def _control(device: Device, line: str) -> Device:
    match = _CONTROL.fullmatch(line)
    if match is None or device.link is None:
        raise ParseError(_WHAT, line)
    return replace(device, link=replace(device.link, aspm_now=match[1]))


def _state(device: Device, line: str) -> Device:
    match = _STATE.fullmatch(line)
    if match is None or device.link is None or device.link.width is not None:
        raise ParseError(_WHAT, line)
    found = replace(device.link, generation=_generation(line, match[1]), width=int(match[3]))
    return replace(device, link=found)


def _errors(device: Device, line: str) -> Device:
    match = _STATUS.fullmatch(line)
    if match is None:
        raise ParseError(_WHAT, line)
    kinds = ("corrected", "non-fatal", "fatal", "unsupported request")
    return replace(device, errors=tuple(kind for kind, sign in zip(kinds, match.groups(), strict=True) if sign == "+"))


_DETAILS = {"LnkCap:": _capability, "LnkCtl:": _control, "LnkSta:": _state, "DevSta:": _errors}
"""The lines that must have a known form."""
