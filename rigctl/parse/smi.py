"""How nvidia-smi says that it cannot work: on standard output, with a status that is NVML's return code."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rigctl.parse import plain

_KINDS: tuple[tuple[re.Pattern[str], str, str], ...] = (
    (
        re.compile(r"Driver/library version mismatch"),
        "the loaded driver and its library have different versions",
        "reboot the rig: the driver was upgraded and the old module is still loaded",
    ),
    (
        re.compile(r"couldn't communicate with the NVIDIA driver|Driver Not Loaded", re.IGNORECASE),
        "no NVIDIA driver is loaded",
        "rigctl provision {rig} --tags nvidia_driver; `dkms status` and `dmesg` on the rig tell why none was loaded",
    ),
    (
        re.compile(r"GPU is lost|GPU requires reset|Unable to determine the device handle", re.IGNORECASE),
        "a card does not answer its driver any more",
        "reboot the rig; if it comes back, check the card's power cables, riser and slot",
    ),
    (
        re.compile(r"No devices were found", re.IGNORECASE),
        "the driver sees no card",
        "`lspci -d 10de:` on the rig tells whether the bus sees it; check power cables and slot",
    ),
    (
        re.compile(r"couldn't find libnvidia-ml|NVML Shared Library Not Found", re.IGNORECASE),
        "the driver's library is not installed",
        "rigctl provision {rig} --tags nvidia_driver",
    ),
    (
        re.compile(r"command not found|No such file or directory|: not found"),
        "nvidia-smi is not installed",
        "rigctl provision {rig} --tags nvidia_driver",
    ),
)
_TIMED_OUT = (124, 137)
"""Exit statuses of `timeout`: with a dead card nvidia-smi can hang for good."""


@dataclass(frozen=True)
class SmiFailure:
    """Why nvidia-smi could not answer."""

    what: str
    said: str
    """Its own words, the first line."""
    fix: str
    """What to do; `{rig}` stands for the rig's name."""


def failure(text: str, exit_status: int) -> SmiFailure | None:
    """Return why a call of nvidia-smi failed, None when it did not: its text names the cause, also with status 0."""
    said = next((line.strip() for line in plain(text).splitlines() if line.strip()), "")
    if exit_status in _TIMED_OUT:
        return SmiFailure("nvidia-smi hung", said, "reboot the rig: a card that died can hang every call to it")
    for pattern, what, fix in _KINDS:
        if (exit_status != 0 or not said.startswith("GPU ")) and pattern.search(text):
            return SmiFailure(what, said, fix)
    if exit_status != 0:
        return SmiFailure(f"nvidia-smi ended with status {exit_status}", said, "run `nvidia-smi` on the rig by hand")
    return None
