"""An upgrade of a simulated rig with real apt and restarts: to its end, and back from wherever it fails."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from rigctl import sim
from tests.failures.meets import meets

from .on_rig import restored_whole

if TYPE_CHECKING:
    from .on_rig import RigInUse

pytestmark = [pytest.mark.rigs, pytest.mark.slow, pytest.mark.timeout(1800)]
HOLDER = """\
[Unit]
Description=Holds a card
[Service]
ExecStartPre=/usr/bin/touch /dev/nvidia0
ExecStart=/bin/sh -c 'exec sleep infinity 3</dev/nvidia0'
[Install]
WantedBy=multi-user.target
"""
OWN_S = 10
"""What the upgrade itself may take for one healthy rig: all that is not provisioning, acceptance or drain, seconds."""


def test_1_what_could_not_be_taken_back_is_refused_untouched(rig: RigInUse) -> None:
    rig.fault("mirror_gone")
    before = rig.packages()
    refused = rig.upgrade("rig1", "--driver", "535")
    assert (refused.code, refused.end["end"]) == (4, "refused")
    assert "can be had nowhere" in refused.said
    assert rig.packages() == before
    assert not rig.held()
    assert not rig.own_file.exists()


@meets("disk_full_midway")
def test_2_a_disk_that_fills_in_the_middle_leads_back(rig: RigInUse) -> None:
    rig.fault("disk_full_midway")
    failed = rig.upgrade("rig1", "--driver", "535")
    assert (failed.code, failed.end["end"], failed.end["step"]) == (4, "rolled_back", "change")
    assert "no space left" in failed.said.lower()
    assert restored_whole(failed) == ()
    assert rig.is_as_first()


@pytest.mark.parametrize(
    ("fault", "parameters", "step", "said"),
    [
        ("dkms_build_fails", {"branch": "580", "since": "535"}, "change", "does not compile"),
        ("old_module_boots", {}, "change", "515.105.01"),
    ],
)
def test_3_what_fails_after_the_change_is_rolled_back(
    rig: RigInUse, fault: str, parameters: dict[str, str], step: str, said: str
) -> None:
    rig.fault(fault, **parameters)
    failed = rig.upgrade("rig1", "--driver", "535")
    assert (failed.code, failed.end["end"], failed.end["step"]) == (4, "rolled_back", step)
    assert said in failed.said
    assert restored_whole(failed) == ()
    rig.clear()
    assert rig.is_as_first()
    assert not rig.own_file.exists()


@pytest.mark.parametrize(
    ("fault", "said"),
    [("card_missing", "is gone"), ("nv3", "link slot1-slot2 NV4 is gone"), ("power_brake", "power.brake")],
)
def test_4_hardware_that_stays_broken_leaves_the_rig_drained_and_a_resume_finishes(
    rig: RigInUse, fault: str, said: str
) -> None:
    rig.fault(fault, when="boot")
    failed = rig.upgrade("rig1", "--driver", "535")
    assert (failed.code, failed.end["end"], failed.end["step"]) == (4, "left_drained", "check_restored")
    assert said in failed.said
    assert rig.held()
    assert rig.loaded().startswith("515.")
    refused = rig.upgrade("rig1", "--driver", "535")
    assert (refused.end["end"], "is held by" in refused.said) == ("refused", True)
    rig.clear()
    rig.ssh("sudo systemctl restart nvidia-card-settings")  # a card that was gone at the start has its own limit
    finished = rig.upgrade("--resume", failed.run.name)
    assert (finished.code, finished.end["end"]) == (4, "rolled_back")
    assert restored_whole(finished) == ()
    assert rig.is_as_first()


def test_5_a_rig_that_does_not_come_back_is_left_and_said(rig: RigInUse) -> None:
    rig.fault("boot_hangs")
    failed = rig.upgrade("rig1", "--driver", "535")
    assert (failed.code, failed.end["end"]) == (4, "left_drained")
    assert failed.end["hint"]
    rig.clear()
    sim.rigs.wait_ready(rig.fleet, rig.fleet.rig("rig1"))
    finished = rig.upgrade("--resume", failed.run.name)
    assert (finished.code, finished.end["end"]) == (4, "rolled_back")
    assert rig.is_as_first()


def test_6_upgraded_and_back_again(rig: RigInUse) -> None:
    # What holds a card is stopped, and works again afterwards.
    rig.put(HOLDER, "/etc/systemd/system/exporter.service")
    rig.ssh("sudo systemctl start exporter")
    upgraded = rig.upgrade("rig1", "--driver", "535")
    assert (upgraded.code, upgraded.end["end"], upgraded.said) == (0, "upgraded", " ")
    assert rig.loaded().startswith("535.")
    assert "535" in rig.own_file.read_text(encoding="utf-8")
    assert not rig.held()
    assert "exporter.service" in upgraded.found("release")["stopped"]
    assert rig.ssh("systemctl is-active exporter") == "active"
    assert upgraded.rig["own_seconds"] > 0
    if os.getloadavg()[0] < (os.cpu_count() or 1):  # a machine with other work says nothing of our own
        assert upgraded.rig["own_seconds"] <= OWN_S
    rig.ssh("sudo sh -c 'systemctl stop exporter; rm /etc/systemd/system/exporter.service; systemctl daemon-reload'")
    again = rig.upgrade("rig1", "--driver", "535")
    assert (again.code, again.end["end"]) == (0, "as_asked")
    back = rig.upgrade("rig1", "--driver", "515")
    assert (back.code, back.end["end"]) == (0, "upgraded")
    assert not rig.own_file.exists()
    assert rig.loaded().startswith("515.")
    assert rig.packages() == rig.first
