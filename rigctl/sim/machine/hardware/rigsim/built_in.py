"""What else is built in: disk, network card, memory modules, the processor's clocks; as /sys and firmware show them.

A class may say otherwise in its data; what it leaves out is as here.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from .state import write_atomically

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from .faults import Applied
    from .paths import Paths
    from .physics import Machine

DISK: Mapping[str, Any] = {
    "model": "simulated NVMe 2TB",
    "size_gb": 2000.4,
    "write_mb_per_s": 3000.0,
    "read_mb_per_s": 3400.0,
    "used_pct": 3,
    "spare_pct": 100,
    "temp_c": 41,
    "power_on_hours": 2011,
}
NETWORK: Mapping[str, Any] = {"name": "eno1", "driver": "igc", "mbit_per_s": 1000}
MEMORY: Mapping[str, Any] = {
    "places": ("DIMM_A2", "DIMM_B2"),
    "gib": 32,
    "mt_per_s": 3600,
    "part": "simulated DDR4-3600",
}
DISK_NAME, CONTROLLER = "nvme0n1", "nvme0"
SPARE_THRESHOLD_PCT = 10
WORN_SPARE_PCT = 6
SECTOR_BYTES = 512
CORES_SHOWN = 8
MEMORY_DEVICE, END_OF_TABLE = 17, 127


def prepare(paths: Paths, identity: Mapping[str, Any]) -> None:
    """Lay the trees out; harmless when they exist."""
    own = hashlib.sha256(str(identity.get("rig", "")).encode()).hexdigest()
    disk, card = {**DISK, **identity.get("disk", {})}, {**NETWORK, **identity.get("network", {})}
    controller = paths.sys / "devices/pci0000:00/0000:00:1d.0/nvme" / CONTROLLER
    block = controller / DISK_NAME
    _write(controller, model=disk["model"], serial=own[:14].upper(), state="live")
    _write(block, size=round(disk["size_gb"] * 1e9 / SECTOR_BYTES), removable=0)
    _link(block / "device", controller)
    _link(paths.sys / "class/nvme" / CONTROLLER, controller)
    _link(paths.sys / "block" / DISK_NAME, block)
    net = paths.sys / "devices/pci0000:00/0000:00:1f.0/net" / str(card["name"])
    address = ":".join(("02", *(own[i : i + 2] for i in range(20, 30, 2))))
    _write(net, address=address, carrier=1, operstate="up", duplex="full", mtu=1500)
    driver = paths.sys / "bus/pci/drivers" / str(card["driver"])
    driver.mkdir(parents=True, exist_ok=True)
    (net / "device").mkdir(exist_ok=True)
    _link(net / "device/driver", driver)
    _link(paths.sys / "class/net" / str(card["name"]), net)
    for number in range(min(int(identity["cpu"]["threads"]), CORES_SHOWN)):
        core = paths.sys / "devices/cores" / f"cpu{number}"
        for name in ("cpufreq", "acpi_cppc"):
            (core / name).mkdir(parents=True, exist_ok=True)
        _link(paths.sys / "bus/cpu/devices" / core.name, core)
    (paths.sys / "firmware/dmi/tables").mkdir(parents=True, exist_ok=True)
    show_settings(paths, identity, ())


def show_settings(paths: Paths, identity: Mapping[str, Any], active: Sequence[Applied]) -> None:
    """Write what changes with a fault only: the network card's speed, and what the firmware runs memory at."""
    by_name = {one.name: one.values for one in active}
    card, memory = {**NETWORK, **identity.get("network", {})}, {**MEMORY, **identity.get("memory", {})}
    mbit = by_name.get("nic_slow", {}).get("mbit_per_s", card["mbit_per_s"])
    write_atomically(paths.sys / "class/net" / str(card["name"]) / "speed", f"{mbit}\n")
    mt_per_s = by_name.get("memory_slow", {}).get("mt_per_s", memory["mt_per_s"])
    (paths.sys / "firmware/dmi/tables/DMI").write_bytes(table(memory, int(mt_per_s)))


def show_clocks(paths: Paths, machine: Machine) -> None:
    """Write each core's clock; no two are ever quite alike."""
    for number, core in enumerate(sorted((paths.sys / "bus/cpu/devices").iterdir())):
        khz = round(1000 * machine.cpu_mhz) + 125 * machine.noise.randrange(-4, 5) + number
        write_atomically(core / "cpufreq/scaling_cur_freq", f"{khz}\n")
        write_atomically(core / "acpi_cppc/nominal_freq", f"{machine.parts.cpu_nominal_mhz:.0f}\n")


def values(identity: Mapping[str, Any], active: Sequence[Applied]) -> dict[str, object]:
    """What programs read of the disk in the state: how fast and how worn it is."""
    by_name = {one.name: one.values for one in active}
    disk = {**DISK, **identity.get("disk", {})}
    share = by_name.get("slow_disk", {}).get("pct", 100) / 100
    worn = by_name.get("nvme_worn")
    return {
        "disk.write_mb_per_s": f"{disk['write_mb_per_s'] * share:.1f}",
        "disk.read_mb_per_s": f"{disk['read_mb_per_s'] * share:.1f}",
        "disk.used_pct": disk["used_pct"] if worn is None else worn["used_pct"],
        "disk.spare_pct": disk["spare_pct"] if worn is None else WORN_SPARE_PCT,
        "disk.spare_threshold_pct": SPARE_THRESHOLD_PCT,
        "disk.temp_c": disk["temp_c"],
        "disk.power_on_hours": disk["power_on_hours"],
    }


def table(memory: Mapping[str, Any], mt_per_s: int) -> bytes:
    """The firmware's table with one structure for each memory module. Source: DMTF DSP0134 (SMBIOS), type 17."""
    data = b""
    for number, place in enumerate(memory["places"]):
        body = bytearray(34)
        body[0:4] = bytes((MEMORY_DEVICE, len(body))) + (0x1100 + number).to_bytes(2, "little")
        body[0x0C:0x0E] = (0x7FFF).to_bytes(2, "little")  # the size stands in the longer field
        body[0x10], body[0x1A] = 1, 2
        body[0x15:0x17] = int(memory["mt_per_s"]).to_bytes(2, "little")
        body[0x1C:0x20] = (int(memory["gib"]) * 1024).to_bytes(4, "little")
        body[0x20:0x22] = mt_per_s.to_bytes(2, "little")
        data += bytes(body) + f"{place}\0{memory['part']}\0\0".encode()
    return data + bytes((END_OF_TABLE, 4, 0xFF, 0x7F, 0, 0))


def _write(folder: Path, **contents: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in contents.items():
        (folder / name).write_text(f"{value}\n", encoding="ascii")


def _link(link: Path, target: Path) -> None:
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.is_symlink():
        link.symlink_to(target)
