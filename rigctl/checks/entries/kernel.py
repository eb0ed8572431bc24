"""The kernel: one boot, and what its log says."""

from __future__ import annotations

from rigctl.checks.info import LOADS, CheckInfo

ENTRIES = (
    CheckInfo(
        "kernel.same_boot",
        "no reboot during the run",
        LOADS,
        requires=("boot id",),
        limit_from=("one boot",),
        fix="power supply, its cables and the circuit first, then `last -x` and the BIOS log",
    ),
    CheckInfo(
        "kernel.xid",
        "no Xid in the kernel log",
        requires=("kernel log",),
        limit_from=("`rigctl/parse/xid_classes.csv`, from NVIDIA's Xid catalogue of 2025-10-29",),
        fix="depends on the number: 79 power cables, riser, slot; 74 the bridge; 48 replace the card",
    ),
)
