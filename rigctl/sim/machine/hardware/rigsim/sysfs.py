"""What the rig shows under /sys and /proc: sensors, RAPL, DMI, the loaded module.

The trees are prepared under /run and bind-mounted once at boot, so that unmodified programs find them at their true
paths. Reading a file of hwmon or powercap gives what the daemon wrote last.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .state import write_atomically

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .paths import Paths

FAN_CHIP = "nct6798"
"""The chip of the board that counts the fans' pulses."""
CPU_STEP_C = 0.125
"""k10temp counts in eighths of a degree."""
RAPL_RANGE_UJ = 65_532_610_987
SYS = Path("/sys")


def prepare(paths: Paths, identity: dict[str, Any]) -> None:
    """Lay out the trees; harmless when they exist."""
    for folder in (paths.loads, paths.control, paths.sys / "module", paths.run / "proc" / "driver"):
        folder.mkdir(parents=True, exist_ok=True)
    paths.loads.chmod(0o1777)
    _prepare_sensor(paths, identity["cpu"])
    machine = identity["machine"]
    _files(
        paths.sys / "class" / "dmi" / "id",
        product_name=machine["product_name"],
        product_serial=machine.get("serial", ""),
        sys_vendor="rigctl",
        board_name=machine["board_name"],
        board_vendor="rigctl",
        bios_version=machine["bios_version"],
    )
    _files(
        paths.sys / "class" / "powercap" / "intel-rapl:0",
        name="package-0",
        enabled=1,
        energy_uj=0,
        max_energy_range_uj=RAPL_RANGE_UJ,
    )


def _prepare_sensor(paths: Paths, cpu: dict[str, Any]) -> None:
    # libsensors names a chip after the bus and address that `device` leads to.
    device = paths.sys / "devices" / "pci0000:00" / cpu["sensor_pci"]
    bus = paths.sys / "bus" / "pci"
    for folder in (device, bus):
        folder.mkdir(parents=True, exist_ok=True)
    hwmon = paths.sys / "class" / "hwmon" / "hwmon0"
    _files(hwmon, name=cpu["sensor"], temp1_label="Tctl", temp1_input=0)
    for link, target in ((device / "subsystem", bus), (hwmon / "device", device)):
        if not link.is_symlink():
            link.symlink_to(target)


def update(paths: Paths, cpu_temp_c: float, cpu_energy_j: float) -> None:
    """Write the sensors' present values; the energy counter wraps as the real one does."""
    hwmon = paths.sys / "class" / "hwmon" / "hwmon0"
    write_atomically(hwmon / "temp1_input", f"{round(cpu_temp_c / CPU_STEP_C) * round(1000 * CPU_STEP_C)}\n")
    energy = paths.sys / "class" / "powercap" / "intel-rapl:0" / "energy_uj"
    # Root only, as kernels have had it since the power side channel of 2020.
    write_atomically(energy, f"{int(cpu_energy_j * 1e6) % RAPL_RANGE_UJ}\n", mode=0o400)


def update_fans(paths: Paths, speeds: Mapping[str, int]) -> None:
    """Write what the tachometers of the board say, rpm by label; the chip is there once a rig has any."""
    if not speeds:
        return
    chip = paths.sys / "class" / "hwmon" / "hwmon1"
    _files(chip, name=FAN_CHIP, **{f"fan{number}_label": label for number, label in enumerate(speeds, start=1)})
    for number, rpm in enumerate(speeds.values(), start=1):
        write_atomically(chip / f"fan{number}_input", f"{rpm}\n")


def mount(paths: Paths, real: Path = SYS) -> None:
    """Bind the trees over folders of /sys and over /proc/driver; CalledProcessError without the right to mount.

    Everything else of `class`, `module` and `bus` stays visible: it leads to a second view of the real /sys, as the
    rig's own interfaces do beside the network card that is simulated. Disks are the simulated ones alone.
    """
    behind = paths.run / "real-sys"
    if behind.is_dir() and any(behind.iterdir()):
        return
    behind.mkdir(parents=True, exist_ok=True)
    _bind(real, behind)
    for name in ("class", "module", "bus"):
        ours = paths.sys / name
        ours.mkdir(parents=True, exist_ok=True)
        for entry in sorted(_shown_through(behind / name)):
            target = ours / entry.relative_to(behind / name)
            if target.exists() or target.is_symlink() or entry.name.startswith("nvidia"):
                continue
            target.symlink_to(entry)
        _bind(ours, real / name)
    for name in ("block", "firmware"):
        _bind(paths.sys / name, real / name)
    nodes = Path("devices/system/node/online")
    if (real / nodes).exists():
        _bind(paths.sys / nodes, real / nodes)
    _bind(paths.run / "proc" / "driver", Path("/proc/driver"))


def _shown_through(folder: Path) -> list[Path]:
    """What a folder of /sys holds; of `class/net` each interface by itself, since one of ours is beside them."""
    entries = list(folder.iterdir())
    net = folder / "net"
    return [*(one for one in entries if one != net), *(net.iterdir() if net in entries else ())]


def _bind(source: Path, target: Path) -> None:
    subprocess.run(["mount", "--rbind", str(source), str(target)], check=True, capture_output=True, timeout=20)


def _files(folder: Path, **contents: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in contents.items():
        path = folder / name
        if not path.exists():
            path.write_text(f"{value}\n", encoding="utf-8")
