"""The driver's kernel module: installed is a file under /lib/modules, loaded is /sys/module/nvidia/version."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from .state import write_atomically

if TYPE_CHECKING:
    from .paths import Paths

NOUVEAU = "nouveau"
OLD_MODULE = "module-in-initramfs"
"""Holds the version of a module that the initial RAM disk has kept (fault old_module_boots): that one is loaded."""
INITRAMFS = Path("/boot")
SECURE_BOOT = Path("/sys/firmware/efi/efivars")
VERSION = re.compile(r"\b(\d{3}\.\d+(?:\.\d+)?)\b")
COMPILED_VERSION = re.compile(rb"\0version=(\d{3}\.\d+(?:\.\d+)?)\0")
"""In the section .modinfo of a module that a compiler has made."""
BUILT = "(simulated module)"
SETTINGS = (Path("/lib/modprobe.d"), Path("/etc/modprobe.d"))
DEFAULT_PARAMETERS = {"EnableGpuFirmware": "18"}
"""What /proc/driver/nvidia/params shows where nobody has asked for anything else; the real one has many more."""
FILE_NAMES = ("nvidia", "nvidia-current", "nvidia-current-open")
"""What the module's file is called: Debian renames it; once loaded it is `nvidia` everywhere."""


def installed_file(root: Path = Path("/lib/modules"), kernel: str = "") -> Path | None:
    """The module file for a kernel (the running one): DKMS's, else the distribution's; None when there is none."""
    home = root / (kernel or os.uname().release)
    built = [home / "updates" / "dkms" / f"{name}.ko" for name in FILE_NAMES]
    paths = (*built, *sorted(home.glob("kernel/nvidia-*/nvidia.ko")))
    return next((path for path in paths if path.is_file()), None)


def installed_version(path: Path) -> str | None:
    """The version that a module file carries; None when it carries none."""
    content = path.read_bytes()
    if content.startswith(b"\x7fELF"):
        compiled = COMPILED_VERSION.search(content)
        return compiled.group(1).decode("ascii") if compiled else None
    found = VERSION.search(content.decode("utf-8", errors="replace"))
    return found.group(1) if found else None


def loaded_version(paths: Paths) -> str | None:
    """The version of the loaded module; None when none is loaded."""
    try:
        return paths.module_version.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return None


def secure_boot(variables: Path = SECURE_BOOT) -> bool:
    """Whether the firmware says that Secure Boot is on: the last byte of its variable."""
    return any(path.read_bytes()[-1:] == b"\x01" for path in variables.glob("SecureBoot-*"))


def key_refused(path: Path, variables: Path = SECURE_BOOT) -> bool:
    """Whether the kernel would refuse a module file: Secure Boot is on, and the file names no signer."""
    return secure_boot(variables) and "\nsigner:" not in path.read_text(encoding="utf-8", errors="replace")


def nouveau_comes(paths: Paths, folder: Path = INITRAMFS) -> bool:
    """Whether nouveau takes the cards at boot: it is there, and the initial RAM disk does not blacklist it."""
    image = folder / f"initrd.img-{os.uname().release}"
    blacklisted = image.is_file() and b"blacklist nouveau" in image.read_bytes()
    return (paths.kept / NOUVEAU).exists() and not blacklisted


def nouveau_loaded(paths: Paths) -> bool:
    """Whether nouveau has the cards."""
    return (paths.sys / "module" / NOUVEAU).is_dir()


def boot(paths: Paths) -> str | None:
    """Load what this boot loads and return the version of NVIDIA's module; None where that is not loaded."""
    if nouveau_comes(paths):
        (paths.sys / "module" / NOUVEAU).mkdir(parents=True, exist_ok=True)
        return None
    path, old = installed_file(), paths.kept / OLD_MODULE
    version = installed_version(path) if path is not None and not key_refused(path) else None
    if version is not None and old.is_file():
        version = old.read_text(encoding="ascii").strip()
    if version is not None:
        load(paths, version)
    return version


def options(module: str, folders: tuple[Path, ...] = SETTINGS) -> dict[str, str]:
    """The parameters that modprobe's settings give a module; the last word counts."""
    found: dict[str, str] = {}
    for path in sorted(path for folder in folders for path in folder.glob("*.conf")):
        for line in path.read_text(encoding="utf-8").splitlines():
            words = line.split()
            if words[:2] == ["options", module]:
                found.update(word.partition("=")[::2] for word in words[2:])
    return found


def show_parameters(paths: Paths, folders: tuple[Path, ...] = SETTINGS) -> None:
    """What the modules were loaded with: nvidia's own without its prefix, uvm's under /sys."""
    own = {name.removeprefix("NVreg_"): value for name, value in options("nvidia", folders).items()}
    lines = [f"{name}: {value}" for name, value in {**DEFAULT_PARAMETERS, **own}.items()]
    (paths.proc_version.parent / "params").write_text("\n".join(lines) + "\n", encoding="ascii")
    uvm = paths.sys / "module" / "nvidia_uvm" / "parameters"
    uvm.mkdir(parents=True, exist_ok=True)
    for name, value in {"uvm_disable_hmm": "0", **options("nvidia_uvm", folders)}.items():
        (uvm / name).write_text({"0": "N", "1": "Y"}.get(value, value) + "\n", encoding="ascii")


def load(paths: Paths, version: str) -> None:
    """Load a version: from now on /sys and /proc show it."""
    for path in (paths.module_version, paths.proc_version):
        path.parent.mkdir(parents=True, exist_ok=True)
    (paths.module_version.parent / "refcnt").write_text("0\n", encoding="ascii")
    banner = f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {version}  {BUILT}\n"
    paths.proc_version.write_text(banner + "GCC version:  simulated\n", encoding="ascii")
    show_parameters(paths)
    write_atomically(paths.module_version, f"{version}\n")


def unload(paths: Paths) -> None:
    """Unload the module; harmless when none is loaded."""
    for folder in (paths.module_version.parent, paths.proc_version.parent, paths.sys / "module" / "nvidia_uvm"):
        shutil.rmtree(folder, ignore_errors=True)


def load_messages(version: str, bus_ids: list[str]) -> list[str]:
    """What the kernel log says when the module loads."""
    short = [bus_id[4:] for bus_id in bus_ids]
    return [
        "nvidia: module license 'NVIDIA' taints kernel.",
        "nvidia-nvlink: Nvlink Core is being initialized, major device number 237",
        *(f"nvidia {bus_id.lower()}: enabling device (0000 -> 0003)" for bus_id in short),
        f"NVRM: loading NVIDIA UNIX x86_64 Kernel Module  {version}  {BUILT}",
        *(
            f"[drm] Initialized nvidia-drm 0.0.0 20160202 for {bus_id.lower()} on minor {i}"
            for i, bus_id in enumerate(short)
        ),
    ]
