"""For the whole suite: what takes seconds first, what needs simulated rigs last; and signals work in it."""

from __future__ import annotations

import signal

import pytest
from hypothesis import settings

# The suite tries the same texts today and tomorrow; `make fuzz` is there to find new ones.
settings.register_profile("suite", derandomize=True)
settings.load_profile("suite")


def pytest_configure() -> None:
    """Take Ctrl-C and hang-up again where the suite was started in the background (`&`, nohup), which ignores them.

    Tests send them to themselves and to programs that they start, and those would go on for ever.
    """
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker("rigs") is not None)
