"""`fio` and `nvme` of a simulated rig: real ones would measure the host's disk, and find no NVMe disk in a container.

They know the words that an acceptance uses, and refuse others.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

from .built_in import CONTROLLER, DISK_NAME
from .state import read_state

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .paths import Paths

BLOCK = 1024 * 1024
KELVIN = 273
SPARE_IS_LOW = 0x01
UNIT_BYTES = 512_000
OPTIONS = frozenset({"output-format", "size", "direct", "bs", "ioengine", "iodepth", "allow_file_create", "runtime"})
FAILED = 1


def fio(paths: Paths, arguments: list[str]) -> int:
    """`fio --filename=F --size=N … --name=JOB --rw=read|write …`: what the simulated disk does; nobody waits for it."""
    common: dict[str, str] = {}
    jobs: list[dict[str, str]] = []
    for argument in arguments:
        key, _, value = argument.removeprefix("--").partition("=")
        if key == "name":
            jobs.append({"name": value})
        elif jobs and key in ("rw", "stonewall"):
            jobs[-1][key] = value
        elif key in OPTIONS or key == "filename":
            common[key] = value
        else:
            sys.stderr.write(f"fio: {argument} is not simulated\n")
            return FAILED
    try:
        there = os.stat(common["filename"]).st_size >= int(common["size"])  # noqa: PTH116 - as fio looks
    except OSError as error:
        sys.stderr.write(f"fio: pid=1, err={error.errno}/file:filesetup.c, func=open, error={error.strerror}\n")
        return FAILED
    if not there:
        sys.stderr.write("fio: the file is smaller than the size that is asked for\n")
        return FAILED
    state = read_state(paths.state)
    found = [_job(job, int(common["size"]), float(common["runtime"]), state) for job in jobs]
    sys.stdout.write(json.dumps({"fio version": "fio-3.28", "jobs": found}, indent=2) + "\n")
    return 0


def _job(job: Mapping[str, str], size: int, most_s: float, state: Mapping[str, str]) -> dict[str, object]:
    way = job["rw"]
    rate = float(state[f"disk.{way}_mb_per_s"]) * 1e6
    seconds = min(size / rate, most_s)
    done = int(rate * seconds) // BLOCK
    idle: dict[str, object] = {"io_bytes": 0, "bw_bytes": 0, "bw": 0, "iops": 0.0, "runtime": 0, "total_ios": 0}
    busy: dict[str, object] = {
        "io_bytes": done * BLOCK,
        "bw_bytes": round(rate),
        "bw": round(rate / 1024),
        "iops": rate / BLOCK,
        "runtime": max(1, round(1000 * seconds)),
        "total_ios": done,
    }
    return {
        "jobname": job["name"],
        "error": 0,
        "read": busy if way == "read" else idle,
        "write": busy if way == "write" else idle,
    }


def nvme(paths: Paths, arguments: list[str]) -> int:
    """`nvme smart-log -o json /dev/nvme0n1`: the disk's health, as version 1.16 prints it."""
    devices = [word for word in arguments[1:] if word.startswith("/dev/")]
    if arguments[:3] != ["smart-log", "-o", "json"] or not devices:
        sys.stderr.write("nvme: only `smart-log -o json DEVICE` is simulated\n")
        return FAILED
    if devices[0] not in (f"/dev/{DISK_NAME}", f"/dev/{CONTROLLER}"):
        sys.stderr.write(f"{devices[0]}: No such file or directory\n")
        return FAILED
    state = read_state(paths.state)
    spare, threshold = int(state["disk.spare_pct"]), int(state["disk.spare_threshold_pct"])
    log = {
        "critical_warning": SPARE_IS_LOW if spare < threshold else 0,
        "temperature": int(state["disk.temp_c"]) + KELVIN,
        "avail_spare": spare,
        "spare_thresh": threshold,
        "percent_used": int(state["disk.used_pct"]),
        "endurance_grp_critical_warning_summary": 0,
        "data_units_read": 28167888,
        "data_units_written": int(state["disk.used_pct"]) * 12 * 10**12 // UNIT_BYTES,
        "host_read_commands": 561183142,
        "host_write_commands": 171788833,
        "controller_busy_time": 1354,
        "power_cycles": 41,
        "power_on_hours": int(state["disk.power_on_hours"]),
        "unsafe_shutdowns": 7,
        "media_errors": 0,
        "num_err_log_entries": 12,
        "warning_temp_time": 0,
        "critical_comp_time": 0,
    }
    sys.stdout.write(json.dumps(log, indent=2) + "\n")
    return 0
