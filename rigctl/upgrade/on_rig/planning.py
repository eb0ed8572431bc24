"""What a driver or a kernel would bring to this rig, by the roles' own choice; and whether it would survive a restart.

The scripts of the roles `nvidia_driver`, `kernel` and `reboot` are sent along; nothing but package lists is changed.
"""

import re
import shutil
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

from . import state
from .state import Refused, run

_INSTALLED = re.compile(r"^Inst (\S+)(?: \[(\S+)\])? \((\S+)")
_REMOVED = re.compile(r"^(?:Remv|Purg) (\S+)(?: \[(\S+)\])?")
_FETCHED = re.compile(r"^'[^']*' (\S+)_[^_]*_[^_]*\.deb (\d+)")
APT_S = 300


def plan(driver: dict[str, Any] | None, kernel: dict[str, str] | None = None) -> dict[str, Any]:
    """Say what the roles would do for these wishes (None: that stays as it is), and what stands in their way."""
    looked = import_module("reboot_look").look()
    risks = [f"{one['risk']}: {one['found']}; {one['remedy']}" for one in looked["risks"]]
    packages, of_kernel, offer = [], None, None
    if kernel is not None:
        of_kernel = import_module("kernel_offer").look_at_kernel(kernel)
        wanted = [] if of_kernel["refusal"] else of_kernel["transaction"]
        packages += simulated(wanted) if wanted else []
    if driver is not None:
        offer = import_module("offers").look_at_offers(driver)
        packages += simulated(offer["transaction"], offer["preferences"]) if offer["to_install"] else []
    once = {one["name"]: one for one in packages}
    return {"offer": offer, "kernel": of_kernel, "packages": list(once.values()), "risks": risks}


def simulated(words: list[str], pins: str | None = None) -> list[dict[str, Any]]:
    """Each package of the transaction: `version` (empty: it goes), `before` (empty: it is new), `bytes` to fetch.

    `pins` stand in for the driver's own preferences; None: these stay as they are.
    """
    own = Path("/etc/apt/preferences.d/gpu-rig-nvidia-driver")
    with tempfile.TemporaryDirectory() as parts:
        for path in own.parent.iterdir():
            if path.is_file():
                shutil.copy(path, parts)
        if pins is not None:
            Path(parts, own.name).write_text(pins + "\n", encoding="utf-8")
        settings = (
            "-o", f"Dir::Etc::PreferencesParts={parts}", "--no-install-recommends", "--allow-downgrades",
            "--allow-change-held-packages",
        )  # fmt: skip
        code, text, said = run("apt-get", "-s", "-q", *settings, "install", *words, timeout_s=APT_S)
        uris = run("apt-get", "-y", "-qq", "--print-uris", *settings, "install", *words, timeout_s=APT_S)[1]
    if code:
        raise Refused(f"apt cannot do it: {' '.join((text + said).split())[-400:]}", "see `apt-get -s install` there")
    return read_simulation(text, read_sizes(uris))


def read_sizes(uris: str) -> dict[str, int]:
    """`apt-get --print-uris` → package → bytes to fetch; what is in apt's cache already is not listed."""
    found = (_FETCHED.match(line) for line in uris.splitlines())
    return {one.group(1): int(one.group(2)) for one in found if one}


def read_simulation(text: str, sizes: dict[str, int]) -> list[dict[str, Any]]:
    """`apt-get -s install` → the packages that come, change and go, in apt's order."""
    found = []
    for line in text.splitlines():
        comes, goes = _INSTALLED.match(line), _REMOVED.match(line)
        if comes:
            name, before, version = comes.groups()
            found.append({"name": name, "version": version, "before": before or "", "bytes": sizes.get(name, 0)})
        elif goes:
            found.append({"name": goes.group(1), "version": "", "before": goes.group(2) or "", "bytes": None})
    # A package that is unpacked anew is named twice, once as going.
    coming = {one["name"] for one in found if one["version"]}
    return [one for one in found if one["version"] or one["name"] not in coming]


def held_among(planned: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Which packages that would change or go are held, and whether they are parts of the driver."""
    changed = {one["name"] for one in planned if one["before"]}
    held = sorted(one["name"] for one in state.packages() if one["held"] and one["name"] in changed)
    is_driver = import_module("apt_answers").is_driver if held else bool
    return [{"name": name, "driver": is_driver(name)} for name in held]


def can_build() -> dict[str, Any]:
    """Refused where the kernel that boots next could have no module; another one may have come since the plan."""
    refusal = import_module("offers").build_needs(import_module("kernels").look_at_kernels())[1]
    if refusal:
        raise Refused(refusal, "mend that, then upgrade again; nothing was changed")
    return {}
