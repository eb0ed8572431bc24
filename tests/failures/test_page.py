"""The page about failure modes is what the faults and the tests say."""

import csv
import os
import re
from pathlib import Path

import pytest

from rigctl.sim import faults

from . import failures_page
from .other_modes import OTHERS

SHARED = Path(os.environ.get("RIGCTL_CORPUS", Path(__file__).parents[3] / "shared" / "corpus")).parent
ISSUES = SHARED / "data" / "public_issues.csv"
SUBJECTS = {"driver", "apt", "dkms", "kernel", "compat", "secureboot"}


def test_every_fault_of_provisioning_has_a_test():
    tested = failures_page.tests_by_fault()
    assert [fault.name for fault in faults.catalogue() if fault.met and fault.name not in tested] == []


def test_tests_name_faults_that_there_are():
    assert set(failures_page.tests_by_fault()) <= {fault.name for fault in faults.catalogue()}


def test_every_other_row_names_a_test_that_there_is():
    tests = [test for row in OTHERS for test in row.tests]
    assert [test for test in tests if not failures_page.exists(test)] == []
    assert all(row.tests for row in OTHERS)


@pytest.mark.skipif(not ISSUES.is_file(), reason="the list of public issues is not here")
def test_every_public_issue_about_provisioning_has_a_row():
    with ISSUES.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["area"] in SUBJECTS]
    assert len(rows) > len(SUBJECTS)
    page = failures_page.render()
    names = [f"{row['repo']}#{row['number']}" for row in rows]
    assert [name for name in names if not re.search(rf"{re.escape(name)}\b", page)] == []


def test_the_page_is_up_to_date():
    assert failures_page.PAGE.read_text(encoding="utf-8") == failures_page.render()
