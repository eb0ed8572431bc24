"""Parts and settings, compared with the rig's accepted run."""

from __future__ import annotations

from rigctl.checks.info import BASELINE, CheckInfo

_ACCEPTED = ("an accepted run of the rig",)

ENTRIES = (
    CheckInfo(
        "identity.cards",
        "the accepted cards in the accepted slots",
        nvml=True,
        requires=(*_ACCEPTED, "sysfs of PCI devices"),
        limit_from=(BASELINE,),
        fix="find out who changed it; put the old card back, or accept the new one: `rigctl baseline accept`",
    ),
    CheckInfo(
        "identity.card_firmware",
        "each card's VBIOS and power range are as accepted",
        nvml=True,
        requires=_ACCEPTED,
        limit_from=("settings.gpu_vbios", BASELINE),
        fix="find out who flashed the card; flash the old VBIOS",
    ),
    CheckInfo(
        "identity.settings",
        "the BIOS is set as asked and as accepted",
        nvml=True,
        requires=(*_ACCEPTED, "sysfs of PCI devices", "SMBIOS"),
        limit_from=(
            "settings.min_bar1_mib",
            "settings.above_4g",
            "settings.aspm",
            "settings.iommu",
            "settings.acs_redirect",
            "settings.min_memory_mt_per_s",
            BASELINE,
        ),
        fix="load the saved profile in the BIOS; if it is lost again: the board's battery",
    ),
    CheckInfo(
        "identity.machine",
        "board and parts are those that were accepted",
        requires=(*_ACCEPTED, "SMBIOS", "sysfs of disks and network cards"),
        limit_from=(BASELINE,),
        fix="look whether the part came loose or failed",
    ),
    CheckInfo(
        "identity.modules",
        "no foreign kernel module",
        requires=("sysfs of kernel modules",),
        limit_from=("settings.allowed_modules", BASELINE),
        fix="`modprobe -r NAME`, remove what installed it, or allow it",
    ),
)
