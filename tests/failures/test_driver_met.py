"""What a fresh box may be like, and provisioning sees to by itself: all of it at once, in one run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .meets import meets

if TYPE_CHECKING:
    from .box import Box

pytestmark = [pytest.mark.rigs, pytest.mark.slow, pytest.mark.timeout(600)]
FAULTS = (
    "headers_missing",
    "compiler_missing",
    "nouveau_bound",
    "persistenced_masked",
    "dpkg_interrupted",
)


@meets(*FAULTS)
def test_1_such_a_box_becomes_a_rig_in_one_run(box: Box) -> None:
    for name in FAULTS:
        box.fault(name)
    assert box.ssh("ls -d /sys/module/nouveau") == "/sys/module/nouveau"
    outcome = box.provision()
    assert (outcome.code, outcome.said) == (0, "")
    assert box.loaded == "515.105.01"
    assert box.ssh("ls -d /sys/module/nouveau").endswith("No such file or directory")
    assert box.ssh("nvidia-smi -L | wc -l") == "2"
    assert box.ssh("nvidia-smi --query-gpu=persistence_mode --format=csv,noheader").split() == ["Enabled", "Enabled"]
    assert "linux-headers-5.15.0-91-generic" in box.packages()
    assert "gcc-13 13.2.0-1ubuntu1" in box.packages()
    assert box.is_consistent()


def test_2_a_second_run_changes_nothing(box: Box) -> None:
    assert box.provision().rig["changed"] == 0
