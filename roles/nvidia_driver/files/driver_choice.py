"""Which driver of those on offer is taken, and why not: what the words of the role's variables mean to apt."""

import re
from typing import Any

import debian
from apt_answers import branch_of, driver_version, is_driver

KNOWN_SOURCES = {
    "ubuntu": "o=Ubuntu",
    "debian": "o=Debian",
    "deb_cache": "l=gpu-rig deb cache",
    "cuda_repo": "l=NVIDIA CUDA",
}
"""Our word for a source → what its Release file says (`apt-cache policy` prints both), in the order of `auto`."""
DRIVER_PACKAGES = (
    "nvidia-driver-* nvidia-headless-* nvidia-dkms-* nvidia-kernel-* nvidia-utils-* nvidia-compute-utils-* "
    "nvidia-firmware-* nvidia-settings nvidia-modprobe libnvidia-* libxnvctrl0 xserver-xorg-video-nvidia-* "
    "linux-modules-nvidia-* linux-objects-nvidia-* linux-signatures-nvidia-* cuda-drivers*"
)
KERNEL_PARTS = re.compile(r"^nvidia-(driver|headless|headless-no-dkms|dkms|kernel-source)-\d{3}")
"""Packages that the open kernel modules have under names of their own; user space is the same for both."""
PREBUILT = ("linux-modules-nvidia-", "linux-objects-nvidia-")
"""Modules that the distribution has built and signed; their versions follow the kernel's."""
NO_DRIVER = "libnvidia-container*"
"""The container toolkit's library, which comes from a source of its own."""
NEAREST = 3
"""So many other branches are named where the asked one does not exist."""


def source_word(release: dict[str, str]) -> str:
    """How an operator asks for this source in `nvidia_driver_source`; empty for one without a Release file."""
    for word, pin in KNOWN_SOURCES.items():
        key, _, value = pin.partition("=")
        if release.get(key) == value:
            return word
    found = [f"release {key}={release[key]}" for key in ("l", "o") if release.get(key)]
    return found[0] if found else ""


def ending(branch: str, flavour: str) -> str:
    """What packages of a flavour are called behind their name: `headless-server-open` of 535 → `535-server-open`."""
    return branch + "".join(f"-{part}" for part in ("server", "open") if part in flavour.split("-"))


def top_packages(wishes: dict[str, Any], kernels: list[str]) -> list[str]:
    """The packages that pull in all others of a branch; with signed modules those of each kernel instead of DKMS."""
    if wishes["system"] == "debian":
        return debian.top_packages(wishes)
    end = ending(wishes["branch"], wishes["flavour"])
    signed = wishes["modules"] == "signed"
    modules = [f"linux-modules-nvidia-{end}-{kernel}" for kernel in kernels] if signed else []
    if "headless" in wishes["flavour"].split("-"):
        kind = "nvidia-headless-no-dkms" if signed else "nvidia-headless"
        return [f"{kind}-{end}", f"nvidia-utils-{end.removesuffix('-open')}", *modules]
    return [f"nvidia-driver-{end}", *modules]


def is_old(package: str, wishes: dict[str, Any]) -> bool:
    """Whether an installed driver package is of another branch or flavour than the asked one, and so has to go."""
    if debian.is_package(package):
        return debian.is_old(package, wishes)
    branch, flavour = wishes["branch"], wishes["flavour"].split("-")
    if branch_of(package) == "" or package.startswith(f"nvidia-firmware-{branch}-"):
        return False
    prebuilt, parts = package.startswith(PREBUILT), package.split("-")
    other_server = ("server" in parts) != ("server" in flavour)
    other_open = (prebuilt or KERNEL_PARTS.match(package) is not None) and ("open" in parts) != ("open" in flavour)
    other_modules = package.startswith("nvidia-dkms-") if wishes["modules"] == "signed" else prebuilt
    return branch_of(package) != branch or other_server or other_open or other_modules


def known_bad(driver: str, bad: list[dict[str, str]]) -> str:
    """Why a driver version is on the list of known-bad ones; empty where it is not."""
    number = numbers(driver)
    for entry in bad:
        if numbers(entry["from"]) <= number < numbers(entry["below"]):
            return f"{driver} is known to be bad: {entry['reason']} ({entry['source']})"
    return ""


def numbers(version: str) -> list[int]:
    """A driver version for comparing."""
    return [int(number) for number in re.findall(r"\d+", version)]


def choose(offers: list[dict[str, Any]], wishes: dict[str, Any]) -> tuple[str, str]:
    """Package version and source to install: what the rig has where it fits, else the newest of the first source."""
    asked, source = wishes["version"], wishes["source"]
    order = list(KNOWN_SOURCES) if source == "auto" else [source]
    fits = [offer for offer in offers if offer["real"] and not offer["bad"]]
    fits = [offer for offer in fits if asked in ("", offer["driver"], offer["version"])]
    kept = [offer for offer in fits if offer["installed"]]
    for word in order:
        for offer in kept or fits:
            if word in offer["sources"]:
                return str(offer["version"]), word
    return (str(kept[0]["version"]), order[0]) if kept else ("", source)


def preferences(source: str, wishes: dict[str, Any], target: str) -> str:
    """Apt's preferences: driver packages from one source only, and of one version where that is known.

    The first record that matches a version decides, see apt_preferences(5).
    """
    branch = wishes["branch"]
    word = wishes["system"] if source == "auto" else source
    pin = "release " + KNOWN_SOURCES.get(word, word.removeprefix("release "))
    own = " ".join(
        f"{name}{branch}{end}" for name in ("*nvidia-*-", "xserver-xorg-video-nvidia-") for end in ("", "-*")
    )
    # These patterns leave out linux-modules-nvidia-N-KERNEL, whose versions follow the kernel.
    packages = DRIVER_PACKAGES
    if wishes["system"] == "debian":
        own, packages = debian.SOURCES, debian.PATTERNS
    exact = [(own, f"version {target}", 1001)] if target else []
    records = [(NO_DRIVER, "release *", 500), *exact, (packages, pin, 900), (packages, "release *", -1)]
    return "\n\n".join(
        f"Package: {packages}\nPin: {what}\nPin-Priority: {priority}" for packages, what, priority in records
    )


def not_offered(wishes: dict[str, Any], offers: list[dict[str, Any]], became: str, nearest: list[str]) -> str:
    """Why the asked source cannot give the driver, who can, and how to choose."""
    version, source = wishes["version"], wishes["source"]
    top = top_packages(wishes, [])[0]
    if wishes["system"] == "debian" and not any(offer["bad"] for offer in offers):
        return debian.not_offered(wishes, top, offers)
    asked = f"{top} {version}".strip()
    bad = [offer["bad"] for offer in offers if offer["bad"] and version in ("", offer["driver"], offer["version"])]
    if bad:
        return (
            f"{'; '.join(bad)}. Nothing was installed. Choose another nvidia_driver_version or nvidia_driver_branch, "
            "or set nvidia_driver_allow_known_bad: true."
        )
    elsewhere = [
        (word, str(offer["version"]))
        for offer in offers
        for word in offer["sources"]
        if offer["real"] and word != source
    ]
    where = "no source" if source == "auto" else source
    own = [offer for offer in offers if source in offer["sources"]]
    if became:
        said = f"{source} has {top} only as a transitional package: it would have become {became}."
    elif own and not any(offer["real"] for offer in own):
        said = f"{source} has {top} only as a transitional package for another branch."
    elif offers:
        has = "has" if source == "auto" else "does not have"
        said = f"{where} {has} {asked}; on offer: {', '.join(str(offer['driver']) for offer in offers)}."
    else:
        said = f"no configured package source has {asked}."
    for word, found in elsewhere:
        said += f" The source {word} has the real one: {top} {driver_version(found)} ({found})."
    if nearest and not elsewhere:
        said += f" The nearest that are real: {', '.join(nearest)}."
    ways = [f"nvidia_driver_source: {elsewhere[0][0]}"] if elsewhere and source != "auto" else []
    ways += [f'nvidia_driver_branch: "{became}"'] if became else []
    ways += [] if ways else ["another nvidia_driver_branch or nvidia_driver_flavour"]
    more = "" if elsewhere else ", or add a package source that has the real one (cuda_repo_line)"
    return f"{said} Nothing was installed. Choose: set {' or '.join(ways)}{more}."


def nearest_branches(names: list[str], wishes: dict[str, Any]) -> list[str]:
    """Those real top packages of the asked flavour whose branch numbers are nearest to the asked one."""
    wanted = top_packages(wishes, [])[0]
    same = [name for name in names if branch_of(name) and name.replace(branch_of(name), wishes["branch"]) == wanted]
    return sorted(same, key=lambda name: abs(int(branch_of(name)) - int(wishes["branch"])))[:NEAREST]


def strangers(installs: list[list[str]], wishes: dict[str, Any], target: str) -> list[str]:
    """Driver packages of the transaction that are of another branch or flavour, or carry another driver."""
    return [
        f"{name} {version}"
        for name, version in installs
        if is_driver(name)
        and (
            is_old(name, wishes) or not (name.startswith(PREBUILT) or driver_version(version) == driver_version(target))
        )
    ]
