"""docs/checks.md says of every check what it measures, which limit it has, where that comes from and what to do."""

from __future__ import annotations

import re
from pathlib import Path

from rigctl.checks.catalogue import CATALOGUE

PAGE = Path(__file__).parents[2] / "docs" / "checks.md"


def sections() -> dict[str, str]:
    parts = re.split(r"^### `([\w.]+)`$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_the_page_names_exactly_the_checks_of_the_catalogue():
    assert set(sections()) == set(CATALOGUE)


def test_each_section_says_measures_limit_source_and_what_to_do():
    for check, text in sections().items():
        for word in ("**Measures:**", "**Limit:**", "**Source:**", "**Do:**"):
            assert word in text, (check, word)
