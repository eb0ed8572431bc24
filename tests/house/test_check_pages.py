"""Pages of checks and faults say what the code says: `make check-pages` writes them."""

from __future__ import annotations

import importlib.util
import re

import pytest

from rigctl.checks.catalogue import CATALOGUE
from tests.checks.test_fail import CANNOT_FAIL, FAILS

from .source_tree import REPO


@pytest.fixture(scope="module")
def writer():
    spec = importlib.util.spec_from_file_location("check_pages", REPO / "tools" / "check_pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pages_and_code_say_the_same(writer):
    wrong = [name for name, text in writer.pages().items() if (REPO / name).read_text(encoding="utf-8") != text]
    assert wrong == [], "run: make check-pages"


def test_every_fault_and_every_check_stand_in_the_table(writer):
    text = writer.pages()[writer.TABLE]
    for check in writer.CATALOGUE:
        assert f"checks/{check}.md" in text
    for fault in writer.catalogue():
        assert (f"faults.md#{fault.name}" in text) is bool(fault.found_by or not fault.met)


def test_each_link_to_a_fault_leads_to_its_heading(writer):
    headings = set(re.findall(r"^## (\w+)$", (REPO / "docs/faults.md").read_text(encoding="utf-8"), re.MULTILINE))
    linked = {name for text in writer.pages().values() for name in re.findall(r"faults\.md#(\w+)\)", text)}
    assert linked <= headings


def test_what_has_no_fault_is_shown_on_recorded_readings(writer):
    afterwards = {info.id for info in CATALOGUE.values() if info.afterwards}  # tests/spec/test_waivers.py
    without = {check for check in CATALOGUE if not writer.finders(check)}
    assert without <= set(FAILS) | set(CANNOT_FAIL) | afterwards
    assert writer.pages()[writer.TABLE].count(writer.NO_FAULT) == len(without)


def test_a_page_without_its_marks_is_named(writer):
    with pytest.raises(SystemExit, match="needs one pair of marks"):
        writer._between("# power.limit\n", "catalogue", "x")
