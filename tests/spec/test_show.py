"""`rigctl spec show`: every figure of a rig with its source, what is not known yet, its waivers."""

from __future__ import annotations

import json
from datetime import date
from typing import TYPE_CHECKING

import pytest

from rigctl.cli.app import main
from tests.inventory.test_inventory import Park

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def park(tmp_path: Path) -> Park:
    made = Park(tmp_path)
    made.write(
        "host_vars/rig1/spec.yml",
        {"rig_spec_host": {"limits": {"min_burn_gflops": 26000}, "sources": {"limits.min_burn_gflops": "its own run"}}},
    )
    entry = {"check": "thermals.cpu_temp", "reason": "ordered", "until": date(2026, 12, 3)}
    made.write("host_vars/rig1/waivers.yml", {"rig_waivers": [entry]})
    return made


def test_each_figure_has_its_place_and_words(park, capsys):
    assert main(["spec", "show", "rig1", "-i", str(park.folder)]) == 0
    text = capsys.readouterr().out
    assert text.startswith("rig1: class dual, group_vars/class_dual/spec.yml\n")
    assert "  parts.links: slots 1-2 kind nvlink links 4\n" in text
    assert "  limits.max_settled_gpu_temp_c: 65.0  (seen)\n" in text
    assert "  limits.min_burn_gflops: 26000.0  (host_vars/rig1/spec.yml: its own run)\n" in text
    assert "  limits.wall_power_tolerance_share: 0.1  (rigctl's default)\n" in text
    assert "  software.driver_branch: 515  (the role variables" in text
    (unknown,) = [line for line in text.splitlines() if line.startswith("  not known yet: ")]
    assert {"limits.max_cpu_temp_c,", "limits.max_burn_gflops_drift,", "limits.wall_power_gpu_burn_w,"} <= set(
        unknown.split()
    )
    assert unknown.endswith("; rigctl spec learn rig1 drafts them")
    assert "  waived until 3 Dec 2026: thermals.cpu_temp (ordered; host_vars/rig1/waivers.yml)\n" in text


def test_json(park, capsys):
    assert main(["spec", "show", "-i", str(park.folder), "--json"]) == 0
    first, second = json.loads(capsys.readouterr().out)
    assert (first["rig"], second["rig"]) == ("rig1", "rig2")
    assert {"key": "parts.gpu_count", "value": 2, "source": ""} in first["figures"]
    assert first["waivers"][0]["until"] == "2026-12-03"
    assert second["waivers"] == []
    assert "limits.max_cpu_temp_c" in second["to_learn"]
