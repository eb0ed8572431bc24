"""Whether two cards can reach each other's memory, as the driver says of each pair (`nvidia-smi topo -p2p`)."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import pynvml

from .nvml import NVML_ERRORS, words_of

if TYPE_CHECKING:
    from .nvml import Card

READ, WRITE = 0, pynvml.NVML_P2P_CAPS_INDEX_WRITE
"""The binding's own constant for reading is a tuple by mistake (nvidia-ml-py 13.615.71)."""
WORDS = {
    pynvml.NVML_P2P_STATUS_OK: "OK",
    pynvml.NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED: "CNS",
    pynvml.NVML_P2P_STATUS_GPU_NOT_SUPPORTED: "GNS",
    pynvml.NVML_P2P_STATUS_IOH_TOPOLOGY_NOT_SUPPORTED: "TNS",
    pynvml.NVML_P2P_STATUS_DISABLED_BY_REGKEY: "DR",
    pynvml.NVML_P2P_STATUS_NOT_SUPPORTED: "NS",
}


def pair_facts(cards: tuple[Card, ...]) -> list[dict[str, Any]]:
    """Each pair of cards, by slot; what the driver does not tell is None, with its reason in `missing`."""
    return [_pair(one, other) for one, other in combinations(cards, 2)]


def _pair(one: Card, other: Card) -> dict[str, Any]:
    (read, why), (write, _) = _status(one, other, READ), _status(one, other, WRITE)
    return {"slots": [one.slot, other.slot], "read": read, "write": write, "missing": why}


def _status(one: Card, other: Card, which: int) -> tuple[str | None, str]:
    try:
        status = int(pynvml.nvmlDeviceGetP2PStatus(one.handle, other.handle, which))
    except NVML_ERRORS as error:
        return None, words_of(error)
    return WORDS.get(status, "U"), ""
