"""A rig that an upgrade has out of use is left to it, but for that upgrade's own acceptances."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from rigctl.agent import claim, unit
from rigctl.agent.errors import Busy
from rigctl.agent.places import Places
from rigctl.agent.plan import Plan
from rigctl.upgrade.on_rig import held

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    monkeypatch.setattr(unit, "running_runs", list)
    monkeypatch.setattr(unit, "processes", list)
    monkeypatch.setattr(claim, "_settings", dict)
    return Places(tmp_path / "spool", tmp_path / "run", tmp_path / "upgrade.json")


def plan(**changed: object) -> Plan:
    known = {
        "run_id": "night-1", "sample_hz": 2, "controller_lost_s": 60, "max_gpu_temp_c": 80, "stale_sample_s": 5,
        "expected_gpus": (), "wall_meter": None, "gpu_burn_dir": "/opt/gpu-burn", "torch_venv": "/opt/torch",
        "steps": (),
    }  # fmt: skip
    return Plan(**{**known, **changed})  # type: ignore[arg-type]


def test_a_rig_that_nobody_upgrades_is_free(places: Places) -> None:
    assert claim.claim(plan(), places).services == []


def test_the_upgrade_that_has_it_is_named(places: Places) -> None:
    held.lock("up-7", "ada@desk", ignore=False, path=places.upgrade_lock)
    with pytest.raises(Busy, match="the upgrade up-7 of ada@desk holds this rig since 20") as caught:
        claim.claim(plan(), places)
    assert "rigctl upgrade --abort up-7" in caught.value.hint
    with pytest.raises(Busy):
        claim.claim(plan(upgrade="up-8"), places)


@pytest.mark.parametrize("changed", [{"upgrade": "up-7"}, {"ignore_lock": True}])
def test_its_own_runs_and_those_that_ignore_it_begin(places: Places, changed: dict[str, object]) -> None:
    held.lock("up-7", "ada@desk", ignore=False, path=places.upgrade_lock)
    assert claim.claim(plan(**changed), places).services == []


@pytest.mark.parametrize("text", ["{", "[]", json.dumps({"run": "", "by": "x"})])
@pytest.mark.parametrize("upgrade", ["", "up-7"])
def test_a_hold_that_cannot_be_read_is_somebody_s(places: Places, text: str, upgrade: str) -> None:
    places.upgrade_lock.write_text(text, encoding="utf-8")
    with pytest.raises(Busy, match="cannot be read"):
        claim.claim(plan(upgrade=upgrade), places)
