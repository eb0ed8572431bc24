"""dmesg, modinfo, modprobe, rmmod, lsmod, mokutil, lspci, update-initramfs, fio, nvme, … of a simulated rig.

One program, many names.

In a container the real ones would show or change the host: its kernel log, its modules, its PCI devices, its clock.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from . import module, storage
from .fabric import nv_fabricmanager
from .paths import Paths
from .state import read_state
from .timedatectl import timedatectl

if TYPE_CHECKING:
    from collections.abc import Callable

MODULES = ("nvidia_uvm", "nvidia_drm", "nvidia_modeset", "nvidia")
"""What loads with the driver, in the order in which lsmod shows it."""
MODPROBE_FOLDERS = ("/lib/modprobe.d", "/etc/modprobe.d")
INITRAMFS_BYTES = 256 * 1024
"""Enough that a full /boot has no room for it."""
NOT_PERMITTED, FAILED = 1, 1


def say(text: str) -> int:
    """Print on stdout; success."""
    sys.stdout.write(text)
    return 0


def refuse(text: str, status: int = FAILED) -> int:
    """Print on stderr; failure."""
    sys.stderr.write(text + "\n")
    return status


def words_of(arguments: list[str]) -> list[str]:
    """The arguments that are no options."""
    return [argument for argument in arguments if not argument.startswith("-")]


def dmesg(paths: Paths, arguments: list[str]) -> int:
    """The rig's own kernel messages; `-T` with wall clock times. Root only, as on Ubuntu 22.04."""
    if os.geteuid() != 0:
        return refuse("dmesg: read kernel buffer failed: Operation not permitted", NOT_PERMITTED)
    lines = paths.kernel_log.read_text(encoding="utf-8").splitlines() if paths.kernel_log.exists() else []
    human = "-T" in arguments or "--ctime" in arguments
    boot_s = time.time() - time.monotonic()
    shown = []
    for line in lines:
        microseconds, _, message = line.partition(" ")
        seconds = int(microseconds) / 1e6
        stamp = time.ctime(boot_s + seconds) if human else f"{seconds:12.6f}"
        shown.append(f"[{stamp}] {message}\n")
    return say("".join(shown))


def modinfo(_: Paths, arguments: list[str]) -> int:
    """`modinfo [-k KERNEL] [-F FIELD] nvidia`: what is installed for a kernel, by default the running one."""
    values = {word: arguments[arguments.index(word) + 1] for word in ("-F", "-k") if word in arguments[:-1]}
    field, kernel = values.get("-F"), values.get("-k", os.uname().release)
    name = next((word for word in reversed(words_of(arguments)) if word not in values.values()), "")
    path = module.installed_file(kernel=kernel)
    if path is None or _plain(name, path.stem) not in MODULES:
        path = None
    version = module.installed_version(path) if path is not None else None
    if path is None or version is None:
        return refuse(f"modinfo: ERROR: Module {name} not found.")
    fields = {
        "filename": str(path),
        "version": version,
        "license": "NVIDIA",
        "vermagic": f"{kernel} SMP mod_unload",
    }
    if field is not None:
        return say(f"{fields[field]}\n" if field in fields else "")
    return say("".join(f"{key + ':':<15} {value}\n" for key, value in fields.items()))


def modprobe(paths: Paths, arguments: list[str]) -> int:
    """Load or (`-r`) unload the driver's modules. Never touches the host's."""
    removing = "-r" in arguments or "--remove" in arguments
    for name in words_of(arguments):
        plain = name.replace("-", "_")
        path = module.installed_file() if plain in MODULES else None
        if removing and plain in MODULES and module.loaded_version(paths) is not None:
            if any(paths.loads.glob("[0-9]*")):
                return refuse(f"modprobe: FATAL: Module {name} is in use.")
            module.unload(paths)
        elif not removing and path is not None and (version := module.installed_version(path)) is not None:
            if why := _load_refused(paths, path):
                return refuse(f"modprobe: ERROR: could not insert '{plain}': {why}")
            if module.loaded_version(paths) is None:
                module.load(paths, version)
        elif not (removing and plain in MODULES):
            return refuse(f"modprobe: FATAL: Module {name} not found in directory /lib/modules/{os.uname().release}")
    return 0


def _load_refused(paths: Paths, path: Path) -> str:
    """Why the kernel would not load a module file; empty where it would."""
    if module.key_refused(path):
        return "Key was rejected by service"
    return "No such device" if module.nouveau_loaded(paths) else ""


def _plain(name: str, file_name: str) -> str:
    """The module that modinfo is asked for, without what Debian puts into the names of its files."""
    asked = name.replace("-", "_")
    prefix = file_name.replace("-", "_")
    return asked.replace(prefix, "nvidia", 1) if asked.startswith(prefix) else ""


def rmmod(paths: Paths, arguments: list[str]) -> int:
    """Unload, with rmmod's words."""
    if module.loaded_version(paths) is None or words_of(arguments)[:1] != ["nvidia"]:
        return refuse(f"rmmod: ERROR: Module {' '.join(words_of(arguments))} is not currently loaded")
    return modprobe(paths, ["-r", "nvidia"])


def lsmod(paths: Paths, _: list[str]) -> int:
    """The driver's modules, if loaded; the host's are none of the rig's business."""
    lines = ["Module                  Size  Used by"]
    if module.loaded_version(paths) is not None:
        sizes = {"nvidia_uvm": 1257472, "nvidia_drm": 69632, "nvidia_modeset": 1183744, "nvidia": 40837120}
        users = {"nvidia_modeset": "nvidia_drm", "nvidia": "nvidia_uvm,nvidia_modeset"}
        for name in MODULES:
            by = users.get(name, "")
            lines.append(f"{name:<19} {sizes[name]:>9}  {by.count(',') + bool(by)} {by}".rstrip())
    elif module.nouveau_loaded(paths):
        lines.append(f"{module.NOUVEAU:<19} {2306048:>9}  2")
    return say("\n".join(lines) + "\n")


def mokutil(_: Paths, arguments: list[str]) -> int:
    """`--sb-state`: what the firmware's variable says."""
    if arguments != ["--sb-state"]:
        return refuse("mokutil: only --sb-state is simulated")
    return say(f"SecureBoot {'enabled' if module.secure_boot() else 'disabled'}\n")


def update_initramfs(_: Paths, arguments: list[str]) -> int:
    """`-u`, `-c`: the initial RAM disk of the running kernel, made of what modprobe is configured with."""
    if not {"-u", "-c"} & set(arguments):
        return refuse("update-initramfs: only -u and -c are simulated")
    image = module.INITRAMFS / f"initrd.img-{os.uname().release}"
    settings = [path for folder in MODPROBE_FOLDERS for path in sorted(Path(folder).glob("*.conf"))]
    sys.stdout.write(f"update-initramfs: Generating {image}\n")
    new = image.with_suffix(".new")
    try:
        new.write_bytes(b"".join(path.read_bytes() for path in settings).ljust(INITRAMFS_BYTES, b"\0"))
    except OSError as error:
        new.unlink(missing_ok=True)
        status = f"update-initramfs: failed for {image} with 1."
        return refuse(f"gzip: stdout: {error.strerror}\nE: mkinitramfs failure gzip 1\n{status}")
    new.replace(image)
    return 0


def lspci(paths: Paths, arguments: list[str]) -> int:
    """The simulated cards; `-n`/`-nn` with numbers, `-k` with the driver."""
    state = read_state(paths.state)
    numbers = "-nn" in arguments
    loaded = module.loaded_version(paths) is not None
    lines = []
    for index in range(int(state["gpu.count"])):
        bus_id = state[f"gpu.{index}.pci_bus_id"][9:].lower()
        device = int(state[f"gpu.{index}.pci_device_id"], 16)
        kind = "VGA compatible controller" + (" [0300]" if numbers else "")
        ids = f" [{device & 0xFFFF:04x}:{device >> 16:04x}]" if numbers else ""
        name = state[f"gpu.{index}.name"].removeprefix("NVIDIA ")
        lines.append(f"{bus_id} {kind}: NVIDIA Corporation GA102 [{name}]{ids} (rev a1)")
        if "-k" in arguments:
            used = "nvidia" if loaded else module.NOUVEAU if module.nouveau_loaded(paths) else ""
            lines += [f"\tKernel driver in use: {used}"] if used else []
            lines += ["\tKernel modules: nouveau, nvidia"] if not loaded else []
    return say("".join(f"{line}\n" for line in lines))


NAMES: dict[str, Callable[[Paths, list[str]], int]] = {
    "dmesg": dmesg,
    "modinfo": modinfo,
    "modprobe": modprobe,
    "rmmod": rmmod,
    "lsmod": lsmod,
    "mokutil": mokutil,
    "lspci": lspci,
    "update-initramfs": update_initramfs,
    "timedatectl": timedatectl,
    "nv-fabricmanager": nv_fabricmanager,
    "fio": storage.fio,
    "nvme": storage.nvme,
}


def main(arguments: list[str]) -> int:
    """Run the program that this file was called as."""
    name = Path(arguments[0]).name
    if name not in NAMES:
        return refuse(f"{name}: call this file by one of the names {', '.join(NAMES)}", 2)
    return NAMES[name](Paths.from_environment(), arguments[1:])
