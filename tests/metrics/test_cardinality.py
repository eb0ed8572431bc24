"""How many series a rig has: a simulated night's own record, through run directory and index."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING

from bench import index as year
from rigctl.metrics import look, registry_of, text
from rigctl.store.index import Index
from tests.house.source_tree import REPO

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_rig_of_two_cards_has_as_many_series_as_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(year, "RIGS", 1)
    monkeypatch.setattr(year, "NIGHTS", 1)
    year._year(tmp_path)
    with Index.open(tmp_path) as index:
        index.update()
        lines = text(registry_of(look(index, year.BEGAN + timedelta(days=1)))).splitlines()
    series = [line for line in lines if 'rig="' in line]
    card = [line for line in series if 'slot="slot2"' in line]
    page = (REPO / "docs/monitoring.md").read_text(encoding="utf-8")
    said = re.search(r"two cards has about (\d+) series .* a card more adds about (\d+)", page)
    assert said is not None
    assert abs(len(series) - int(said[1])) <= 10, len(series)
    assert abs(len(card) - int(said[2])) <= 5, len(card)
