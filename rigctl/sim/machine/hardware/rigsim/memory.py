"""The cards' memory and what the driver tells of trouble: errors, replaced rows, Xid lines; and who keeps the clock.

Errors are counted while a card works, as on real rigs; the kernel's line comes once for each time that a fault happens.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .faults import Applied
    from .physics import Card

XIDS: dict[str, tuple[int, bool, str]] = {
    "xid_13": (13, True, "Graphics SM Warp Exception on (GPC 5, TPC 1, SM 1): Out Of Range Address"),
    "xid_31": (
        31,
        True,
        (
            "MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_2 faulted @ 0x7f1c_8a000000. "
            "Fault is of type FAULT_PDE ACCESS_TYPE_READ"
        ),
    ),
    "xid_48": (48, False, "An uncorrectable double bit error (DBE) has been detected on GPU (00 00 00)."),
    "xid_74": (74, False, "NVLink: fatal error detected on link 0(0x0, 0x0, 0x10000, 0x0, 0x0, 0x0, 0x0)"),
    "xid_119": (
        119,
        False,
        (
            "Timeout after 6s of waiting for RPC response from GPU0 GSP! "
            "Expected function 76 (GSP_RM_CONTROL) (0x20801813 0x4c)."
        ),
    ),
}
"""Number, whether it comes only while the card works, and the driver's words (forms as in public kernel logs)."""
MEMORY_FAULTS: tuple[tuple[str, str, tuple[str, ...], tuple[tuple[str, int, int, int, str], ...]], ...] = (
    (
        "ecc_errors",
        "A card's memory has errors under load that it cannot correct.",
        ("memory.ecc",),
        (("slot", 2, 1, 16, "the card"), ("per_s", 1, 1, 1_000_000, "errors a second")),
    ),
    (
        "row_remap_pending",
        "A card has put a row of its memory aside, and replaces it at its next reset.",
        ("memory.remapped_rows",),
        (("slot", 2, 1, 16, "the card"),),
    ),
    *(
        (name, f"The driver tells Xid {number} of a card.", ("kernel.xid",), (("slot", 2, 1, 16, "the card"),))
        for name, (number, _, _) in XIDS.items()
    ),
    ("fabric_manager_off", "The fabric manager does not run.", ("topology.fabric_manager",), ()),
    ("time_sync_off", "No service keeps the rig's clock.", ("kernel.time_sync",), ()),
)
"""Name, summary, the checks that must name it, and parameters (name, default, lowest, highest, summary)."""
BANKS = 640
"""Banks of a card's memory, all with their spare rows at first."""
XID_48 = "xid_48"


@dataclass
class CardMemory:
    """What the cards of a rig count since the driver was loaded, and the lines that the driver owes the kernel log."""

    uncorrected: dict[int, float] = field(default_factory=dict)
    """By slot."""
    _told: set[tuple[str, int]] = field(default_factory=set)
    _pending: int | None = None

    def step(
        self, dt_s: float, cards: Sequence[Card], active: Sequence[Applied], *, ecc: bool
    ) -> list[tuple[int, str]]:
        """Advance by `dt_s` real seconds; return the driver's lines by slot: Xid number and text."""
        busy = {card.parts.slot for card in cards if card.busy}
        faults = {one.name: one.values for one in active}
        errors, remap = faults.get("ecc_errors"), faults.get("row_remap_pending")
        self._pending = remap["slot"] if remap is not None else None
        happened = {(name, values["slot"]) for name, values in faults.items() if name in XIDS}
        if errors is not None and ecc and errors["slot"] in busy:
            slot = errors["slot"]
            self.uncorrected[slot] = self.uncorrected.get(slot, 0.0) + errors["per_s"] * dt_s
            happened.add((XID_48, slot))
        due = sorted(one for one in happened - self._told if not XIDS[one[0]][1] or one[1] in busy)
        self._told = (self._told & happened) | set(due)
        return [(slot, f"{XIDS[name][0]}, pid='<unknown>', name=<unknown>, {XIDS[name][2]}") for name, slot in due]

    def shown(self, prefix: str, slot: int, identity: Mapping[str, Any]) -> dict[str, object]:
        """What a card tells of its memory; nothing where its class has no error correction."""
        if not identity["card"].get("ecc"):
            return {}
        uncorrected, pending = int(self.uncorrected.get(slot, 0)), int(slot == self._pending)
        counts = {"ecc.on": 1, "ecc.0.0": 0, "ecc.0.1": 0, "ecc.1.0": uncorrected, "ecc.1.1": uncorrected}
        rows = {"rows.corrected": 0, "rows.uncorrected": pending, "rows.pending": pending, "rows.failed": 0}
        banks = {"rows.bank.0": BANKS - pending, "rows.bank.1": pending}
        return {f"{prefix}.{key}": value for key, value in {**counts, **rows, **banks}.items()}


def clock_values(active: Sequence[Applied]) -> dict[str, object]:
    """Whether a time service is on, and whether the clock is synchronised, as `timedatectl` shows it."""
    kept = int(not any(one.name == "time_sync_off" for one in active))
    return {"clock.service": kept, "clock.synchronised": kept}
