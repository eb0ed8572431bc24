"""SXid messages of NVSwitches in the kernel log: what a switch says of its links.

nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 48 LTSSM Fault Up

After a card has fallen off the bus, the switches report the links to it: consequences, not causes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from rigctl.parse import ParseError

_ANY = re.compile(r"nvidia-nvswitch\d*:? SXid\b")
_SXID = re.compile(
    r"nvidia-nvswitch(\d{1,4}): SXid \(PCI:([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\): (\d{1,6}), (.*)",
    re.ASCII,
)
_LINK = re.compile(r"\bLink (\d{1,3})\b(?![.\d])", re.ASCII)


@dataclass(frozen=True)
class SwitchXid:
    """One SXid message."""

    switch: int
    pci_bus_id: str
    number: int
    fatal: bool | None
    """None for lines that only give details."""
    link: int | None
    text: str


def parse(message: str) -> SwitchXid | None:
    """Return the SXid in a kernel message, None for a message without one. Raises ParseError for an unknown form."""
    if match := _SXID.search(message):
        text = match[4]
        fatal = True if text.startswith("Fatal") else False if text.startswith("Non-fatal") else None
        link = _LINK.search(text)
        return SwitchXid(int(match[1]), match[2], int(match[3]), fatal, int(link[1]) if link else None, text)
    if _ANY.search(message):
        raise ParseError("the kernel's SXid message", message)
    return None
