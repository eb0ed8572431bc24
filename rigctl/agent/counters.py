"""Counters of the cards' links and of the bus, read before the first load and after the last one.

A driver that hangs must hold nobody: they are read in a thread of their own, and what has not come in time is said.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pynvml

from . import bus, nvml
from .clock import stamp
from .ecc import memory_health
from .errors import NvmlUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable

COUNTERS = "counters.jsonl"
LIMIT_S = 5.0
"""Reading all counters is waited for at most so long, seconds."""
LINK_COUNTERS = {
    "replay": pynvml.NVML_NVLINK_ERROR_DL_REPLAY,
    "recovery": pynvml.NVML_NVLINK_ERROR_DL_RECOVERY,
    "crc_flit": pynvml.NVML_NVLINK_ERROR_DL_CRC_FLIT,
    "crc_data": pynvml.NVML_NVLINK_ERROR_DL_CRC_DATA,
}


def read_counters() -> dict[str, Any]:
    """Every card's counters as they stand now; NVML's own words where it cannot be asked."""
    try:
        opened = nvml.Nvml()
    except NvmlUnavailable as error:
        return {"error": error.message, "cards": []}
    try:
        return {"error": None, "cards": [_card(card) for card in opened.cards]}
    finally:
        opened.close()


def _card(card: nvml.Card) -> dict[str, Any]:
    faults: list[str] = []
    asker = nvml.Asker(card.handle, faults=faults)
    active = nvml.links_active(asker)
    return {
        "uuid": card.uuid,
        "slot": card.slot,
        "links": [_link(asker, link) for link, up in enumerate(active) if up],
        "pcie_replays": asker.ask("pcie_replays", pynvml.nvmlDeviceGetPcieReplayCounter),
        "aer": bus.errors_of(card.pci_bus_id),
        **memory_health(asker),
        "missing": asker.missing,
        "faults": faults,
    }


def _link(asker: nvml.Asker, link: int) -> dict[str, Any]:
    """The error counters of one link; None where card or driver do not count these."""
    counts = {
        name: asker.ask(f"link{link}.{name}", pynvml.nvmlDeviceGetNvLinkErrorCounter, link, which)
        for name, which in LINK_COUNTERS.items()
    }
    return {"link": link, **{name: None if count is None else int(count) for name, count in counts.items()}}


def in_time(
    when: str,
    waits: Callable[[], None],
    read: Callable[[], dict[str, Any]] = read_counters,
    limit_s: float = LIMIT_S,
) -> dict[str, Any]:
    """One line of counters (`when` is `before` or `after`); `waits` is called while the driver takes its time."""
    found: list[dict[str, Any]] = []
    broke: list[str] = []

    def work() -> None:
        try:
            found.append(read())
        except Exception as error:  # noqa: BLE001 - the thread's boundary: the line says what went wrong
            broke.append(f"counters could not be read: {error!r}")

    begun = time.monotonic()
    reading = threading.Thread(target=work, name="counters", daemon=True)
    reading.start()
    while reading.is_alive() and time.monotonic() - begun < limit_s:
        reading.join(0.05)
        waits()
    late = [] if found or broke else [f"the driver did not answer within {limit_s:g} s"]
    told = found[0] if found else {"error": (broke or late)[0], "cards": []}
    return {"when": when, **stamp(), "seconds": round(time.monotonic() - begun, 3), **told}
