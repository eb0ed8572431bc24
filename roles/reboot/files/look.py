"""Look for what would keep a machine from coming back by itself after a restart, and which kernel it would start.

Runs on the machine as root with the system's Python (3.10 or newer, standard library only), changes nothing, and prints
one JSON object. A risk is what stops a start until somebody stands at the console.
"""

import configparser
import fnmatch
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TRIAL = "etc/default/grub.d/90-gpu-rig-trial.cfg"
REMOTE = {"nfs", "nfs4", "cifs", "smb3", "ceph", "glusterfs", "fuse.sshfs", "9p", "afs", "lustre", "beegfs"}
"""Their mounts belong to remote-fs.target, which no start waits for (systemd.mount(5))."""
BY_TAG = {"UUID": "by-uuid", "LABEL": "by-label", "PARTUUID": "by-partuuid", "PARTLABEL": "by-partlabel"}
WHOLE = {"installed", "config-files", "not-installed"}
"""States of a package with which dpkg has finished."""
SHOWN = 3
"""How many packages a message names."""


def run(*argv: str, timeout_s: int = 60) -> tuple[int, str]:
    """Exit status and stdout of a command, in the C locale; 127 where it does not exist, 124 where it hangs."""
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=timeout_s, env={**os.environ, "LC_ALL": "C"}, check=False
        )
    except FileNotFoundError:
        return 127, ""
    except subprocess.TimeoutExpired:
        return 124, ""
    return done.returncode, done.stdout


def read(path: Path) -> str:
    """The text of a file; empty where there is none."""
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def table(text: str, *otherwise: str) -> list[list[str]]:
    """The first four fields of each line of fstab or crypttab; `otherwise` are those that a line may leave out."""
    needed = 4 - len(otherwise)
    lines = [line.split() for line in text.splitlines() if not line.lstrip().startswith("#")]
    return [[*line, *otherwise[len(line) - needed :]][:4] for line in lines if len(line) >= needed]


def risk(name: str, found: str, remedy: str) -> dict[str, str]:
    """One reason not to restart."""
    return {"risk": name, "found": found, "remedy": remedy}


def device(root: Path, source: str) -> Path:
    """Where the source of a mount or of an encrypted volume is found: `UUID=…` → /dev/disk/by-uuid/…."""
    tag, equals, value = source.partition("=")
    if equals and tag in BY_TAG:
        return root / "dev/disk" / BY_TAG[tag] / value.strip('"')
    return root / source.lstrip("/")


def unlocked_by_itself(root: Path, source: str, key: str, options: list[str]) -> bool:
    """Whether an encrypted volume opens without anybody at the console: by a key file, a TPM or Clevis."""
    if any(option.startswith("tpm2-device=") for option in options):
        return True
    if key not in {"none", "-"}:
        return True
    return "clevis" in run("cryptsetup", "luksDump", str(device(root, source)))[1]


def encrypted_volumes(root: Path) -> list[dict[str, str]]:
    """Volumes of /etc/crypttab whose passphrase is asked for at the console (crypttab(5))."""
    risks = []
    for name, source, key, options in table(read(root / "etc/crypttab"), "none", ""):
        words = options.split(",")
        waits = not {"noauto", "nofail"} & set(words)
        if waits and not unlocked_by_itself(root, source, key, words):
            risks.append(
                risk(
                    "encrypted_volume",
                    f"the encrypted volume {name} (/etc/crypttab) asks for its passphrase at the console",
                    "let a TPM (tpm2-device=auto) or Clevis unlock it, or restart the rig while somebody stands there",
                )
            )
    return risks


def encrypted_zfs(root: Path) -> list[dict[str, str]]:
    """A root file system on ZFS whose key somebody has to type (zfsprops(7), keylocation).

    Ubuntu's installer keeps the key in an encrypted volume under /run/keystore, whose passphrase is asked for.
    """
    mounts = [line.split() for line in read(root / "proc/mounts").splitlines()]
    roots = [fields[0] for fields in mounts if len(fields) > 2 and fields[1:3] == ["/", "zfs"]]  # noqa: PLR2004
    for dataset in roots[-1:]:
        encrypted_at = run("zfs", "get", "-H", "-o", "value", "encryptionroot", dataset)[1].strip()
        if encrypted_at in {"", "-"}:
            continue
        place = run("zfs", "get", "-H", "-o", "value", "keylocation", encrypted_at)[1].strip()
        if place == "prompt" or place.startswith("file:///run/keystore/"):
            return [
                risk(
                    "encrypted_volume",
                    f"the root file system {dataset} (ZFS, keylocation {place}) asks for its passphrase at the console",
                    "let it find its key by itself (a keylocation that the initial RAM disk reaches, or Clevis for the "
                    "keystore), or restart the rig while somebody stands there",
                )
            ]
    return []


def missing_mounts(root: Path) -> list[dict[str, str]]:
    """Lines of /etc/fstab whose source is not there and that a start does not go on without (fstab(5))."""
    risks = []
    for source, place, kind, options in table(read(root / "etc/fstab"), "auto", "defaults"):
        words = set(options.split(","))
        optional = {"noauto", "nofail", "_netdev", "x-systemd.automount"} & words
        local = source.startswith("/") or source.partition("=")[0] in BY_TAG
        if optional or not local or kind in REMOTE | {"swap"} or place == "/":
            continue
        if not device(root, source.replace("\\040", " ")).exists():
            risks.append(
                risk(
                    "missing_mount",
                    f"there is no {source}, which /etc/fstab mounts at {place}",
                    f"attach it, or add nofail to the line of {place} or take the line out",
                )
            )
    return risks


def ini(path: Path) -> configparser.ConfigParser:
    """A file of systemd-networkd or NetworkManager; what cannot be read has no sections."""
    parser = configparser.ConfigParser(strict=False, interpolation=None, delimiters=("=",))
    try:
        parser.read_string(read(path))
    except configparser.Error:
        return configparser.ConfigParser()
    return parser


def configured_links(root: Path) -> Iterator[tuple[str, str]]:
    """Each (name pattern or MAC address, file) by which the network configuration knows an interface."""
    # netplan's own files need a YAML reader; what it makes of them lies under /run.
    for folder in ("etc/systemd/network", "run/systemd/network"):
        for path in sorted((root / folder).glob("*.network")):
            match = ini(path)["Match"] if ini(path).has_section("Match") else {}
            words = [match.get(key, "") for key in ("Name", "OriginalName", "MACAddress", "PermanentMACAddress")]
            for word in " ".join(words).split() or ["*"]:
                yield word, str(path)
    for folder in ("etc/NetworkManager/system-connections", "run/NetworkManager/system-connections"):
        for path in sorted((root / folder).glob("*")):
            parser = ini(path)
            mac = parser.get("ethernet", "mac-address", fallback="")
            yield parser.get("connection", "interface-name", fallback=mac or "*"), str(path)
    for path in [root / "etc/network/interfaces", *sorted((root / "etc/network/interfaces.d").glob("*"))]:
        for name in re.findall(r"^\s*iface\s+(\S+)", read(path), re.MULTILINE):
            yield name, str(path)


def links_in_use(root: Path) -> list[str]:
    """The interfaces behind the default routes; a bridge's or bond's own ones in its place."""
    routes = [line.split() for line in read(root / "proc/net/route").splitlines()[1:]]
    found = sorted({fields[0] for fields in routes if len(fields) > 1 and fields[1] == "00000000"})
    lower = [(name, sorted((root / "sys/class/net" / name).glob("lower_*"))) for name in found]
    return [link for name, under in lower for link in ([path.name[6:] for path in under] or [name])]


def shifted_links(root: Path) -> list[dict[str, str]]:
    """An interface in use that no configuration names, where a configured one is gone: a new card shifts buses."""
    configured = [(word, path) for word, path in configured_links(root) if word != "lo"]
    present = {path.name: read(path / "address").strip().lower() for path in (root / "sys/class/net").glob("*")}
    known = [word.lower() for word, _ in configured]
    gone = [
        (word, path)
        for word, path in configured
        if ":" not in word and not any(fnmatch.fnmatch(name, word) for name in present)
    ]
    strangers = [
        name
        for name in links_in_use(root)
        if not any(fnmatch.fnmatch(name.lower(), word) or present.get(name) == word for word in known)
    ]
    if not (gone and strangers):
        return []
    return [
        risk(
            "shifted_interface",
            f"the network is configured for {gone[0][0]} ({gone[0][1]}), which does not exist, and runs on "
            f"{strangers[0]}, which no configuration names",
            f"name {strangers[0]}, or better its MAC address {present.get(strangers[0], '')}, in the network's "
            "configuration (netplan: then run `sudo netplan generate`)",
        )
    ]


def small_boot(root: Path) -> list[dict[str, str]]:
    """/boot without room for one more initial RAM disk beside the largest that is there."""
    images = [path.stat().st_size for path in (root / "boot").glob("initrd.img-*")]
    room = os.statvfs(root / "boot") if images else None
    if room is None or room.f_bavail * room.f_frsize >= max(images):
        return []
    free, needed = room.f_bavail * room.f_frsize / 1e6, max(images) / 1e6
    return [
        risk(
            "small_boot",
            f"/boot has {free:.0f} MB free, and one more initial RAM disk takes {needed:.0f} MB",
            "remove old kernels (`sudo apt-get autoremove --purge`) or enlarge /boot",
        )
    ]


def headless_kernel(root: Path, kernel: str) -> list[dict[str, str]]:
    """The kernel that would start has no initial RAM disk, where the machine uses them."""
    boot = root / "boot"
    uses = any(boot.glob("initrd.img-*"))
    if not kernel or not uses or not (boot / f"vmlinuz-{kernel}").exists() or (boot / f"initrd.img-{kernel}").exists():
        return []
    return [
        risk(
            "missing_initramfs",
            f"the kernel {kernel} would start, and /boot has no initial RAM disk for it",
            f"run `sudo update-initramfs -c -k {kernel}`",
        )
    ]


def unfinished_packages(root: Path) -> list[dict[str, str]]:
    """Packages that dpkg has not finished with."""
    listed = run("dpkg-query", f"--admindir={root / 'var/lib/dpkg'}", "-W", "-f", "${Package} ${db:Status-Status}\n")[1]
    states = [line.partition(" ")[::2] for line in listed.splitlines()]
    names = [f"{package} ({state})" for package, state in states if state not in WHOLE]
    if not names:
        return []
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return [
        risk(
            "unfinished_packages",
            f"dpkg has not finished with {', '.join(names[:SHOWN])}{more}",
            "run `sudo dpkg --configure -a`",
        )
    ]


def read_menu(text: str) -> list[dict[str, Any]]:
    """grub.cfg → its menu: title, id, kernel and, of a submenu, entries."""
    top: dict[str, Any] = {"entries": []}
    stack = [top]
    for line in text.splitlines():
        entry = re.match(r"\s*(?:menuentry|submenu) +(?:'([^']*)'|\"([^\"]*)\")(.*)", line)
        kernel = re.match(r"\s*linux(?:efi)?\s+\S*/vmlinuz-(\S+)", line)
        if entry:
            named = re.search(r"(?:menuentry_id_option|--id)\S* +'([^']*)'", entry.group(3))
            title = entry.group(1) or entry.group(2) or ""
            stack[-1]["entries"].append({"title": title, "id": named.group(1) if named else title, "entries": []})
            stack.append(stack[-1]["entries"][-1])
        elif line.rstrip().endswith("{"):
            stack.append({"entries": []})
        elif line.strip() == "}" and len(stack) > 1:
            stack.pop()
        elif kernel:
            stack[-1].setdefault("kernel", kernel.group(1))
    entries: list[dict[str, Any]] = top["entries"]
    return entries


def kernel_of(menu: list[dict[str, Any]], default: str) -> str:
    """The kernel of a menu entry as GRUB names it: `0`, `1>2`, an id or a title; empty where it cannot be told."""
    word, _, rest = default.partition(">")
    found = [entry for place, entry in enumerate(menu) if word in {str(place), entry["id"], entry["title"]}]
    if not found:
        return ""
    return kernel_of(found[0]["entries"], rest or "0") if found[0]["entries"] else str(found[0].get("kernel", ""))


def ways_to(menu: list[dict[str, Any]], above: str = "") -> Iterator[tuple[str, str]]:
    """Each (kernel, what GRUB calls its entry), recovery entries left out."""
    for entry in menu:
        if entry["entries"]:
            yield from ways_to(entry["entries"], f"{above}{entry['id']}>")
        elif "kernel" in entry and "recovery" not in f"{entry['id']} {entry['title']}":
            yield entry["kernel"], f"{above}{entry['id']}"


def look_at_kernels(root: Path, running: str) -> dict[str, Any]:
    """Which kernel starts next by itself, and how GRUB calls it and the running one; empty without GRUB."""
    text = read(root / "boot/grub/grub.cfg")
    menu = read_menu(text)
    settings = [word for word in re.findall(r'set default="([^"]*)"', text) if word != "${next_entry}"]
    saved = re.search(r"^saved_entry=(.*)$", read(root / "boot/grub/grubenv"), re.MULTILINE)
    default = settings[0] if settings else "0"
    if default == "${saved_entry}":
        default = (saved.group(1) if saved else "") or "0"
    # Of the ways to a kernel the last is taken: the first is the top entry, whose id stays when its kernel changes.
    entries = dict(ways_to(menu))
    tried = re.search(r"^# on trial: (\S+)$", read(root / TRIAL), re.MULTILINE)
    on_trial = tried.group(1) if tried else ""
    following = on_trial if on_trial in entries else kernel_of(menu, default)
    return {
        "next_kernel": following,
        "on_trial": on_trial,
        "next_entry": entries.get(following, ""),
        "running_entry": entries.get(running, ""),
    }


def look(root: Path = Path("/")) -> dict[str, Any]:
    """All risks, the kernels, and the identity of this start."""
    running = os.uname().release
    kernels = look_at_kernels(root, running)
    risks = [
        *unfinished_packages(root),
        *small_boot(root),
        *headless_kernel(root, kernels["next_kernel"] or running),
        *encrypted_volumes(root),
        *encrypted_zfs(root),
        *missing_mounts(root),
        *shifted_links(root),
    ]
    boot_id = read(root / "proc/sys/kernel/random/boot_id").strip()
    return {"boot_id": boot_id, "kernel": running, **kernels, "risks": risks}


if __name__ == "__main__":
    json.dump(look(), sys.stdout)
