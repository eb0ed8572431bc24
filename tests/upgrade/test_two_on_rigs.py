"""An upgrade of two rigs within continuous integration's time: what fails on the canary never comes to the other one.

CUDA moves, which takes no restart; and the cards work for seconds only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rigctl import sim
from rigctl.model.upgrade import Capture
from rigctl.store import RunDir
from rigctl.upgrade.compare import all_differences

from .on_rig import SETTINGS, TIME_SCALE, RigInUse, upgrade

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.rigs, pytest.mark.timeout(300)]
BRIEF = {"rig_profiles": {"smoke": {**SETTINGS["rig_profiles"]["smoke"], "gpu_burn_seconds": 0}}}
WISH = ("rig1,rig2", "--cuda", "11.8", "--canary", "rig1", "--settle-minutes", "0")
NVCC = "/usr/local/cuda-11.8/bin/nvcc"
PACKAGE = "/srv/rigsim/pool/cuda/cuda-nvcc-11-8_*.deb"


@pytest.fixture(scope="module")
def rigs(provisioned: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RigInUse, RigInUse]]:
    folder = tmp_path_factory.mktemp("two") / "state"
    try:
        state = sim.up(sim.UpOptions(count=2, directory=folder, image=provisioned, time_scale=TIME_SCALE))
        RigInUse(state).set(**BRIEF)
        yield RigInUse(state, "rig1"), RigInUse(state, "rig2")
    finally:
        sim.down(folder)


def test_1_a_canary_that_fails_goes_back_and_the_other_one_is_never_begun(rigs: tuple[RigInUse, RigInUse]) -> None:
    canary, other = rigs
    canary.ssh(f"sudo mv {PACKAGE} /var/tmp")  # the archive promises what it no longer has
    before = canary.packages(), other.packages()
    code, told = upgrade(canary.fleet, *WISH)
    failed, untouched = (one["end"] for one in told["rigs"])
    assert (code, failed["end"], failed["step"], untouched["end"]) == (4, "rolled_back", "change", "not_begun"), failed
    assert "cuda" in failed["reason"]
    run = RunDir.open(canary.runs, told["run_id"])
    assert {one.detail["rig"] for one in run.journal_entries() if "step" in one.detail} == {"rig1"}
    seen, left = (
        Capture.model_validate_json((run.path / "rig1" / f"{name}.json").read_bytes())
        for name in ("before", "restored")
    )
    assert all_differences(seen, left) == ()
    assert (canary.packages(), other.packages()) == before
    for rig in rigs:
        assert not rig.held()
        assert not rig.own_file.exists()
    canary.ssh(f"sudo mv /var/tmp/{PACKAGE.rpartition('/')[2]} {PACKAGE.rpartition('/')[0]}")


def test_2_once_it_is_mended_the_canary_goes_first_and_the_other_follows(rigs: tuple[RigInUse, RigInUse]) -> None:
    code, told = upgrade(rigs[0].fleet, *WISH)
    assert (code, [one["end"]["end"] for one in told["rigs"]]) == (0, ["upgraded"] * 2), told["rigs"]
    run = RunDir.open(rigs[0].runs, told["run_id"])
    steps = [one.detail["rig"] for one in run.journal_entries() if "step" in one.detail]
    assert steps == sorted(steps)
    for rig in rigs:
        assert "release 11.8" in rig.ssh(f"{NVCC} --version")
        assert "11.8" in rig.own_file.read_text(encoding="utf-8")
        assert not rig.held()
