"""The page about failure modes is what the faults and the tests say."""

from rigctl.sim import faults

from . import failures_page


def test_every_fault_of_provisioning_has_a_test():
    tested = failures_page.tests_by_fault()
    assert [fault.name for fault in faults.catalogue() if fault.met and fault.name not in tested] == []


def test_tests_name_faults_that_there_are():
    assert set(failures_page.tests_by_fault()) <= {fault.name for fault in faults.catalogue()}


def test_every_other_row_names_a_test_that_there_is():
    assert [row[2] for row in failures_page.OTHERS if not failures_page.exists(row[2])] == []


def test_the_page_is_up_to_date():
    assert failures_page.PAGE.read_text(encoding="utf-8") == failures_page.render()
