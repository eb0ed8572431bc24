"""A small fleet of the reference class."""

from __future__ import annotations

import pytest

from rigctl.sim.nights.fleet import members
from rigctl.sim.nights.park import CLASS_OF, REFERENCE


@pytest.fixture(scope="session")
def fleet():
    return members(REFERENCE, 3)


@pytest.fixture(scope="session")
def others():
    """One rig of each class that some fault needs."""
    return {name: members(name, 1)[0] for name in set(CLASS_OF.values())}
