"""Ask a rig's package sources what they really offer as a driver branch, and what installing it would do.

Runs on the rig with the system's Python (3.10 or newer, standard library only), changes nothing, and prints one JSON
object. Its one argument are the role's wishes as JSON: branch, version, source, flavour.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

PREFERENCES = "/etc/apt/preferences.d/gpu-rig-nvidia-driver"
KNOWN_SOURCES = {"ubuntu": "o=Ubuntu", "cuda_repo": "l=NVIDIA CUDA"}
"""Our word for a source → what its Release file says (`apt-cache policy` prints both)."""
DRIVER_PACKAGES = (
    "nvidia-driver-* nvidia-headless-* nvidia-dkms-* nvidia-kernel-* nvidia-utils-* nvidia-compute-utils-* "
    "nvidia-firmware-* nvidia-settings nvidia-modprobe libnvidia-* libxnvctrl0 xserver-xorg-video-nvidia-* "
    "linux-modules-nvidia-* linux-objects-nvidia-* linux-signatures-nvidia-* cuda-drivers*"
)
BRANCHED = re.compile(r"^(?:lib|xserver-xorg-video-)?nvidia-(?:[a-z0-9]+-)*?(\d{3})(?:-|$)")


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


def read_installed(status: str) -> dict[str, str]:
    """`dpkg-query` (name, version, status) → the installed packages with their marks: `ii`, or `hi` where held."""
    rows = [line.split() for line in status.splitlines()]
    return {row[0]: row[2] for row in rows if len(row) == 3 and row[2].endswith("i")}  # noqa: PLR2004


def read_simulation(text: str) -> dict[str, list[list[str]]]:
    """`apt-get -s install` → `install`: [package, version] and `remove`: [package, version]."""
    done: dict[str, list[list[str]]] = {"install": [], "remove": []}
    for line in text.splitlines():
        installed = re.match(r"^Inst (\S+) (?:\[\S+\] )?\((\S+)", line)
        removed = re.match(r"^(?:Remv|Purg) (\S+)(?: \[(\S+)\])?", line)
        if installed:
            done["install"].append([installed.group(1), installed.group(2)])
        elif removed:
            done["remove"].append([removed.group(1), removed.group(2) or ""])
    return done


def source_word(release: dict[str, str]) -> str:
    """How an operator asks for this source in `nvidia_driver_source`; empty for one without a Release file."""
    for word, pin in KNOWN_SOURCES.items():
        key, _, value = pin.partition("=")
        if release.get(key) == value:
            return word
    found = [f"release {key}={release[key]}" for key in ("l", "o") if release.get(key)]
    return found[0] if found else ""


def preferences(source: str, branch: str, target: str) -> str:
    """Apt's preferences: driver packages from one source only, and of one version where that is known.

    The first record that matches a version decides, see apt_preferences(5).
    """
    pin = "release " + KNOWN_SOURCES.get(source, source.removeprefix("release "))
    own = " ".join(f"*nvidia-*-{branch}{end}" for end in ("", "-*"))
    exact = [(own, f"version {target}", 1001)] if target else []
    records = [*exact, (DRIVER_PACKAGES, pin, 900), (DRIVER_PACKAGES, "release *", -1)]
    return "\n\n".join(
        f"Package: {packages}\nPin: {what}\nPin-Priority: {priority}" for packages, what, priority in records
    )


def top_packages(branch: str, flavour: str) -> list[str]:
    """The packages that pull in all others of a branch."""
    if flavour == "headless":
        return [f"nvidia-headless-{branch}", f"nvidia-utils-{branch}"]
    return [f"nvidia-driver-{branch}"]


def missing_headers() -> list[str]:
    """The headers of the running kernel, where DKMS lacks them and a source offers them."""
    name = f"linux-headers-{os.uname().release}"
    if Path(f"/lib/modules/{os.uname().release}/build").exists():
        return []
    return [name] if any(indexes for _, indexes in read_versions(run("apt-cache", "policy", name)[1])) else []


def simulate(wanted: list[str], pins: str) -> tuple[int, str]:
    """`apt-get -s install` under preferences that are not on the rig yet."""
    with tempfile.TemporaryDirectory() as parts:
        for path in Path(PREFERENCES).parent.iterdir():
            if path != Path(PREFERENCES) and path.is_file():
                shutil.copy(path, parts)
        Path(parts, Path(PREFERENCES).name).write_text(pins + "\n", encoding="utf-8")
        return run(
            "apt-get", "-s", "-q", "-o", f"Dir::Etc::PreferencesParts={parts}", "--no-install-recommends",
            "--allow-downgrades", "--allow-change-held-packages", "install", *wanted,
        )  # fmt: skip


def read_offers(top: str) -> list[dict[str, Any]]:
    """Each version of a package that is on offer or installed, newest first."""
    sources = read_sources(run("apt-cache", "policy")[1])
    transitional = read_transitional(run("apt-cache", "show", "--all-versions", top)[1])
    offers = []
    for version, indexes in read_versions(run("apt-cache", "policy", top)[1]):
        driver = driver_version(version)
        offers.append(
            {
                "version": version,
                "driver": driver,
                "real": version not in transitional and driver.startswith(branch_of(top) + "."),
                "installed": "/var/lib/dpkg/status" in indexes,
                "sources": sorted({source_word(sources[index]) for index in indexes if index in sources} - {""}),
            }
        )
    return offers


def choose(offers: list[dict[str, Any]], version: str, source: str) -> str:
    """The package version to install: the one the rig has where it fits, else the newest one of the source."""
    real = [offer for offer in offers if offer["real"] and version in ("", offer["driver"])]
    kept = [offer for offer in real if offer["installed"]]
    offered = [offer for offer in real if source in offer["sources"]]
    return str((kept or offered or [{"version": ""}])[0]["version"])


def look_at_offers(wishes: dict[str, Any]) -> dict[str, Any]:
    """What the package sources offer for the branch, and what the installation would do."""
    branch, source = wishes["branch"], wishes["source"]
    top = top_packages(branch, wishes["flavour"])
    offers = read_offers(top[0])
    target = choose(offers, wishes["version"], source)
    pins = preferences(source, branch, target)
    installed = read_installed(
        run("dpkg-query", "-W", "-f", "${Package} ${Version} ${db:Status-Abbrev}\n", "*nvidia*")[1]
    )
    words = transaction_words(top, target, branch, installed)
    rc, text = simulate(words, pins)
    transaction = read_simulation(text)
    incoming = [name for name, _ in transaction["install"]]
    configured = {source_word(release) for release in read_sources(run("apt-cache", "policy")[1]).values()}
    looked: dict[str, Any] = {
        "top": top,
        "offers": offers,
        "target": target,
        "target_driver": driver_version(target) if target else "",
        "source_configured": source in configured,
        "preferences": pins,
        "transaction": words,
        "to_install": bool(target and (transaction["install"] or transaction["remove"])),
        "packages": sorted({name for name in (*incoming, *installed) if branch_of(name) == branch}),
        "held": sorted(name for name, mark in installed.items() if mark == "hi"),
    }
    if not target:
        return {**looked, "refusal": not_offered(wishes, top[0], offers, transaction["install"])}
    return {**looked, "refusal": wrong_transaction(wishes, target, rc, text)}


def transaction_words(top: list[str], target: str, branch: str, installed: dict[str, str]) -> list[str]:
    """What is said to `apt-get install`: the driver, headers it is built with, and other branches with a `-` to go.

    Without the latter apt's resolver would keep the old branch by turning it into its transitional packages.
    """
    if not target:
        return top
    old = [f"{name}-" for name in sorted(installed) if branch_of(name) not in {"", branch}]
    return [*(f"{name}={target}" for name in top), *missing_headers(), *old]


def not_offered(wishes: dict[str, Any], top: str, offers: list[dict[str, Any]], installs: list[list[str]]) -> str:
    """Why the asked source cannot give the driver, who can, and how to choose."""
    branch, version, source = wishes["branch"], wishes["version"], wishes["source"]
    asked = f"{top} {version}".strip()
    became = max((branch_of(name) for name, _ in installs if name.startswith("nvidia-driver-")), default="")
    elsewhere = [
        (word, str(offer["version"]))
        for offer in offers
        for word in offer["sources"]
        if offer["real"] and word != source
    ]
    if became and became != branch:
        said = f"{source} has {top} only as a transitional package: it would have become {became}."
    elif offers:
        said = f"{source} does not have {asked}; on offer: {', '.join(str(offer['driver']) for offer in offers)}."
    else:
        said = f"no configured package source has {asked}."
    for word, found in elsewhere:
        said += f" The source {word} has the real one: {top} {driver_version(found)} ({found})."
    ways = [f"nvidia_driver_source: {elsewhere[0][0]}"] if elsewhere else []
    ways += [f'nvidia_driver_branch: "{became}"'] if became and became != branch else []
    ways += [] if ways else ["another nvidia_driver_branch"]
    more = "" if elsewhere else ", or add a package source that has the real one (cuda_repo_line)"
    return f"{said} Nothing was installed. Choose: set {' or '.join(ways)}{more}."


def wrong_transaction(wishes: dict[str, Any], target: str, rc: int, text: str) -> str:
    """Why the simulated installation is not what was asked for; empty where it is."""
    transaction = read_simulation(text)
    foreign = [name for name, _ in transaction["remove"] if "nvidia" not in name]
    strange = strangers(transaction["install"], wishes["branch"], target)
    remedy = "Nothing was installed. Try `apt-get -s install` on the rig; other sources may stand in the way."
    if rc:
        return f"apt cannot install {target} of branch {wishes['branch']}: {' '.join(text.split())[-500:]} {remedy}"
    if strange:
        return f"installing {target} would also install {', '.join(strange)}. {remedy}"
    if foreign:
        return f"installing {target} would remove {', '.join(foreign)}. {remedy}"
    return ""


def strangers(installs: list[list[str]], branch: str, target: str) -> list[str]:
    """Driver packages of the transaction that are of another branch or carry another driver than the target."""
    return [
        f"{name} {version}"
        for name, version in installs
        if branch_of(name) and (branch_of(name) != branch or driver_version(version) != driver_version(target))
    ]


def main(argument: str) -> None:
    """Print the JSON object."""
    json.dump(look_at_offers(json.loads(argument)), sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
