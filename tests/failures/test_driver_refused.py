"""What keeps a driver from being installed or loaded is named, leaves dpkg whole, and is got over."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .meets import meets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .box import Box

pytestmark = [pytest.mark.rigs, pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture
def fresh(box: Box) -> Iterator[Box]:
    """The box, without a driver and without any fault before and after a test."""
    yield box
    box.clear()
    box.set()


def drivers(box: Box) -> list[str]:
    """The driver's packages that are on the box in whatever state."""
    rows = [row.split() for row in box.packages().splitlines()]
    return [row[0] for row in rows if "nvidia" in row[0] and row[2][1] not in "nc"]


@meets("secure_boot")
def test_1_secure_boot_is_refused_before_anything_is_installed(fresh: Box) -> None:
    fresh.fault("secure_boot")
    assert fresh.ssh("mokutil --sb-state") == "SecureBoot enabled"
    refused = fresh.provision()
    assert (refused.code, refused.rig["role"]) == (4, "nvidia_driver")
    assert "Secure Boot is on" in refused.said
    assert "nvidia_driver_modules: signed" in refused.said
    assert drivers(fresh) == []
    fresh.clear("secure_boot")
    assert fresh.ssh("mokutil --sb-state") == "SecureBoot disabled"


@meets("index_stale")
def test_2_a_package_that_was_withdrawn_is_named(fresh: Box) -> None:
    fresh.fault("index_stale")
    outcome = fresh.provision()
    assert (outcome.code, outcome.rig["role"]) == (4, "nvidia_driver")
    assert "the archive no longer has a package that the rig's package lists promise" in outcome.said
    assert "sudo apt-get update" in outcome.hint
    assert drivers(fresh) == []
    assert fresh.is_consistent()


@meets("dkms_build_fails")
def test_3_a_module_that_does_not_compile_leaves_nothing_half_configured(fresh: Box) -> None:
    fresh.fault("dkms_build_fails")
    refused = fresh.provision()
    assert (refused.code, refused.rig["role"]) == (4, "nvidia_driver")
    assert "does not compile for the kernel 5.15.0-91-generic" in refused.said
    assert "'struct drm_driver' has no member named" in refused.said
    assert "nvidia_driver_branch" in refused.said
    assert drivers(fresh) == []
    assert fresh.is_consistent()


@meets("held_package")
def test_4_a_held_package_that_stands_in_the_way_is_named(fresh: Box) -> None:
    fresh.fault("held_package")
    refused = fresh.provision()
    assert (refused.code, refused.rig["role"]) == (4, "nvidia_driver")
    assert "a held package, or a version from another source, stands in the way" in refused.said
    assert "apt-mark unhold" in refused.hint
    assert fresh.holds() == "libnvidia-compute-515"
    assert fresh.is_consistent()
    fresh.ssh("sudo apt-mark unhold libnvidia-compute-515")


@meets("boot_full")
def test_5_a_full_boot_partition_is_named_before_the_rig_is_restarted(fresh: Box) -> None:
    fresh.fault("boot_full")
    boot_id = fresh.ssh("cat /proc/sys/kernel/random/boot_id")
    refused = fresh.provision()
    assert (refused.code, refused.rig["state"]) == (4, "failed")
    assert "/boot" in refused.said
    assert "sudo apt-get autoremove --purge" in refused.said + refused.hint
    assert fresh.ssh("cat /proc/sys/kernel/random/boot_id") == boot_id
    assert fresh.is_consistent()


@meets("secure_boot", "index_stale", "dkms_build_fails", "held_package", "boot_full")
def test_6_after_all_of_it_the_driver_is_installed_and_loaded(fresh: Box) -> None:
    outcome = fresh.provision()
    assert (outcome.code, outcome.said) == (0, "")
    assert fresh.loaded == "515.105.01"
    assert fresh.is_consistent()
    assert "libnvidia-compute-515 515.105.01-0ubuntu0.22.04.1 hi" in fresh.packages()
    assert "blacklist nouveau" in fresh.ssh("sudo grep -a nouveau /boot/initrd.img-5.15.0-91-generic")
    assert fresh.provision().rig["changed"] == 0
