"""A fresh simulated rig for each module of this folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rigctl import sim

from .box import Box

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    """A rig as `rigctl sim up` leaves it; a module's tests use it one after another, in their order."""
    directory = tmp_path_factory.mktemp("failures") / "state"
    found = sim.up(sim.UpOptions(count=1, directory=directory, training=False))
    try:
        yield Box(found)
    finally:
        sim.down(directory)
