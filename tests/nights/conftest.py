"""A small fleet of the reference class."""

from __future__ import annotations

import pytest

from rigctl.sim.nights.fleet import members


@pytest.fixture(scope="session")
def fleet():
    return members("dual_3090ti", 3)
