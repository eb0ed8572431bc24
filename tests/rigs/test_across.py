"""Two rigs that train together: torchrun's processes find each other over the rigs' own network, one on each rig."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest
import yaml

from .conftest import PROFILES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .conftest import Fleet

pytestmark = [pytest.mark.rigs, pytest.mark.slow, pytest.mark.timeout(600, func_only=True)]
FIRST, SECOND = "rig1", "rig2"
LEAST_SHARE = 0.3
"""The rigs' own pace varies with what else runs on this machine; a network that holds them back costs more."""
MEASURED_STEPS = 30
"""Some seconds of training by itself, so that one busy moment is not all of it."""


@pytest.fixture
def together(fleet: Fleet) -> Iterator[Fleet]:
    """The rigs, of which the first is where they meet, with a profile that trains and does nothing else."""
    folder = fleet.state.inventory
    words = ["ssh", "-F", str(fleet.state.ssh_config), FIRST, "hostname -I"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL)
    profiles = PROFILES | {"train": {**PROFILES["rest"], "idle_seconds": 1, "train": True}}
    (folder / "group_vars" / "all" / "tests.yml").write_text(yaml.safe_dump({"rig_profiles": profiles}))
    meeting = folder / "host_vars" / FIRST / "across.yml"
    meeting.write_text(yaml.safe_dump({"rig_across_address": done.stdout.split()[0]}), encoding="utf-8")
    specs = {}
    for rig in (FIRST, SECOND):
        spec = folder / "host_vars" / rig / "spec.yml"
        specs[spec] = spec.read_text(encoding="utf-8")
        written = yaml.safe_load(specs[spec])
        written["rig_spec_host"]["training"] |= {"min_across_share": LEAST_SHARE, "measured_steps": MEASURED_STEPS}
        written["rig_spec_host"]["sources"]["training.min_across_share"] = "what these tests ask for"
        spec.write_text(yaml.safe_dump(written), encoding="utf-8")
    yield fleet
    meeting.unlink()
    for spec, text in specs.items():
        spec.write_text(text, encoding="utf-8")


def test_two_rigs_train_together_and_hold_the_same_weights(together: Fleet) -> None:
    accepted = together.accept("train", "--across")
    for rig in (FIRST, SECOND):
        judged = accepted.of(rig, "pass")
        assert "throughput.across[rig]" in judged, accepted.of(rig, "fail", "error", "warn")
        assert "share (2 rigs, 2 processors: " in judged["throughput.across[rig]"]["reason"]
        told = json.loads((accepted.run / rig / "train_across.json").read_text())
        assert (told["rigs"], told["ranks"], told["weights_agree"]) == (2, 2, True)
        assert told["interface"] == "eth0"


def test_nobody_is_asked_to_train_with_others_unless_the_run_was(together: Fleet) -> None:
    alone = together.accept("train")
    assert not (alone.run / FIRST / "train_across.json").exists()
    (left_out,) = [note for note in alone.notes(FIRST) if note.startswith("not run in this profile: ")]
    assert "train_across" in left_out
