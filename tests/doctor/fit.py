"""The facts of a rig that is fit; tests change what they are about."""

from __future__ import annotations

from typing import Any

from rigctl.doctor.driver_steps import DRIVER_STEPS
from rigctl.doctor.facts import RigFacts, SystemFacts
from rigctl.doctor.finding import Finding, LeftOut, climb
from rigctl.doctor.system_steps import SYSTEM_STEPS

GIB = 1 << 30
RUNNING = "5.15.0-91-generic"
NEXT = "6.5.0-45-generic"
UUIDS = ("GPU-00000000-0000-0000-0000-00000000a91f", "GPU-00000000-0000-0000-0000-0000000077c2")
VIEW = "".join(f"GPU {n}: NVIDIA GeForce RTX 3090 Ti (UUID: {uuid})\n" for n, uuid in enumerate(UUIDS))


def kernel(release: str = RUNNING, **changes: Any) -> dict[str, Any]:
    fit = {"release": release, "headers": True, "headers_offered": True, "module": True, "compiler_major": 11}
    return {**fit, **changes}


def space(**changes: Any) -> dict[str, Any]:
    return {"free_bytes": 100 * GIB, "free_files": 10**6, "read_only": False, **changes}


def system(**changes: Any) -> SystemFacts:
    fit = {
        "system": "Ubuntu 22.04.5 LTS",
        "has_apt": True,
        "space": {"/": space(), "/boot": space(free_bytes=600 << 20)},
        "initrd_bytes": 120 << 20,
        "clock_synchronised": True,
        "lists_read": True,
        "apt_locks": [],
        "cloud_init": "done",
        "half_done": "",
        "secure_boot": {"on": False, "key_enrolled": False, "signer": ""},
        "nouveau": False,
        "nouveau_barred": True,
        "kernels": [kernel()],
        "compilers": [11],
        "dkms": [f"nvidia/515.105.01, {RUNNING}, x86_64: installed"],
        "packages": {
            "nvidia-driver-515": "515.105.01-0ubuntu0.22.04.1",
            "libnvidia-compute-515": "515.105.01-0ubuntu1",
        },
        "held": ["nvidia-driver-515", "libnvidia-compute-515"],
        "unattended": {"on": True, "never": ["nvidia-", "libnvidia-"]},
        "reboot": False,
        "reboot_for": [],
        "loaded": "515.105.01",
        "library": "515.105.01",
        "cards_on_bus": ["0a:00.0", "0b:00.0"],
        "cards": UUIDS,
        "cards_error": "",
    }
    return SystemFacts.model_validate({**fit, **changes})


BARE = {
    "packages": {}, "held": [], "dkms": [], "loaded": "", "library": "", "cards": [], "kernels": [kernel(module=False)],
}  # fmt: skip
"""Nothing provisioned yet."""


def facts(clock_offset_s: float = 0.2, login_view: str = VIEW, asked: str = "515", **changes: Any) -> RigFacts:
    return RigFacts("rig1", "ops", system(**changes), asked, 2, clock_offset_s, login_view)


def examine(one: RigFacts) -> tuple[list[Finding], list[LeftOut]]:
    """Findings to be fixed, and what was left out."""
    findings, left_out = climb("rig1", (*SYSTEM_STEPS, *DRIVER_STEPS), one)
    return [finding for finding in findings if not finding.ok], list(left_out)
