"""For the whole suite: what takes seconds first, what needs simulated rigs last; and Ctrl-C works in it."""

from __future__ import annotations

import signal

import pytest


def pytest_configure() -> None:
    """Take Ctrl-C again where the suite was started in the background, which ignores it.

    Tests send it to themselves and to programs that they start, and those would go on for ever.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker("rigs") is not None)
