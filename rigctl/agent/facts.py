"""Identity of the rig: machine, driver in its three places, cards, tools, who is on it."""

from __future__ import annotations

import os
import platform
import re
import shutil
import socket
import subprocess
from dataclasses import asdict
from pathlib import Path
from typing import Any

from . import built_in, bus, disk, dmi, nvml, nvml_facts, tools
from .clock import boot_id
from .cpu import CpuSensors
from .cpu_clock import nominal_mhz
from .errors import NvmlUnavailable
from .fabric import fabric_manager
from .pairs import pair_facts
from .probes import bounded
from .timekeeping import time_sync

LIBRARY = "libnvidia-ml.so.1"
TIMEOUT_S = 10


def read_facts(gpu_burn_dir: str, torch_venv: str) -> dict[str, Any]:
    """Everything that identifies this rig, as `Facts`; what could not be read stands in `errors`."""
    errors: list[str] = []
    return {
        **_machine(),
        **cards_in_time(errors),
        "numa_nodes": bus.numa_nodes(),
        "tools": tools.find_tools(gpu_burn_dir, torch_venv),
        "time_sync": time_sync(),
        "fabric_manager": fabric_manager(),
        "users_logged_in": _users_logged_in(errors),
        "errors": errors,
        "missing": CpuSensors().missing(),
    }


def _text(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip("\0\n ") or None
    except OSError:
        return None


def _machine() -> dict[str, Any]:
    return {
        "boot_id": boot_id(),
        "hostname": socket.gethostname(),
        "product_name": _text("/sys/class/dmi/id/product_name"),
        "bios_version": _text("/sys/class/dmi/id/bios_version"),
        "board_name": _text("/sys/class/dmi/id/board_name"),
        "board_serial": _text("/sys/class/dmi/id/board_serial"),
        "os": _value("/etc/os-release", r"PRETTY_NAME=(.*)").strip("\"'"),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "cpu_model": _value("/proc/cpuinfo", r"model name\s*:\s*(.*)"),
        "cpu_threads": os.cpu_count() or 0,
        "memory_mib": int(_value("/proc/meminfo", r"MemTotal:\s*(\d+)") or 0) // 1024,
        "memory_modules": dmi.memory_modules(dmi.read()),
        "modules": built_in.modules(),
        "disks": built_in.disks(),
        "network": built_in.network(),
        "filesystems": disk.filesystems(),
        "cpu_nominal_mhz": nominal_mhz(),
    }


def _value(path: str, pattern: str) -> str:
    """The first match of a line's pattern in a small file; empty where it has none."""
    found = re.search(f"^{pattern}", _text(path) or "", re.MULTILINE)
    return found.group(1).strip() if found else ""


def loaded_driver() -> str | None:
    """Version of the kernel module that is loaded now; None when none is."""
    version = _text("/sys/module/nvidia/version")
    if version is None:
        found = re.search(r"Kernel Module\s+(?:for \S+\s+)?([\d.]+)", _text("/proc/driver/nvidia/version") or "")
        version = found.group(1) if found else None
    return version


def library_on_disk(cache: str) -> str | None:
    """Version of the NVML library that a program would get, from the file that `ldconfig -p` leads to."""
    found = re.search(rf"^\s*{re.escape(LIBRARY)} \([^)]*\) => (\S+)$", cache, re.MULTILINE)
    if found is None:
        return None
    target = os.path.realpath(found.group(1))
    version = re.search(r"\.so\.(\d+\.[\d.]+)$", target)
    return version.group(1) if version else None


def _ldconfig_cache(errors: list[str]) -> str:
    program = shutil.which("ldconfig", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    try:
        done = subprocess.run([program or "ldconfig", "-p"], capture_output=True, timeout=TIMEOUT_S, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        errors.append(f"ldconfig -p: {error}")
        return ""
    return done.stdout.decode(errors="replace")


def cards_in_time(errors: list[str]) -> dict[str, Any]:
    """Driver and cards. NVML is asked by a process of its own: the driver of a dead card may never answer."""
    driver: dict[str, Any] = {
        "loaded": loaded_driver(),
        "library": library_on_disk(_ldconfig_cache(errors)),
        "nvml_error": None,
        "cuda_driver": None,
    }
    answer, probe = bounded("NVML", _driver_and_cards)
    if answer is None:
        driver["nvml_error"] = f"no answer within {probe.limit_s:g} s" + (f": {probe.stuck}" if probe.stuck else "")
        answer = {"driver": {}, "gpus": [], "pairs": [], "places": [], "compute_processes": [], "errors": []}
    found = answer.pop("driver")
    errors += answer.pop("errors")
    found["library"] = driver["library"] or found.get("library")
    return {**answer, "driver": {**driver, **found}, "probes": [asdict(probe)]}


def _driver_and_cards() -> dict[str, Any]:
    """What NVML says, and where the kernel shows each card; `errors` names what could not be read."""
    errors: list[str] = []
    nothing: dict[str, Any] = {"gpus": [], "pairs": [], "places": [], "compute_processes": [], "errors": errors}
    try:
        opened = nvml.Nvml()
    except NvmlUnavailable as error:
        return {**nothing, "driver": {"nvml_error": error.message}}
    try:
        errors += opened.problems
        return {
            "driver": {"library": nvml_facts.library_version(), "cuda_driver": nvml_facts.cuda_driver()},
            "gpus": [_card(card, errors) for card in opened.cards],
            "pairs": pair_facts(opened.cards),
            "places": [{"uuid": card.uuid, **bus.place(card.pci_bus_id)} for card in opened.cards],
            "compute_processes": _processes(opened, errors),
            "errors": errors,
        }
    finally:
        opened.close()


def _card(card: nvml.Card, errors: list[str]) -> dict[str, Any]:
    faults: list[str] = []
    known = nvml_facts.card_facts(card, faults)
    errors += [f"slot {card.slot} ({card.uuid}): {fault}" for fault in faults]
    return known


def _processes(opened: nvml.Nvml, errors: list[str]) -> list[str]:
    try:
        return nvml.compute_processes(opened.cards)
    except nvml.NVML_ERRORS as error:
        errors.append(f"compute processes: {nvml.words_of(error)}")
        return []


def _users_logged_in(errors: list[str]) -> int:
    """Sessions in utmp; the controller's own has no terminal and is not among them."""
    try:
        done = subprocess.run(["who"], capture_output=True, timeout=TIMEOUT_S, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        errors.append(f"who: {error}")
        return 0
    return len([line for line in done.stdout.splitlines() if line.strip()])
