"""What keeps apt from working is named with its remedy, nothing is installed, and after the remedy it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from .meets import meets

if TYPE_CHECKING:
    from .box import Box

pytestmark = [pytest.mark.rigs, pytest.mark.slow, pytest.mark.timeout(600)]

TAGS = "base,cpu_burn"


@dataclass(frozen=True)
class Case:
    """A fault, what provisioning must say of it, and what is then done about it."""

    fault: str
    said: tuple[str, ...]
    hint: str
    remedy: str = ""
    """A command on the rig; empty: the fault is taken back, as whoever caused it would."""
    parameters: dict[str, str] = field(default_factory=dict)
    variables: dict[str, object] = field(default_factory=dict)


CASES = (
    Case(
        "apt_lock_held",
        ("something else installs packages: process ", "holds apt's lock"),
        "systemctl stop unattended-upgrades",
        parameters={"seconds": "600"},
        variables={"base_apt_lock_timeout_s": 2, "cpu_burn_apt_lock_timeout_s": 2},
    ),
    Case(
        "key_missing",
        ("signed with the key 8292C98374220BD6, which this rig does not have", "file:/srv/rigsim/foreign"),
        "remove its list from /etc/apt/sources.list.d",
        remedy="sudo rm /etc/apt/sources.list.d/example.list",
    ),
    Case(
        "mirror_gone",
        ("a package source does not answer",),
        "sudo apt-get update says which",
    ),
)


@meets(*(case.fault for case in CASES))
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.fault)
def test_it_is_named_and_after_the_remedy_all_is_well(box: Box, case: Case) -> None:
    box.set(**case.variables)
    holds, packages = box.holds(), box.packages()
    # The lists that an earlier case has read would do for an hour.
    box.ssh("sudo touch -d 2022-01-01 /var/lib/apt/lists /var/lib/apt/periodic/update-success-stamp")
    box.fault(case.fault, **case.parameters)
    try:
        refused = box.provision(tags=TAGS)
        assert (refused.code, refused.rig["state"]) == (4, "failed")
        for words in case.said:
            assert words in refused.said
        assert case.hint in refused.hint
        assert "\n" not in refused.said + refused.hint
        assert box.packages() == packages
        if case.remedy:
            box.ssh(case.remedy)
    finally:
        box.clear(case.fault)
        box.set()
    again = box.provision(tags=TAGS)
    assert (again.code, again.said) == (0, "")
    assert box.is_consistent()
    assert box.holds() == holds


@meets("apt_lock_held")
def test_a_lock_that_is_let_go_in_time_is_waited_for(box: Box) -> None:
    box.ssh("sudo apt-get -qq remove stress-ng")
    box.fault("apt_lock_held", seconds="8")
    assert box.provision(tags=TAGS).code == 0
    assert box.ssh("command -v stress-ng") == "/usr/bin/stress-ng"


@meets("signed_by_conflict")
def test_a_list_that_names_the_repository_with_another_key_goes(box: Box) -> None:
    box.fault("signed_by_conflict")
    outcome = box.provision(tags="base,cuda")
    assert (outcome.code, outcome.said) == (0, "")
    assert box.ssh("ls /etc/apt/sources.list.d") == "nvidia-cuda.list"
    assert box.ssh("sudo apt-get -qq update") == ""


@meets("sudo_password")
def test_a_password_that_sudo_wants_is_named_and_can_be_given(box: Box) -> None:
    box.set()
    box.fault("sudo_password")
    try:
        refused = box.provision(tags="base")
        assert (refused.code, refused.rig["state"]) == (4, "failed")
        assert "sudo asks for a password" in refused.said
        assert "--ask-become-pass" in refused.hint
        assert "ansible_become_password" in refused.hint
        box.set(ansible_become_password="rigsim")  # noqa: S106 - of a simulated rig
        given = box.provision(tags="base")
        assert (given.code, given.said) == (0, "")
        assert "rigsim" not in given.log.replace("/srv/rigsim", "")
    finally:
        box.set()
        box.clear("sudo_password")
