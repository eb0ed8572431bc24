"""A rig in use, whose archive has moved on: an upgrade has replaced the driver's user space, and nobody restarted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .meets import meets

if TYPE_CHECKING:
    from .box import Box

pytestmark = [pytest.mark.rigs, pytest.mark.slow, pytest.mark.timeout(600)]
MISMATCH = "Failed to initialize NVML: Driver/library version mismatch"


def upgraded(box: Box) -> None:
    """Let the fault happen, and see that it has."""
    box.fault("driver_library_mismatch")
    assert MISMATCH in box.ssh("nvidia-smi")
    assert "nvidia-driver-535" in box.packages()


def is_515_again(box: Box) -> bool:
    """Whether the loaded driver answers, nothing of another branch is left, and all of it is held."""
    mine = [row.split() for row in box.packages().splitlines() if "nvidia" in row]
    whole = [row for row in mine if row[2] not in ("un", "rc")]
    return (
        box.loaded == "515.105.01"
        and box.ssh("nvidia-smi -L | wc -l") == "2"
        and all("-515" in name and version.startswith("515.105.01-") and mark == "hi" for name, version, mark in whole)
        and box.is_consistent()
    )


@meets("driver_library_mismatch")
def test_1_where_a_source_still_has_the_branch_the_rig_goes_back_to_it(box: Box) -> None:
    assert box.provision().code == 0
    upgraded(box)
    outcome = box.provision()
    assert (outcome.code, outcome.said) == (0, "")
    assert is_515_again(box)
    assert box.provision().rig["changed"] == 0
    box.clear()


@meets("driver_library_mismatch")
def test_2_where_the_archive_has_it_no_more_it_is_refused_with_the_source_that_has(box: Box) -> None:
    upgraded(box)
    box.ssh("sudo sed -i s,ubuntu/2022,ubuntu/2023, /etc/apt/sources.list; sudo apt-get -qq update")
    packages, holds = box.packages(), box.holds()
    refused = box.provision(tags="base,nvidia_driver,cuda")
    assert (refused.code, refused.rig["role"]) == (4, "nvidia_driver")
    assert "only as a transitional package for another branch" in refused.said
    assert "set nvidia_driver_source: cuda_repo" in refused.said
    assert (box.packages(), box.holds()) == (packages, holds)
    box.set(nvidia_driver_source="cuda_repo")
    outcome = box.provision(tags="base,nvidia_driver,cuda")
    assert (outcome.code, outcome.said) == (0, "")
    assert is_515_again(box)
    assert box.provision(tags="base,nvidia_driver,cuda").rig["changed"] == 0
