"""What apt and dpkg print, as plain data. Part of the scripts that run on a rig: Python 3.10, standard library only."""

import os
import re
import subprocess

import debian

BRANCHED = re.compile(
    r"^(?:lib|xserver-xorg-video-|linux-modules-|linux-objects-)?nvidia-(?:[a-z0-9]+-)*?(\d{3})(?:-|$)"
)


def run(*argv: str, timeout_s: int = 60) -> tuple[int, str]:
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


def driver_version(package_version: str) -> str:
    """The driver's own version: `515.76+really.515.65.01-0ubuntu0.22.04.1` carries 515.65.01."""
    upstream = package_version.rpartition(":")[2].partition("-")[0]
    return re.split(r"[+~]", upstream.rpartition("+really.")[2])[0]


def branch_of(package: str) -> str:
    """`libnvidia-compute-515` → 515; empty for a package that belongs to no branch."""
    found = BRANCHED.match(package)
    return found.group(1) if found else ""


def is_driver(package: str) -> bool:
    """Whether a package is a part of the driver: by its branch, or by one of the names that Debian uses."""
    return branch_of(package) != "" or debian.is_package(package)


def read_sources(policy: str) -> dict[str, dict[str, str]]:
    """`apt-cache policy` → index line (`http://… jammy/restricted amd64 Packages`) → what its Release file says."""
    sources: dict[str, dict[str, str]] = {}
    index = ""
    for line in policy.splitlines():
        text = line.strip()
        if re.match(r"^-?\d+ ", text):
            index = text.split(" ", 1)[1]
        elif text.startswith("release ") and index:
            sources[index] = dict(re.findall(r"([a-z])=([^,]*)", text))
    return sources


def read_versions(policy: str) -> list[tuple[str, list[str]]]:
    """`apt-cache policy PACKAGE` → each version, newest first, with the index lines that offer it."""
    versions: list[tuple[str, list[str]]] = []
    table = policy.partition("Version table:")[2]
    for line in table.splitlines():
        version = re.match(r"^ (?:\*\*\*|   ) (\S+)", line)
        index = re.match(r"^ {8,}-?\d+ (.+)$", line)
        if version:
            versions.append((version.group(1), []))
        elif index and versions:
            versions[-1][1].append(index.group(1).strip())
    return versions


def read_transitional(show: str) -> set[str]:
    """`apt-cache show PACKAGE` → the versions that are only transitional packages."""
    found = set()
    for record in show.split("\n\n"):
        version = re.search(r"^Version: (\S+)", record, re.MULTILINE)
        description = re.search(r"^Description(?:-\w+)?: (.*)", record, re.MULTILINE)
        if version and description and "transitional" in description.group(1).lower():
            found.add(version.group(1))
    return found


def read_real_names(show: str) -> list[str]:
    """`apt-cache show PACKAGES` → the packages that some version offers as more than a transitional package."""
    names = []
    for record in show.split("\n\n"):
        name = re.search(r"^Package: (\S+)", record, re.MULTILINE)
        version = re.search(r"^Version: (\S+)", record, re.MULTILINE)
        if not name or not version or read_transitional(record):
            continue
        if driver_version(version.group(1)).startswith(branch_of(name.group(1)) + "."):
            names.append(name.group(1))
    return sorted(set(names))


def read_installed(status: str) -> dict[str, str]:
    """`dpkg-query` (name, version, status) → the installed packages with their marks: `ii`, or `hi` where held."""
    rows = [line.split() for line in status.splitlines()]
    return {row[0]: row[2] for row in rows if len(row) == 3 and row[2].endswith("i")}  # noqa: PLR2004


def read_package_versions(status: str) -> dict[str, str]:
    """`dpkg-query` (name, version, status) → the versions of the installed packages."""
    whole = read_installed(status)
    rows = [line.split() for line in status.splitlines()]
    return {row[0]: row[1] for row in rows if row and row[0] in whole}


def read_simulation(text: str) -> dict[str, list[list[str]]]:
    """`apt-get -s install` → [package, version] to `install` and `remove`; `new`: the former that are not there."""
    done: dict[str, list[list[str]]] = {"install": [], "remove": [], "new": []}
    for line in text.splitlines():
        installed = re.match(r"^Inst (\S+) (\[\S+\] )?\((\S+)", line)
        removed = re.match(r"^(?:Remv|Purg) (\S+)(?: \[(\S+)\])?", line)
        if installed:
            done["install"].append([installed.group(1), installed.group(3)])
            done["new"] += [] if installed.group(2) else [done["install"][-1]]
        elif removed:
            done["remove"].append([removed.group(1), removed.group(2) or ""])
    return done
