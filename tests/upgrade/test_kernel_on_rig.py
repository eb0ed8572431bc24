"""Kernels of a simulated rig in use: to a newer one, back to an older one, and back from one that cannot be had."""

from __future__ import annotations

import subprocess
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
import yaml

from rigctl import sim

from . import kernels
from .on_rig import SETTINGS, RigInUse, restored_whole

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.rigs, pytest.mark.slow, pytest.mark.timeout(1800)]
OLD, NEWER, HANGS, MOVED_ON = "5.15.0-91-generic", "5.15.0-105-generic", "5.15.0-119-generic", "6.8.0-40-generic"
METAS = {"linux-generic", "linux-headers-generic", "linux-image-generic"}
TIME_SCALE = 8.0
"""As in test_on_rig."""
START_S = 120


@pytest.fixture(scope="module")
def rig(provisioned: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RigInUse]:
    """A rig with 515, GRUB, and a package source with newer kernels."""
    folder = tmp_path_factory.mktemp("kernel") / "state"
    try:
        fleet = sim.up(sim.UpOptions(count=1, directory=folder, image=provisioned, time_scale=TIME_SCALE))
        own = fleet.inventory / "group_vars" / "all" / "upgrades.yml"
        own.write_text(yaml.safe_dump({**SETTINGS, "kernel_reboot_timeout_s": 60}), encoding="utf-8")
        found = RigInUse(fleet)
        offered = [*kernels.packages(NEWER), *kernels.packages(HANGS), *kernels.packages(MOVED_ON, least_branch=535)]
        kernels.put_on_offer(found, *offered)
        found.first = found.packages()
        yield found
    finally:
        sim.down(folder)


def held(rig: RigInUse) -> set[str]:
    return set(rig.ssh("apt-mark showhold | grep ^linux- || true").split())


def starts(rig: RigInUse) -> str:
    """The kernel that a start brings without anybody's doing."""
    before = rig.ssh("cat /proc/sys/kernel/random/boot_id")
    rig.ssh("sudo systemd-run --on-active=1 systemctl reboot")
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        time.sleep(1)
        with suppress(subprocess.CalledProcessError):  # it is down
            now, kernel = rig.ssh("cat /proc/sys/kernel/random/boot_id; uname -r").split()
            if now != before:
                return kernel
    return "none"


def test_1_a_kernel_that_nobody_offers_is_refused_with_the_nearest(rig: RigInUse) -> None:
    refused = rig.upgrade("rig1", "--kernel", "5.15.0-100-generic")
    assert (refused.code, refused.end["end"], refused.end["step"]) == (4, "refused", "preflight")
    assert f"The nearest on offer: {OLD}, {NEWER}, {HANGS}." in refused.said
    assert rig.packages() == rig.first
    assert not rig.held()


def test_2_a_kernel_that_does_not_start_is_taken_back(rig: RigInUse) -> None:
    rig.put(f"{HANGS}\n", kernels.BROKEN)
    failed = rig.upgrade("rig1", "--kernel", HANGS)
    assert (failed.code, failed.end["end"], failed.end["step"]) == (4, "rolled_back", "change"), failed.said
    assert f"The kernel {HANGS} was started on trial, and the rig came back with {OLD}" in failed.said
    assert restored_whole(failed) == ()
    assert rig.is_as_first()
    assert rig.ssh("ls /etc/default/grub.d; grub-editenv - list") == ""


def test_3_a_kernel_for_which_the_driver_does_not_compile_is_taken_back(rig: RigInUse) -> None:
    boot = rig.ssh("cat /proc/sys/kernel/random/boot_id")
    failed = rig.upgrade("rig1", "--kernel", MOVED_ON)
    assert (failed.code, failed.end["end"], failed.end["step"]) == (4, "rolled_back", "change"), failed.said
    assert "it would run without nvidia/515.105.01" in failed.said
    assert "dumb_destroy" in failed.said
    assert restored_whole(failed) == ()
    assert rig.is_as_first()
    assert rig.ssh("cat /proc/sys/kernel/random/boot_id") == boot


def test_4_to_a_newer_one(rig: RigInUse) -> None:
    upgraded = rig.upgrade("rig1", "--kernel", NEWER)
    assert (upgraded.code, upgraded.end["end"]) == (0, "upgraded"), upgraded.said
    assert rig.ssh("uname -r") == NEWER
    assert rig.loaded().startswith("515.")
    assert held(rig) == {*METAS, f"linux-image-{NEWER}", f"linux-headers-{NEWER}"}
    assert NEWER in rig.own_file.read_text(encoding="utf-8")
    assert not rig.held()
    # A whole upgrade of the system brings no other kernel, and a power cycle no other one either.
    assert "linux-" not in rig.ssh("apt-get -s -q dist-upgrade | grep ^Inst || true")
    assert starts(rig) == NEWER
    assert rig.upgrade("rig1", "--kernel", NEWER).end["end"] == "as_asked"


def test_5_and_back_to_an_older_one_while_the_newer_is_installed(rig: RigInUse) -> None:
    back = rig.upgrade("rig1", "--kernel", OLD)
    assert (back.code, back.end["end"]) == (0, "upgraded"), back.said
    assert rig.ssh("uname -r; ls /boot/vmlinuz-*").split() == [OLD, f"/boot/vmlinuz-{NEWER}", f"/boot/vmlinuz-{OLD}"]
    assert starts(rig) == OLD
    assert rig.loaded().startswith("515.")


def test_6_with_a_driver_that_it_needs(rig: RigInUse) -> None:
    both = rig.upgrade("rig1", "--kernel", MOVED_ON, "--driver", "535")
    assert (both.code, both.end["end"]) == (0, "upgraded"), both.said
    assert rig.ssh("uname -r") == MOVED_ON
    assert rig.loaded().startswith("535.")
