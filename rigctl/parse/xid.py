"""Xid messages of NVIDIA's kernel driver, in every form that is known, and what each number means.

NVRM: Xid (PCI:0000:05:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
NVRM: Xid (PCI:0000:b7:00 GPU-I:05): 94, pid=7194, name=python3, …          a MIG instance
NVRM: Xid (0000:03:00): 14, Channel 00000001                                old drivers
NVRM: Xid (PCI:0000:01:00): 62, 023f0f30 00000000 …                         no process
NVRM: GPU 0000:18:00.0: GPU has fallen off the bus.                         no number at all
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal

from rigctl.parse import ParseError

Effect = Literal["fail", "burn", "warn"]
FALLEN_OFF_THE_BUS = 79
CHANNEL_REMOVED = 45
"""The driver clears away after a process that ended; a burn that is ended causes it by itself."""

_BUS = r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}(?:\.[0-7])?"
_ANY = re.compile(r"NVRM:\s*Xid\b")
_XID = re.compile(rf"NVRM:\s*Xid\s*\((?:PCI:)?({_BUS})(?: GPU-I:\w+)?\)\s*:\s*(\d{{1,6}})\b(?:,\s*(.*))?", re.ASCII)
_FALLEN = re.compile(rf"NVRM:.*?\bGPU (?:at )?(?:PCI:)?({_BUS})\b.*fallen off the bus", re.ASCII)
_PROCESS = re.compile(r"pid='?([^',]*)'?(?:, name=([^,]*))?(?:, )?(.*)")


@dataclass(frozen=True)
class Xid:
    """One Xid message."""

    number: int
    pci_bus_id: str
    pid: int | None
    process: str | None
    text: str


@dataclass(frozen=True)
class XidClass:
    """What NVIDIA's catalogue says of a number, and what an acceptance makes of it."""

    number: int
    mnemonic: str
    action: str
    kind: str
    effect: Effect


def parse(message: str) -> Xid | None:
    """Return the Xid in a kernel message, None for a message without one.

    Raises:
        ParseError: the message is an Xid message of a form that is not known.
    """
    if match := _XID.search(message):
        pid, process, text = _process(match[3] or "")
        return Xid(int(match[2]), match[1], pid, process, text)
    if match := _FALLEN.search(message):
        return Xid(FALLEN_OFF_THE_BUS, match[1], None, None, "GPU has fallen off the bus.")
    if _ANY.search(message):
        raise ParseError("the kernel's Xid message", message)
    return None


def same_card(one: str, other: str) -> bool:
    """Whether two PCI bus ids name one card: the kernel writes four digits of domain, NVML eight and a function."""
    return _address(one) == _address(other)


def meaning(number: int) -> XidClass:
    """Return what is known of a number; one that is in no catalogue is taken as a fault."""
    return _table().get(number) or XidClass(number, "unknown", "CONTACT_SUPPORT", "unknown", "fail")


def failing() -> tuple[int, ...]:
    """Return the numbers of the catalogue that fail a rig whatever ran on it."""
    return tuple(sorted(number for number, known in _table().items() if known.effect == "fail"))


def highest_known() -> int:
    """Return the catalogue's highest number."""
    return max(_table())


def _process(rest: str) -> tuple[int | None, str | None, str]:
    match = _PROCESS.fullmatch(rest)
    if match is None:
        return None, None, rest
    pid = int(match[1]) if re.fullmatch(r"\d{1,10}", match[1], re.ASCII) else None
    process = match[2].strip("'") if match[2] else None
    return pid, None if process == "<unknown>" else process, match[3]


def _address(bus_id: str) -> tuple[int, ...]:
    return tuple(int(part, 16) for part in bus_id.partition(".")[0].split(":"))


@cache
def _table() -> dict[int, XidClass]:
    text = resources.files("rigctl.parse").joinpath("xid_classes.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
    return {int(r["xid"]): XidClass(int(r["xid"]), r["mnemonic"], r["action"], r["class"], _effect(r)) for r in rows}


def _effect(row: dict[str, str]) -> Effect:
    effects: dict[str, Effect] = {"fail": "fail", "burn": "burn", "warn": "warn"}
    return effects[row["effect"]]
