"""Each step breaks on facts of its own, with its fix; what follows from it is left out, what does not is said."""

from __future__ import annotations

from typing import Any

import pytest

from rigctl.doctor.driver_steps import DRIVER_STEPS
from rigctl.doctor.system_steps import SYSTEM_STEPS

from .fit import BARE, NEXT, RUNNING, UUIDS, VIEW, examine, facts, kernel, space

LOCKED = [{"path": "/var/lib/dpkg/lock-frontend", "pid": 812, "command": "/usr/bin/python3 unattended-upgrade"}]
SECURE = {"on": True, "key_enrolled": False, "signer": ""}
UNLOADED = {"loaded": "", "cards": []}
HALF = "The following packages are only half configured:\n nvidia-dkms-515 NVIDIA DKMS package\n"

BROKEN: list[tuple[str, dict[str, Any], str, str]] = [
    # step, what is changed of a fit rig, what is found, the fix
    ("system", {"system": "Fedora 41", "has_apt": False}, "Fedora 41: no apt", "Ubuntu 22.04"),
    ("system", {"system": "Ubuntu 20.04.6 LTS"}, "Ubuntu 20.04.6 LTS: not supported", "Ubuntu 24.04 or Debian 12"),
    ("system", {"system": "Debian GNU/Linux 11 (bullseye)"}, "(bullseye): not supported", "Debian 12"),
    ("disk /", {"space": {"/": space(free_bytes=1 << 30)}}, "/: 1.0 GiB free, 2.0 GiB needed", "apt-get clean"),
    ("disk /", {**BARE, "space": {"/": space(free_bytes=9 << 30)}}, "15.0 GiB needed", "apt-get clean"),
    ("disk /", {"space": {"/": space(), "/var": space(free_bytes=0)}}, "/var: 0.0 GiB free", "apt-get clean"),
    ("disk /", {"space": {"/": space(read_only=True)}}, "mounted read-only", "journalctl"),
    ("disk /", {"space": {"/": space(free_files=10)}}, "room for 10 more files", "autoremove"),
    (
        "disk /boot",
        {"space": {"/": space(), "/boot": space(free_bytes=200 << 20)}},
        "200 MiB free, 240 MiB needed",
        "remove old kernels",
    ),
    ("clock", {"clock_offset_s": -7200.0}, "-7200 s", "timedatectl set-ntp true"),
    ("apt lock", {"apt_locks": LOCKED}, "process 812 (/usr/bin/python3 unattended-upgrade)", "tail --pid=812"),
    ("apt lock", {"cloud_init": "running"}, "first boot", "cloud-init status --wait"),
    ("apt lock", {"cloud_init": "running", "apt_locks": LOCKED}, "process 812", "cloud-init status --wait"),
    ("packages", {"half_done": HALF}, "nvidia-dkms-515", "dpkg --configure -a"),
    ("Secure Boot", {**BARE, "secure_boot": SECURE}, "signed by nobody", "mokutil --import"),
    ("Secure Boot", {**UNLOADED, "secure_boot": SECURE}, "signed by nobody", "firmware"),
    ("nouveau", {**UNLOADED, "nouveau": True}, "loaded", "update-initramfs -u && systemctl reboot"),
    ("nouveau", {**UNLOADED, "nouveau": True, "nouveau_barred": False}, "loaded", "rigctl provision rig1"),
    (
        "kernel headers",
        {**UNLOADED, "kernels": [kernel(headers=False, module=False)]},
        f"{RUNNING} (running)",
        f"apt-get install linux-headers-{RUNNING}",
    ),
    (
        "kernel headers",
        {**BARE, "kernels": [kernel(headers=False, headers_offered=False, module=False)]},
        "apt offers none",
        "linux-generic",
    ),
    (
        "compiler",
        {**UNLOADED, "kernels": [kernel(module=False, compiler_major=12)]},
        f"kernel {RUNNING} was built by gcc 12, installed is gcc 11",
        "apt-get install gcc-12",
    ),
    ("DKMS", {**UNLOADED, "dkms": ["nvidia/515.105.01: added"], "kernels": [kernel(module=False)]},
     f"not built for {RUNNING} (running)", f"dkms install nvidia/515.105.01 -k {RUNNING}"),
    ("DKMS", {"dkms": [f"nvidia/515.1, {RUNNING}, x86_64: installed (WARNING! Diff between built and installed!)"]},
     "WARNING", f"dkms install --force nvidia/515.1 -k {RUNNING}"),
    ("driver", {"asked": "535"}, "515.105.01, asked for is 535", "rigctl provision rig1"),
    ("driver", {"packages": {"nvidia-driver-515": "1", "libnvidia-compute-535": "1"}, "held": []},
     "two branches: 515 (nvidia-driver-515) and 535", "rigctl provision rig1"),
    ("driver", {"library": "", "loaded": ""}, "its library is missing", "rigctl provision rig1"),
    ("pending reboot", {"reboot": True, "reboot_for": ["linux-base"]}, "linux-base", "systemctl reboot"),
    ("pending reboot", {"kernels": [kernel(), kernel(NEXT)]}, f"{RUNNING} runs, {NEXT} is next", "systemctl reboot"),
    ("loaded driver", UNLOADED, "no driver is loaded", "modprobe nvidia"),
    ("DKMS", {"dkms": ["nvidia/515.1: something new"]}, "something new", "dkms status"),
    ("loaded driver", {**UNLOADED, "dkms": [], "kernels": [kernel(module=False)]},
     f"no module of it for kernel {RUNNING}", "rigctl provision rig1"),
    ("loaded driver", {"loaded": "515.65.01"}, "loaded is 515.65.01, the library is 515.105.01", "systemctl reboot"),
    ("cards", {"cards_on_bus": ["0a:00.0"], "cards": UUIDS[:1]}, "1 on the PCI bus, the spec asks for 2", "reseat"),
    ("cards", {"cards_on_bus": ["0a:00.0", "0b:00.0", "0c:00.0"], "cards": ["GPU-1", *UUIDS], "login_view":
     VIEW + "(UUID: GPU-1)"}, "3 on the PCI bus", "parts.gpu_count"),
    ("cards of the driver", {"cards": UUIDS[:1]}, "1 of 2 seen by the driver", "NVRM"),
    ("cards of the driver", {"cards": [], "cards_error": "Unknown Error"}, "(Unknown Error)", "NVRM"),
    ("cards of the login", {"login_view": "Failed to initialize NVML: Insufficient Permissions"},
     "2 of 2 hidden from ops: Failed to initialize NVML: Insufficient Permissions", "usermod -aG video,render ops"),
    ("cards of the login", {"login_view": VIEW.splitlines()[0]}, "1 of 2 hidden", "/dev/nvidia*"),
    ("cards of the login", {"login_view": VIEW + "CUDA_VISIBLE_DEVICES=0"}, "hides 1 of 2", "/etc/environment"),
    ("cards of the login", {"login_view": VIEW + "CUDA_VISIBLE_DEVICES="}, "hides 2 of 2", "/etc/environment"),
    ("cards of the login", {"login_view": VIEW + "CUDA_VISIBLE_DEVICES=1,-1,0"}, "hides 1 of 2", "/etc/environment"),
    ("holds", {"held": ["nvidia-driver-535", "linux-generic"]}, "nvidia-driver-535", "apt-mark unhold"),
    ("unattended upgrades", {"held": [], "unattended": {"on": True, "never": []}},
     "may replace nvidia-driver-515 and 1 more", "rigctl provision rig1"),
]  # fmt: skip


@pytest.mark.parametrize(("step", "changes", "found", "fix"), BROKEN)
def test_the_first_broken_step_alone_is_named(step: str, changes: dict[str, Any], found: str, fix: str) -> None:
    findings, left_out = examine(facts(**changes))
    assert [finding.what for finding in findings] == [step]
    assert found in findings[0].found
    assert fix in findings[0].fix
    assert {one.because for one in left_out} <= {step}


def test_every_step_can_break() -> None:
    assert {step.what for step in (*SYSTEM_STEPS, *DRIVER_STEPS)} == {case[0] for case in BROKEN}


def test_steps_follow_from_steps_before_them_only() -> None:
    seen: list[str] = []
    for step in (*SYSTEM_STEPS, *DRIVER_STEPS):
        assert set(step.follows_from) <= set(seen), step.what
        seen.append(step.what)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        BARE,
        {**BARE, "nouveau": True, "nouveau_barred": False},
        {**BARE, "kernels": [kernel(headers=False, module=False)]},
        {"secure_boot": {"on": True, "key_enrolled": False, "signer": ""}},
        {"kernels": [kernel(headers=False)], "dkms": []},
        {**BARE, "lists_read": False, "kernels": [kernel(headers=False, headers_offered=False, module=False)]},
        {"compilers": [12]},
        {**BARE, "kernels": [kernel(module=False, compiler_major=12)]},
        {"compilers": [], "kernels": [kernel(compiler_major=None)]},
        {"space": {"/": space(free_files=None)}},
        {"held": ["linux-image-generic", "nvidia-driver-515"]},
        {"held": []},
        {"unattended": {"on": False, "never": []}, "held": []},
        {"login_view": VIEW + "CUDA_VISIBLE_DEVICES=0,1"},
    ],
)
def test_nothing_is_made_up(changes: dict[str, Any]) -> None:
    assert examine(facts(**changes)) == ([], [])


def test_ten_consequences_of_one_cause() -> None:
    one = facts(
        kernels=[kernel(headers=False, module=False)], dkms=["nvidia/515.105.01: added"], login_view="", **UNLOADED
    )
    findings, left_out = examine(one)
    assert [finding.what for finding in findings] == ["kernel headers"]
    assert [one.what for one in left_out] == ["DKMS", "loaded driver", "cards of the driver"]
    assert {one.because for one in left_out} == {"kernel headers"}


def test_two_troubles_of_their_own_are_both_named() -> None:
    findings, left_out = examine(facts(clock_offset_s=600.0, nouveau=True, login_view="", **UNLOADED))
    assert [finding.what for finding in findings] == ["clock", "nouveau"]
    assert {one.because for one in left_out} == {"nouveau"}
