"""One provisioned simulated rig for this folder's tests, started from the image that tests/rigs keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rigctl import sim
from tests.rigs.conftest import provisioned

from .on_rig import TIME_SCALE, RigInUse

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["provisioned"]


@pytest.fixture(scope="module")
def started(provisioned: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RigInUse]:
    """A rig with 515, which the tests leave as they found it."""
    folder = tmp_path_factory.mktemp("upgrade") / "state"
    try:
        fleet = sim.up(sim.UpOptions(count=1, directory=folder, image=provisioned, time_scale=TIME_SCALE))
        found = RigInUse(fleet)
        found.set()
        found.first = found.packages()
        yield found
    finally:
        sim.down(folder)


@pytest.fixture
def rig(started: RigInUse) -> Iterator[RigInUse]:
    yield started
    started.clear()
