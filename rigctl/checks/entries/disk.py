"""Disks."""

from __future__ import annotations

from rigctl.checks.info import BASELINE, CheckInfo

ENTRIES = (
    CheckInfo(
        "disk.space",
        "there is room where programs, readings and test files go",
        limit_from=("limits.min_disk_free_gb",),
        fix="`du -xh / | sort -h | tail` on the rig shows what fills it",
    ),
    CheckInfo(
        "disk.health",
        "each NVMe disk is alive, has spare blocks and endurance left, and lost no data",
        requires=("nvme-cli", "an NVMe disk"),
        limit_from=("limits.max_disk_used_pct", "limits.max_disk_media_errors", "the disk itself", BASELINE),
        fix="back up what is on it and replace the disk",
    ),
    CheckInfo(
        "disk.size",
        "the largest disk is as large as declared",
        limit_from=("parts.min_disk_gb",),
        fix="the wrong disk, or one is gone: look whether it is seated",
    ),
    CheckInfo(
        "disk.speed",
        "how fast one file is written and read",
        ("disk",),
        requires=("fio", "room on a disk"),
        limit_from=("limits.min_disk_read_mb_per_s", "limits.min_disk_write_mb_per_s", BASELINE),
        fix="disk.health and disk.space first; then the disk's lanes, its heat sink, and who else uses it",
    ),
)
