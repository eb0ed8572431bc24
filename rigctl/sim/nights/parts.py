"""The rest of a rig: its disk, network card and file systems as the agent reads them, and its processor's clock."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rigctl.sim.nights.hardware import Hardware

DISK = "nvme0n1"
DISK_GB = 2000.4
FREE_GB = 1400.0
LINK_MBIT = 2500
KELVIN = 273
HOURS_A_DAY = 24
CPU_MHZ = {"rest": 2200.0, "one": 4550.0, "all": 4150.0}
"""What a 12-core processor's cores run at on average: at rest, feeding the cards, and all at work."""
ALL_AT_WORK = 0.5
"""From so much load on all cores are at work."""
CLOCK_NOISE = 0.003


def read(rig: Hardware) -> dict[str, Any]:
    """Return disks, network cards and file systems as the facts have them."""
    serial, seed = str(rig.identity["machine"]["serial"]), rig.seed
    age = random.Random(serial).randrange(2_000, 20_000)  # noqa: S311 - hours, each rig its own
    return {
        "disks": [
            {
                "name": DISK,
                "model": "simulated NVMe",
                "serial": serial,
                "size_gb": DISK_GB,
                "state": "live",
                "smart_log": json.dumps(_smart_log(age + seed % 365 * HOURS_A_DAY)),
            }
        ],
        "network": [
            {
                "name": "eno1",
                "address": ":".join(f"{int(serial[2 * n : 2 * n + 2], 16):02x}" for n in range(6)),
                "driver": "igc",
                "link": True,
                "speed_mbit_per_s": LINK_MBIT,
                "duplex": "full",
                "supported_mbit_per_s": LINK_MBIT,
                "partner_mbit_per_s": LINK_MBIT,
                "carries_default_route": True,
            }
        ],
        "filesystems": [{"place": "/", "size_gb": DISK_GB, "free_gb": FREE_GB, "free_inode_share": 0.98}],
    }


def _smart_log(hours: int) -> dict[str, Any]:
    """Return what nvme-cli says of a disk that has been on for so long."""
    return {
        "critical_warning": 0,
        "temperature": KELVIN + 44,
        "avail_spare": 100,
        "spare_thresh": 10,
        "percent_used": hours // 4000,
        "data_units_read": hours * 4100,
        "data_units_written": hours * 3900,
        "power_on_hours": hours,
        "unsafe_shutdowns": hours // 700,
        "media_errors": 0,
        "num_err_log_entries": 0,
    }


def cpu_sample(rig: Hardware, chance: random.Random) -> dict[str, Any]:
    """Return the processor at this moment as the sample has it."""
    load = rig.machine.cpu_load
    state = "rest" if load == 0 else "all" if load > ALL_AT_WORK else "one"
    return {
        # k10temp counts in eighths of a degree.
        "cpu_temp_c": round(rig.machine.cpu_temp_c * 8) / 8,
        "cpu_power_w": rig.machine.cpu_w,
        "cpu_util_pct": 100 * load,
        "cpu_mhz": CPU_MHZ[state] * chance.gauss(1.0, CLOCK_NOISE),
    }
