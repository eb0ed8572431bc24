"""One simulated rig at time scale 1, shared by all tests of this folder that need one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rigctl import sim

from .on_rig import OnRig

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def provisioned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OnRig]:
    directory = Path(tmp_path_factory.mktemp("guard-rig"))
    made = OnRig(sim.up(sim.UpOptions(count=1, directory=directory, training=False, time_scale=1)))
    made.prepare()
    yield made
    sim.down(directory)


@pytest.fixture
def rig(provisioned: OnRig) -> Iterator[OnRig]:
    yield provisioned
    provisioned.shell("/usr/local/lib/rigsim/fault clear")
    provisioned.ask("stop", "--run", provisioned.run_id, "--reason", "end_of_test")
    provisioned.ask("ack", "--run", provisioned.run_id)
    assert not provisioned.burning()
