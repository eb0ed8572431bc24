"""The shipped classes: each loads, says where its figures are from, and is met by a simulated rig of its shape."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rigctl import assets
from rigctl.inventory import load_fleet
from rigctl.judge import judge_run
from rigctl.model.verdict import Verdict
from rigctl.sim.inventory import rig_classes
from rigctl.sim.machine.hardware.rigsim.identity import load_template
from rigctl.starter import Starter, StarterRig, write_starter
from tests.acceptance.test_judge import bad, fake
from tests.sim_hardware.conftest import NEEDS_COMPILER

from .shapes import SHOWN, Shape, fleet_of

if TYPE_CHECKING:
    from pathlib import Path

    from rigctl.model.spec import RigSpec

CLASSES = rig_classes()
SHAPES = {
    "dual_3090ti": (2, "RTX 3090 Ti"),
    "dual_4090": (2, "RTX 4090"),
    "dual_5090": (2, "RTX 5090"),
    "octo_4090": (8, "RTX 4090"),
    "octo_a100": (8, "A100-SXM4-80GB"),
    "octo_h100": (8, "H100 80GB HBM3"),
    "quad_3090_blower": (4, "RTX 3090"),
    "quad_a6000": (4, "RTX A6000"),
}
TO_LEARN = {
    "limits.max_settled_gpu_temp_c": "thermals.settled_gpu_temp",
    "limits.min_power_share_of_limit": "power.share_of_limit",
    "limits.min_burn_gflops": "throughput.burn_gflops",
    "parts.pcie_gen_under_load": "topology.pcie_gen",
    "parts.pcie_width_under_load": "topology.pcie_width",
}


def figure(spec: RigSpec, key: str) -> object:
    part, name = key.split(".")
    return getattr(getattr(spec, part), name)


def test_the_classes_that_are_promised_are_shipped():
    assert set(SHAPES) == set(CLASSES)


@pytest.mark.parametrize("rig_class", CLASSES)
def test_it_starts_an_inventory_and_every_figure_has_a_source(tmp_path: Path, rig_class: str):
    starter = Starter(rigs=(StarterRig("rig1", "192.0.2.11"),), user="ubuntu", rig_class=rig_class)
    write_starter(tmp_path / "park", starter)
    (rig,) = load_fleet(tmp_path / "park")
    count, model = SHAPES[rig_class]
    assert rig.spec.parts.gpu_count == count
    assert rig.spec.parts.gpu_model.endswith(model)
    written = rig.spec.model_dump(exclude_none=True, exclude_defaults=True)
    for part in ("parts", "limits"):
        assert {f"{part}.{key}" for key in written[part]} <= set(rig.spec.sources), rig_class
    assert load_template(rig_class)["rig_class"] == rig_class
    assert (assets.starter_inventory_dir() / "group_vars" / f"class_{rig_class}" / "software.yml").is_file()


@NEEDS_COMPILER
@pytest.mark.parametrize("rig_class", CLASSES)
def test_a_healthy_rig_of_its_shape_meets_it(tmp_path: Path, built: Path, rig_class: str):
    rig = fleet_of(tmp_path / "park", rig_class)
    shape = Shape(tmp_path, rig_class, built / "lib")
    run = shape.accept(rig)
    record = judge_run(run, {"rig1": fake(run, answers=shape.answers())})
    verdicts = {v.key: v for v in record.rigs[0].verdicts}
    assert [key for key, v in verdicts.items() if v.verdict is Verdict.FAIL] == []
    assert [key for key, v in verdicts.items() if v.verdict is Verdict.ERROR and v.check in SHOWN] == []
    assert {v.check for v in verdicts.values()} >= SHOWN
    warned = {v.check for v in verdicts.values() if v.verdict is Verdict.WARN and v.check in SHOWN}
    assert warned == {check for key, check in TO_LEARN.items() if figure(rig.spec, key) is None}
    linked = [v for v in record.rigs[0].verdicts if v.check == "topology.nvlink"]
    declared = rig.spec.parts.links or rig.spec.parts.nvswitch_links
    assert {v.verdict for v in linked} == {Verdict.PASS if declared else Verdict.SKIP}


@NEEDS_COMPILER
@pytest.mark.parametrize(
    ("rig_class", "fault", "check"),
    [
        ("quad_3090_blower", ("nv3", {"link": "3"}), "topology.nvlink"),
        ("octo_a100", ("nv3", {"link": "3"}), "topology.nvlink"),
        ("octo_h100", ("card_missing", {"slot": "7"}), "topology.gpu_count"),
    ],
)
def test_a_fault_on_a_rig_of_its_shape_is_found(
    tmp_path: Path, built: Path, rig_class: str, fault: tuple[str, dict[str, str]], check: str
):
    rig = fleet_of(tmp_path / "park", rig_class)
    shape = Shape(tmp_path, rig_class, built / "lib", faults=(fault,))
    run = shape.accept(rig)
    record = judge_run(run, {"rig1": fake(run, answers=shape.answers())})
    assert check in {key.partition("[")[0] for key in bad(record)}
    assert record.exit_code == 1
