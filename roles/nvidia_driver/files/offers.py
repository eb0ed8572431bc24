"""Ask a rig's package sources what they really offer as a driver branch, and what installing it would do.

Runs on the rig with the system's Python (3.10 or newer, standard library only), changes nothing but package lists that
were never read, and prints one JSON object. Its one argument are the role's wishes as JSON: branch, version, source,
flavour, modules, known_bad, and kernel (the one that is to run; left out or empty for whichever boots).
"""

import json
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import debian
from apt_answers import (
    branch_of,
    driver_version,
    is_driver,
    read_installed,
    read_package_versions,
    read_real_names,
    read_simulation,
    read_sources,
    read_transitional,
    read_versions,
    run,
)
from driver_choice import (
    PREBUILT,
    choose,
    is_old,
    known_bad,
    nearest_branches,
    not_offered,
    preferences,
    source_word,
    strangers,
    top_packages,
)
from kernels import look_at_kernels

PREFERENCES = "/etc/apt/preferences.d/gpu-rig-nvidia-driver"
BROUGHT = Path("/var/lib/gpu-rig/nvidia_driver.json")
"""The packages that this role has brought to the rig: what decommissioning takes away again."""

LISTS = Path("/var/lib/apt/lists")


def read_lists() -> None:
    """Let apt read its package lists where it never has: a fresh machine knows of no package at all."""
    if not any(LISTS.glob("*Packages*")):
        run("apt-get", "-q", "update")


def is_offered(package: str) -> bool:
    """Whether a configured source has the package."""
    return any(indexes for _, indexes in read_versions(run("apt-cache", "policy", package)[1]))


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


def read_offers(top: str, branch: str, bad: list[dict[str, str]], policy: str) -> list[dict[str, Any]]:
    """Each version of a package that is on offer or installed, newest first."""
    sources = read_sources(policy)
    transitional = read_transitional(run("apt-cache", "show", "--all-versions", top)[1])
    offers = []
    for version, indexes in read_versions(run("apt-cache", "policy", top)[1]):
        driver = driver_version(version)
        offers.append(
            {
                "version": version,
                "driver": driver,
                "real": version not in transitional and driver.startswith(branch + "."),
                "bad": known_bad(driver, bad),
                "installed": "/var/lib/dpkg/status" in indexes,
                "sources": sorted({source_word(sources[index]) for index in indexes if index in sources} - {""}),
            }
        )
    return offers


def build_needs(kernels: list[dict[str, Any]]) -> tuple[list[str], str]:
    """What DKMS needs beside the driver (headers, a kernel's own compiler), and why it cannot be had; else empty."""
    needs, refusal = [], ""
    for kernel in kernels:
        headers, compiler = f"linux-headers-{kernel['release']}", f"gcc-{kernel['compiler']}"
        if not kernel["headers"] and is_offered(headers):
            needs.append(headers)
        elif not kernel["headers"] and kernel is kernels[-1]:
            refusal = (
                f"the kernel {kernel['release']} has no headers, and no source offers {headers}, so its module cannot "
                "be built. Install the kernel's headers, or update the kernel (apt-get install linux-generic; on "
                "Debian linux-image-amd64 linux-headers-amd64) and restart into it. Nothing was installed."
            )
        if not kernel["compiler_present"] and is_offered(compiler):
            needs.append(compiler)
        elif kernel["compiler_too_old"]:
            refusal = refusal or (
                f"the kernel {kernel['release']} was built by {compiler}, which this rig does not have and no source "
                f"offers; an older gcc cannot build its module. Install {compiler}, boot a kernel that the rig's gcc "
                "can build for, or set nvidia_driver_modules: signed. Nothing was installed."
            )
    return sorted(set(needs)), refusal


def transaction_words(wishes: dict[str, Any], top: list[str], target: str, installed: dict[str, str]) -> list[str]:
    """What is said to `apt-get install`: the driver, and other branches and flavours with a `-` to go.

    Without the latter apt's resolver would keep the old branch by turning it into its transitional packages.
    """
    if not target:
        return top
    old = [f"{name}-" for name in sorted(installed) if is_old(name, wishes)]
    named = [name if name.startswith("linux-modules-") else f"{name}={target}" for name in top]
    return [*named, *old]


def moved(wishes: dict[str, Any], top: list[str], target: str, status: str) -> list[str]:
    """Debian: the installed parts of the driver, in the version that is to come.

    They need each other in exactly one version, and apt's resolver does not take installed ones back by itself.
    """
    if wishes["system"] != "debian" or not target:
        return []
    parts = [
        name
        for name, version in read_package_versions(status).items()
        if debian.is_package(name) and name not in top and version != target and not is_old(name, wishes)
    ]
    return [f"{name}={target}" for name in sorted(parts) if run("apt-cache", "show", f"{name}={target}")[0] == 0]


def look_at_offers(wishes: dict[str, Any]) -> dict[str, Any]:
    """What the package sources offer for the branch, and what the installation would do."""
    read_lists()
    kernels = look_at_kernels(wishes.get("kernel", ""))
    wishes = on_this_system(wishes)
    top = top_packages(wishes, [kernel["release"] for kernel in kernels])
    policy = run("apt-cache", "policy")[1]
    offers = read_offers(top[0], wishes["branch"], wishes["known_bad"], policy)
    target, source = choose(offers, wishes)
    pins = preferences(source, wishes, target)
    status = run(
        "dpkg-query", "-W", "-f", "${Package} ${Version} ${db:Status-Abbrev}\n", "*nvidia*", *debian.OUTSIDE_OF_NVIDIA
    )[1]
    installed = read_installed(status)
    needs, refusal = build_needs(kernels) if wishes["modules"] == "dkms" else ([], "")
    words = [*transaction_words(wishes, top, target, installed), *moved(wishes, top, target, status), *needs]
    rc, text = simulate(words, pins)
    transaction = read_simulation(text)
    own = [name for name in (*(name for name, _ in transaction["install"]), *installed) if is_driver(name)]
    own = [name for name in own if not name.startswith(PREBUILT)]
    configured = {source_word(release) for release in read_sources(policy).values()}
    looked: dict[str, Any] = {
        "top": top,
        "offers": offers,
        "source": source,
        "target": target,
        "target_driver": driver_version(target) if target else "",
        "source_configured": source in configured
        or (source == "auto" and {wishes["system"], "cuda_repo"} <= configured),
        "preferences": pins,
        "transaction": words,
        "to_install": bool(target and (transaction["install"] or transaction["remove"])),
        "packages": sorted({name for name in own if not is_old(name, wishes)}),
        "before": {name: version for name, version in read_package_versions(status).items() if is_driver(name)},
        "held": sorted(name for name, mark in installed.items() if mark == "hi"),
        "brought": sorted({*read_brought(), *(name for name, _ in transaction["new"])}),
        "kernels": kernels,
        "signed_offered": signed_offered(wishes, kernels),
    }
    if wishes["system"] == "debian" and debian.refusal(wishes):
        return {**looked, "refusal": debian.refusal(wishes)}
    if not target:
        return {**looked, "refusal": why_not_offered(wishes, top[0], offers, transaction["install"])}
    return {**looked, "refusal": refusal or wrong_transaction(wishes, target, rc, text)}


def on_this_system(wishes: dict[str, Any], os_release: Path = Path("/etc/os-release")) -> dict[str, Any]:
    """The wishes with `system`, `ubuntu` or `debian`; the default of the source means the system's own archive."""
    if "system" in wishes:
        return wishes
    found = re.search(r'^ID="?(\w+)', os_release.read_text(encoding="utf-8"), re.MULTILINE)
    system = "debian" if found and found.group(1) == "debian" else "ubuntu"
    own = {"ubuntu": system, "debian": system}
    return {**wishes, "system": system, "source": own.get(wishes["source"], wishes["source"])}


def read_brought() -> list[str]:
    """What earlier transactions of this role have brought."""
    found: list[str] = json.loads(BROUGHT.read_text(encoding="utf-8"))["packages"] if BROUGHT.is_file() else []
    return found


def signed_offered(wishes: dict[str, Any], kernels: list[dict[str, Any]]) -> bool:
    """Whether a source has signed modules for the kernel that boots next; asked only where the firmware is UEFI."""
    if not Path("/sys/firmware/efi").is_dir():
        return False
    return is_offered(top_packages({**wishes, "modules": "signed"}, [kernels[-1]["release"]])[-1])


def why_not_offered(wishes: dict[str, Any], top: str, offers: list[dict[str, Any]], installs: list[list[str]]) -> str:
    """The refusal where no version can be taken, with the nearest branches that could."""
    became = max((branch_of(name) for name, _ in installs if name.startswith(("nvidia-driver-", "nvidia-headless-"))),
                 default="")  # fmt: skip
    nearest: list[str] = []
    if wishes["system"] == "ubuntu" and not any(offer["real"] for offer in offers):
        names = run("apt-cache", "pkgnames", top.partition(wishes["branch"])[0])[1].split()
        real = read_real_names(run("apt-cache", "show", "--all-versions", *sorted(names))[1]) if names else []
        nearest = nearest_branches(real, wishes)
    return not_offered(wishes, offers, became if became != wishes["branch"] else "", nearest)


def wrong_transaction(wishes: dict[str, Any], target: str, rc: int, text: str) -> str:
    """Why the simulated installation is not what was asked for; empty where it is."""
    transaction = read_simulation(text)
    foreign = [name for name, _ in transaction["remove"] if "nvidia" not in name]
    strange = strangers(transaction["install"], wishes, target)
    remedy = "Nothing was installed. Try `apt-get -s install` on the rig; other sources may stand in the way."
    if rc:
        return f"apt cannot install {target} of branch {wishes['branch']}: {' '.join(text.split())[-500:]} {remedy}"
    if strange:
        return f"installing {target} would also install {', '.join(strange)}. {remedy}"
    if foreign:
        return f"installing {target} would remove {', '.join(foreign)}. {remedy}"
    return ""


def main(argument: str) -> None:
    """Print the JSON object."""
    json.dump(look_at_offers(json.loads(argument)), sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
