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
    CheckInfo(
        "kernel.clock",
        "the rig's clock is near the controller's, and was not set during the run",
        requires=("the controller's clock",),
        limit_from=("limits.max_clock_offset_s",),
        fix="`timedatectl set-ntp true`, or the rig's time server; and look at the controller's own clock",
    ),
    CheckInfo(
        "kernel.time_sync",
        "a service keeps the rig's clock",
        requires=("timedatectl",),
        limit_from=("settings.time_sync",),
        fix="`timedatectl set-ntp true`, and `timedatectl timesync-status` for its server",
    ),
)
