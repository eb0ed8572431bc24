"""Order for the whole suite: what takes seconds first, what needs simulated rigs last and one after another."""

from __future__ import annotations

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker("rigs") is not None)
