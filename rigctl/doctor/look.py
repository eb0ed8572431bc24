"""Look at a rig's system: disks, apt, Secure Boot, kernels, driver, cards. Changes nothing, prints one JSON object.

Runs on the rig as root, from standard input, with the system's Python (3.10 or newer, standard library only).
"""

import fcntl
import json
import os
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

APT_LOCKS = ("/var/lib/dpkg/lock-frontend", "/var/lib/dpkg/lock", "/var/lib/apt/lists/lock")
PLACES = ("/", "/boot", "/var")
FLOCK = "hhqqi"
"""struct flock of Linux on 64 bits: type, whence, start, length, process."""
RELEVANT = ("*nvidia*", "libcuda1", "dkms", "unattended-upgrades")
MODULE_FILES = ("nvidia", "nvidia-current", "nvidia-current-open")
"""What the driver's module file is called; the latter are Debian's."""


def run(*argv: str, timeout_s: int = 20) -> "tuple[int, str]":
    """Exit status and output of a command, in the C locale; 127 where it does not exist, 124 where it hangs."""
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=timeout_s, env={**os.environ, "LC_ALL": "C"}, check=False
        )
    except FileNotFoundError:
        return 127, ""
    except subprocess.TimeoutExpired:
        return 124, f"{argv[0]} did not answer within {timeout_s} s"
    return done.returncode, done.stdout + (done.stderr if done.returncode else "")


def answer_of(*argv: str) -> str:
    """What a command prints; empty where it fails, whose words are no answer."""
    rc, said = run(*argv)
    return said.strip() if rc == 0 else ""


def text_of(path: "str | Path") -> str:
    """A file's text without line end; empty where there is none."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def space(place: str) -> "dict[str, Any]":
    """Free space of the file system at `place`, bytes and files."""
    found = os.statvfs(place)
    return {
        "free_bytes": found.f_bavail * found.f_frsize,
        # File systems without a fixed table of files (btrfs) say 0 of 0.
        "free_files": found.f_favail if found.f_files else None,
        "read_only": bool(found.f_flag & os.ST_RDONLY),
    }


def lock_holder(path: str) -> "dict[str, Any] | None":
    """The process that holds apt's lock; asked of the kernel, without taking the lock."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - Path.open would do no more
            asked = struct.pack(FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            kind, _, _, _, pid = struct.unpack(FLOCK, fcntl.fcntl(file, fcntl.F_GETLK, asked))
    except FileNotFoundError:
        return None
    if kind == fcntl.F_UNLCK:
        return None
    return {"path": path, "pid": pid, "command": " ".join(text_of(f"/proc/{pid}/cmdline").replace("\0", " ").split())}


def cloud_init() -> str:
    """`running`, `done`, …; empty where there is no cloud-init."""
    found = re.search(r"^status: (.+)$", run("cloud-init", "status")[1], re.MULTILINE)
    return found.group(1) if found else ""


def next_kernel(running: str) -> str:
    """The kernel that the next boot takes: what GRUB was told, else the newest in /boot, else the running one."""
    saved = dict(re.findall(r"^(\w+)=(.*)$", text_of("/boot/grub/grubenv"), re.MULTILINE))
    settings = [text_of("/etc/default/grub"), *map(text_of, sorted(Path("/etc/default/grub.d").glob("*.cfg")))]
    default = ["0", *re.findall(r"^GRUB_DEFAULT=['\"]?([^'\"\n]*)", "\n".join(settings), re.MULTILINE)][-1]
    named = saved.get("next_entry") or (saved.get("saved_entry", "") if default == "saved" else default)
    found = re.search(r"gnulinux-(\d[^ >]*?)-(?:advanced|recovery)|, with Linux (\d\S*)", named)
    if found:
        return found.group(1) or found.group(2)
    there = [path.name.partition("-")[2] for path in Path("/boot").glob("vmlinuz-*") if not path.name.endswith(".old")]
    return max(there, key=natural, default=running)


def natural(name: str) -> "list[tuple[int, str]]":
    """Sorts 5.15.0-101 after 5.15.0-91."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def kernel(release: str, *, is_running: bool) -> "dict[str, Any]":
    """What it takes to build the driver's module for one kernel, and whether there is one."""
    modules = Path("/lib/modules") / release
    built = [path for folder in ("updates", "kernel", "extra") for path in (modules / folder).rglob("nvidia*.ko*")]
    policy = run("apt-cache", "policy", f"linux-headers-{release}")[1]
    config = text_of(f"/boot/config-{release}") or text_of(modules / "build" / ".config")
    version = text_of("/proc/version") if is_running else ""
    return {
        "release": release,
        "headers": (modules / "build").exists(),
        "headers_offered": bool(re.search(r"Candidate: (?!\(none\))\S", policy)),
        "module": any(path.name.split(".")[0] in MODULE_FILES for path in built),
        "compiler_major": compiler_of(version, config),
    }


def compiler_of(proc_version: str, config: str) -> "int | None":
    """The major version of the gcc that built a kernel."""
    for form, text in (
        (r"^CONFIG_GCC_VERSION=(\d+)\d{4}$", config),
        (r"\bgcc-(\d+) \(", proc_version),
        (r"\bgcc version (\d+)\.", proc_version),
        (r"\bgcc \([^)]*\) (\d+)\.", proc_version),
    ):
        found = re.search(form, text, re.MULTILINE)
        if found:
            return int(found.group(1))
    return None


def compilers() -> "list[int]":
    """Major versions of the gcc programs that are installed."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    named = {path.name for folder in folders for path in Path(folder).glob("gcc-*")}
    found = {int(name[4:]) for name in named if name[4:].isdigit()}
    rc, said = run("gcc", "-dumpversion")
    major = re.match(r"\d+", said) if rc == 0 else None
    return sorted(found | ({int(major.group())} if major else set()))


def secure_boot() -> "dict[str, Any]":
    """Whether the firmware loads signed modules only, and who signed what there is."""
    values = [path.read_bytes() for path in Path("/sys/firmware/efi/efivars").glob("SecureBoot-*")]
    state = run("mokutil", "--sb-state")[1] if not values else ""
    on = any(value[-1:] == b"\x01" for value in values) or "SecureBoot enabled" in state
    key = "/var/lib/shim-signed/mok/MOK.der"
    enrolled = on and Path(key).exists() and "already enrolled" in run("mokutil", "--test-key", key)[1]
    return {"on": on, "key_enrolled": enrolled, "signer": answer_of("modinfo", "-F", "signer", "nvidia")}


def packages() -> "dict[str, str]":
    """Installed packages that concern the driver, with versions; on hold (`hi`) or not."""
    listed = run("dpkg-query", "-W", "-f", "${db:Status-Abbrev}\t${Package}\t${Version}\n", *RELEVANT)[1]
    lines = [line.split("\t") for line in listed.splitlines()]
    return {line[1]: line[2] for line in lines if len(line) == 3 and line[0][1:2] == "i"}  # noqa: PLR2004 - the format above


def unattended() -> "dict[str, Any]":
    """Whether packages are upgraded by themselves, and which never are."""
    dump = run("apt-config", "dump")[1]
    on = re.search(r'^APT::Periodic::Unattended-Upgrade "([^"]*)";', dump, re.MULTILINE)
    return {
        "on": on is not None and on.group(1) not in ("", "0"),
        "never": re.findall(r'^Unattended-Upgrade::Package-Blacklist:: "([^"]*)";', dump, re.MULTILINE),
    }


def library_version() -> str:
    """The version of the NVML library that programs find; empty where there is none."""
    place = re.search(r"libnvidia-ml\.so\.1 .*=> (\S+)", run("ldconfig", "-p")[1])
    found = re.search(r"\.so\.(\d+(?:\.\d+)+)$", os.path.realpath(place.group(1))) if place else None
    return found.group(1) if found else ""


def cards_on_bus() -> "list[str]":
    """PCI addresses of NVIDIA's display controllers, as the firmware has found them."""
    rc, listed = run("lspci", "-nn")
    if rc == 0:
        return re.findall(r"^(\S+) .*\[030[02]\].*\[10de:[0-9a-f]{4}\]", listed, re.MULTILINE)
    devices = Path("/sys/bus/pci/devices")
    return sorted(
        path.name
        for path in devices.glob("*")
        if text_of(path / "vendor") == "0x10de" and text_of(path / "class")[:6] in ("0x0300", "0x0302")
    )


def look_at_rig() -> "dict[str, Any]":
    """Everything that the ladder reads."""
    running = os.uname().release
    coming = next_kernel(running)
    loaded = text_of("/sys/module/nvidia/version")
    system = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', text_of("/etc/os-release"), re.MULTILINE))
    # Where no module is loaded nvidia-smi would load it, and nothing is to be changed here.
    smi = run("nvidia-smi", "-L") if loaded else (0, "")
    settings = "".join(text_of(p) + "\n" for d in ("/etc", "/lib") for p in Path(d, "modprobe.d").glob("*.conf"))
    return {
        "system": system.get("PRETTY_NAME", "unknown"),
        "has_apt": shutil.which("apt-get") is not None and shutil.which("dpkg") is not None,
        "space": {place: space(place) for place in PLACES if place == "/" or os.path.ismount(place)},
        "initrd_bytes": max((path.stat().st_size for path in Path("/boot").glob("initrd.img-*")), default=0),
        "clock_synchronised": answer_of("timedatectl", "show", "-p", "NTPSynchronized", "--value") == "yes",
        "lists_read": any(Path("/var/lib/apt/lists").glob("*Packages*")),
        "apt_locks": [held for held in map(lock_holder, APT_LOCKS) if held],
        "cloud_init": cloud_init(),
        "half_done": run("dpkg", "--audit")[1].strip(),
        "secure_boot": secure_boot(),
        "nouveau": Path("/sys/module/nouveau").is_dir(),
        "nouveau_barred": bool(re.search(r"^\s*blacklist\s+nouveau\b", settings, re.MULTILINE)),
        "kernels": [kernel(running, is_running=True)]
        + ([kernel(coming, is_running=False)] if coming != running else []),
        "compilers": compilers(),
        "dkms": answer_of("dkms", "status").splitlines(),
        "packages": packages(),
        "held": answer_of("apt-mark", "showhold").split(),
        "unattended": unattended(),
        "reboot": Path("/run/reboot-required").exists(),
        "reboot_for": sorted(set(text_of("/run/reboot-required.pkgs").split())),
        "loaded": loaded,
        "library": library_version(),
        "cards_on_bus": cards_on_bus(),
        "cards": re.findall(r"\(UUID: (GPU-[0-9a-f-]+)\)", smi[1]),
        "cards_error": smi[1].strip()[:300] if smi[0] else "",
    }


if __name__ == "__main__":
    json.dump(look_at_rig(), sys.stdout)
