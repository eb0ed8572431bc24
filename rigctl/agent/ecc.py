"""What a card counts of errors in its own memory, and which rows of it were replaced, through NVML.

Cards without error correction, and memory that has no rows to spare (all GeForce cards, and everything before
Ampere), answer `Not Supported`: then the reading is None, and `missing` has NVML's reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pynvml

if TYPE_CHECKING:
    from .nvml import Asker

COUNTS = {
    "corrected": (pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, pynvml.NVML_VOLATILE_ECC),
    "uncorrected": (pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_VOLATILE_ECC),
    "lifetime_corrected": (pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, pynvml.NVML_AGGREGATE_ECC),
    "lifetime_uncorrected": (pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_AGGREGATE_ECC),
}
BANKS = ("max", "high", "partial", "low", "none")
"""How many spare rows a bank of memory has left, in NVML's words; NVML counts the banks of each kind."""


def memory_health(asker: Asker) -> dict[str, Any]:
    """Error counts and remapped rows of one card, as `ecc` and `remapped_rows`; faults are the asker's."""
    return {"ecc": _ecc(asker), "remapped_rows": _remapped_rows(asker)}


def _ecc(asker: Asker) -> dict[str, Any] | None:
    """Whether errors are corrected at all, and how many were, since the driver was loaded and ever."""
    mode = asker.ask("ecc", pynvml.nvmlDeviceGetEccMode)
    if mode is None:
        return None
    on = int(mode[0]) == pynvml.NVML_FEATURE_ENABLED
    ask = asker.ask
    counts = {
        name: ask(f"ecc.{name}", pynvml.nvmlDeviceGetTotalEccErrors, *which) if on else None
        for name, which in COUNTS.items()
    }
    return {"on": on, **{name: None if count is None else int(count) for name, count in counts.items()}}


def _remapped_rows(asker: Asker) -> dict[str, Any] | None:
    """Rows that were replaced, whether one waits for a reset, whether one could not be, and what is left to spare."""
    rows = asker.ask("remapped_rows", pynvml.nvmlDeviceGetRemappedRows)
    if rows is None:
        return None
    corrected, uncorrected, pending, failed = rows
    banks = asker.ask("remapped_rows.banks", pynvml.nvmlDeviceGetRowRemapperHistogram)
    return {
        "corrected": int(corrected),
        "uncorrected": int(uncorrected),
        "pending": bool(pending),
        "failed": bool(failed),
        "banks": None if banks is None else {kind: int(getattr(banks, kind)) for kind in BANKS},
    }
