from __future__ import annotations

import os
from pathlib import Path

import pytest

from rigctl.checks.catalogue import CATALOGUE
from rigctl.errors import UsageError
from rigctl.sim import faults
from rigctl.sim.hostroot import MACHINE
from rigctl.sim.machine.hardware.rigsim.faults import HARDWARE_FAULTS

FIRST = {
    "card_missing",
    "nv3",
    "pump_dead",
    "burn_errors",
    "driver_library_mismatch",
    "wall_meter_offline",
    "ssh_down",
}

HARMLESS = {"nvme_added", "ssh_down"}
"""Nothing is wrong with the rig: acceptance says what happened, and passes."""


def test_the_first_faults_are_all_there() -> None:
    assert {fault.name for fault in faults.catalogue()} >= FIRST


def test_every_fault_says_what_finds_it() -> None:
    for fault in faults.catalogue():
        assert fault.summary
        assert fault.in_the_field
        assert bool(fault.found_by) == (fault.exit_code != 0)


def test_there_are_at_least_sixty_faults_each_met_by_an_acceptance_or_by_provisioning() -> None:
    known = faults.catalogue()
    assert len(known) >= 60
    assert len({fault.name for fault in known}) == len(known)
    assert [fault.name for fault in known if not fault.found_by and not fault.met and fault.name not in HARMLESS] == []
    assert {check for fault in known for check in fault.found_by} <= set(CATALOGUE)


def test_what_is_harmless_is_no_finding() -> None:
    assert {fault.name: fault.exit_code for fault in faults.catalogue() if fault.name in HARMLESS} == dict.fromkeys(
        HARMLESS, 0
    )


def test_every_fault_that_is_no_hardware_has_its_program() -> None:
    for fault in faults.catalogue():
        program = MACHINE / "boot" / "faults.d" / fault.name
        assert (fault.name in HARDWARE_FAULTS) != os.access(program, os.X_OK)


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("gremlins", {}, "no fault is called gremlins"),
        ("ssh_down", {"minutes": "1"}, "no parameter minutes"),
        ("ssh_down", {"seconds": "0"}, "seconds=0: must be a whole number from 1 to 3600"),
        ("ssh_down", {"seconds": "soon"}, "must be a whole number"),
        ("pump_dead", {"when": "later"}, "when=later: must be one of now, boot, load"),
    ],
)
def test_a_wrong_fault_is_refused_before_any_rig_is_touched(
    name: str, parameters: dict[str, str], message: str
) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        faults.check(name, parameters)
    assert caught.value.hint


def test_right_parameters_are_taken() -> None:
    faults.check("ssh_down", {"seconds": "20", "when": "load"})


def test_a_fault_for_rigs_that_are_not_up_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no simulated rigs are up"):
        faults.apply(tmp_path, "rig1", "pump_dead", {})


def test_every_fault_is_documented() -> None:
    page = Path(__file__).parents[2] / "docs" / "faults.md"
    text = page.read_text(encoding="utf-8")
    for fault in faults.catalogue():
        section = text.partition(f"## {fault.name}\n")[2].partition("\n## ")[0]
        assert section, f"{fault.name} is not documented"
        for parameter in fault.parameters:
            assert f"`{parameter.name}`" in section
        for check in fault.found_by:
            assert f"`{check}`" in section
        assert f"exit {fault.exit_code}" in section
