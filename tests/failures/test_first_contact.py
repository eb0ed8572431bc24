"""A box that is not ready yet, or whose administrator left it as it was installed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from .meets import meets

if TYPE_CHECKING:
    from .box import Box

pytestmark = [pytest.mark.rigs, pytest.mark.slow, pytest.mark.timeout(900)]
TAGS = "base,cpu_burn"
BY_HAND = "sudo timeout --kill-after=2 20 apt-get install -y -q jq; echo exit $?"


@meets("clock_wrong")
def test_1_a_wrong_clock_is_refused_before_anything_is_changed(box: Box) -> None:
    box.fault("clock_wrong", days="700")
    assert abs(time.time() - int(box.ssh("date +%s")) - 700 * 86400) < 60
    packages = box.packages()
    refused = box.provision(tags=TAGS)
    assert (refused.code, refused.rig["state"], refused.rig["changed"]) == (4, "failed", 0)
    assert "The rig's clock is" in refused.said
    assert "timedatectl set-ntp true" in refused.said
    assert box.packages() == packages
    box.ssh(f"sudo date --set=@{time.time():.0f}")
    assert abs(time.time() - int(box.ssh("date +%s"))) < 60
    again = box.provision(tags=TAGS)
    assert (again.code, again.said) == (0, "")
    assert box.is_consistent()
    box.clear("clock_wrong")


@meets("first_boot_runs")
def test_2_a_first_boot_that_takes_too_long_is_said(box: Box) -> None:
    box.set(base_first_boot_timeout_s=2)
    box.fault("first_boot_runs", seconds="600")
    assert box.ssh("cloud-init status") == "status: running"
    refused = box.provision(tags=TAGS)
    assert (refused.code, refused.rig["role"], refused.rig["changed"]) == (4, "base", 0)
    assert "cloud-init" in refused.said
    assert "cloud-init" in refused.said + refused.hint
    box.clear("first_boot_runs")
    box.set()


@meets("first_boot_runs")
def test_3_a_first_boot_that_ends_is_waited_for(box: Box) -> None:
    box.ssh("sudo apt-get -qq remove stress-ng")
    box.fault("first_boot_runs", seconds="15")
    outcome = box.provision(tags=TAGS)
    assert (outcome.code, outcome.said) == (0, "")
    assert box.ssh("cloud-init status") == "status: done"
    assert box.ssh("command -v stress-ng") == "/usr/bin/stress-ng"
    assert box.is_consistent()


@meets("needrestart_asks")
def test_4_nothing_waits_for_an_answer_that_nobody_gives(box: Box) -> None:
    box.ssh("sudo rm -f /etc/needrestart/conf.d/*; sudo apt-get -qq update; sudo apt-get -qq purge jq stress-ng")
    box.fault("needrestart_asks")
    asked = box.ssh(BY_HAND)
    assert "Which services should be restarted?" in asked
    assert "exit 124" in asked
    box.ssh("sudo NEEDRESTART_MODE=l apt-get purge -y -q jq")
    outcome = box.provision(tags=TAGS)
    assert (outcome.code, outcome.said) == (0, "")
    assert box.ssh("command -v stress-ng") == "/usr/bin/stress-ng"
    by_hand = box.ssh(BY_HAND)
    assert "Which services" not in by_hand
    assert "exit 0" in by_hand
    assert box.is_consistent()
