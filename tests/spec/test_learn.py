"""`rigctl spec learn`: from a healthy run to a class that the same rig meets, every figure with margin and reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rigctl.checks.catalogue import CATALOGUE
from rigctl.cli.app import main
from rigctl.errors import UsageError
from rigctl.inventory import load_fleet
from rigctl.judge import judge_run
from rigctl.model.reading import LinkFacts
from rigctl.model.spec import ComputeSpec, LimitsSpec, PartsSpec, TrainingSpec
from rigctl.model.verdict import CheckVerdict, Verdict
from rigctl.spec import Unfit, as_yaml, learn
from rigctl.spec.parts import joined_pairs
from rigctl.spec.rows import NOT_LEARNED, ROWS, Seen
from rigctl.store import RunDir
from tests.acceptance.test_judge import fake, run_of
from tests.checks import healthy as h
from tests.sim_hardware.conftest import NEEDS_COMPILER

from .shapes import PROFILE, SHOWN, Shape, fleet_of

if TYPE_CHECKING:
    from rigctl.model.reading import Readings

PAGE = Path(__file__).parents[2] / "docs" / "specs.md"
BY_KEY = {row.key: row for row in ROWS}


def accepted(tmp_path: Path, readings: Readings | None = None, **changes) -> RunDir:
    run = run_of(tmp_path, rig1=readings or h.readings())
    if changes:
        info = run.read_info()
        rig = info.rigs[0].model_copy(update=changes)
        run.write_json_atomic("run.json", info.model_copy(update={"rigs": (rig,)}))
        run = RunDir(run.path)
    run.write_record(judge_run(run, {"rig1": fake(run)}))
    return run


def test_every_limit_has_its_row_or_a_reason_why_no_reading_gives_it():
    """A new limit in `LimitsSpec` is one row in rigctl/spec/rows.py; this test says so."""
    limits = {f"limits.{name}" for name in LimitsSpec.model_fields}
    assert limits == {key for key in {**BY_KEY, **NOT_LEARNED} if key.startswith("limits.")}
    assert not set(BY_KEY) & set(NOT_LEARNED)
    known = {"parts": PartsSpec, "limits": LimitsSpec, "training": TrainingSpec, "compute": ComputeSpec}
    for row in ROWS:
        for key in (row.key, *row.opened):
            part, name = key.split(".")
            assert name in known[part].model_fields
        assert row.margin.why


def test_the_page_names_every_figure_that_can_be_learned_and_its_margin():
    text = PAGE.read_text(encoding="utf-8")
    for row in ROWS:
        lines = [line for line in text.splitlines() if line.startswith("|") and f"`{row.key}`" in line]
        assert lines, f"docs/specs.md names no {row.key}"
        assert row.margin.words in lines[0], (row.key, row.margin.words)


def test_parts_are_exact_and_limits_have_their_margins(tmp_path):
    draft = learn([accepted(tmp_path)], "rig1")
    assert draft.spec["parts"] == {
        "gpu_count": 2,
        "gpu_model": h.MODEL,
        "min_gpu_memory_mib": 24564,
        "links": [{"slots": [1, 2], "kind": "nvlink", "links": 4}],
        "min_nvlink_gb_per_s": 14.0,
        "min_disk_gb": 2000,
        "pcie_gen_under_load": 4,
        "pcie_width_under_load": 8,
    }
    limits = draft.spec["limits"]
    assert limits["max_settled_gpu_temp_c"] == 65  # 58 and 55 °C were seen
    assert limits["guard_max_gpu_temp_c"] == 73
    assert limits["max_cpu_temp_c"] == 88  # 78 °C
    assert limits["min_power_share_of_limit"] == 0.89  # 441 of 480 W
    assert limits["max_bad_throttle_share"] == 0
    assert limits["min_burn_gflops"] == 24_800  # 26,700 × 0.93
    assert limits["wall_power_all_burn_w"] == 1240
    assert draft.spec["training"]["min_tokens_per_s"] == 7010  # 7,790 × 0.90
    assert draft.spec["training"]["provisional"] is False
    assert "+ 7 °C" in draft.sources["limits.max_settled_gpu_temp_c"]
    assert "58 °C on slot1" in draft.sources["limits.max_settled_gpu_temp_c"]


def test_what_the_class_does_not_set_yet_is_learned_too(tmp_path):
    unknown = (
        *("max_settled_gpu_temp_c", "max_cpu_temp_c", "min_power_share_of_limit", "min_burn_gflops"),
        *("wall_power_gpu_burn_w", "wall_power_all_burn_w"),
    )
    bare = h.spec(
        parts={"pcie_gen_under_load": None, "pcie_width_under_load": None}, limits=dict.fromkeys(unknown, None)
    )
    draft = learn([accepted(tmp_path, spec=bare)], "rig1")
    limits = draft.spec["limits"]
    assert limits["max_cpu_temp_c"] == 88
    assert limits["wall_power_gpu_burn_w"] == 1120
    assert limits["wall_power_all_burn_w"] == 1240
    assert limits["min_burn_gflops"] == 24_800
    assert draft.spec["parts"]["pcie_width_under_load"] == 8
    assert not {f"limits.{name}" for name in unknown} & set(draft.missing)
    assert draft.missing["limits.max_burn_gflops_drift"].partition("; it takes ")[2].startswith("a GPU burn")


def test_a_long_burn_tells_its_drift(tmp_path):
    log = h.burn_log(
        [h.row(p, rates=(27_000, 26_700)) for p in (20.0, 30.0, 40.0)]
        + [h.row(p, rates=(26_460, 26_700)) for p in (70.0, 80.0, 100.0)],
        seconds=600,
    )
    profile = h.PROFILE.model_copy(update={"gpu_burn_seconds": 600})
    readings = h.readings(logs={**h.logs(), "gpu_burn.log": log})
    draft = learn(
        [accepted(tmp_path, readings, profile=profile)], "rig1", despite=["throughput.gpu_burn", "power.wall"]
    )
    assert draft.spec["limits"]["max_burn_gflops_drift"] == 0.04  # 2 % were seen


def test_only_pairs_that_links_join_set_a_floor_for_copies():
    bridged = (h.gpu(0), h.gpu(1))
    assert joined_pairs(bridged) == {"slot1-slot2"}
    assert joined_pairs([gpu.model_copy(update={"links": ()}) for gpu in bridged]) == frozenset()
    alone = h.gpu(1, slot=3, pci_bus_id="00000000:41:00.0", links=())
    assert joined_pairs((*bridged, alone)) == {"slot1-slot2"}
    through = LinkFacts(link=0, active=True, remote_pci_bus_id="00000000:C4:00.0")
    switched = [gpu.model_copy(update={"links": (through,)}) for gpu in (*bridged, alone)]
    assert joined_pairs(switched) == {"slot1-slot2", "slot1-slot3", "slot2-slot3"}
    pair = CheckVerdict(
        check="throughput.p2p_one_way", subject="slot1-slot2", verdict=Verdict.PASS, reason="52.8 GB/s", found=52.8
    )
    slow = pair.model_copy(update={"subject": "slot1-slot3", "found": 6.2})
    seen = Seen((pair, slow), h.readings(facts=h.facts(gpus=(*bridged, alone))), h.PROFILE)
    row = BY_KEY["limits.min_p2p_one_way_gb_per_s"]
    assert row.figures(seen) == {"slot1-slot2": 52.8}
    assert row.limit(52.8, None) == (49.1, "× 0.93")


def test_a_figure_is_of_the_row_that_the_run_can_hold_and_of_no_other():
    per_watt = CheckVerdict(
        check="thermals.resistance", subject="slot1", verdict=Verdict.PASS, reason="0.07 °C/W", found=0.07
    )
    room, coolant = BY_KEY["limits.max_gpu_c_per_w"], BY_KEY["limits.max_gpu_c_per_w_coolant"]
    air = Seen((per_watt,), h.readings(samples=h.with_samples(tuple(h.STEPS), coolant_temps_c={})), h.PROFILE)
    assert (room.figures(air), coolant.figures(air)) == ({"slot1": 0.07}, {})


def test_a_limit_is_never_looser_than_the_cards_own_slowdown(tmp_path):
    warm = h.readings(samples=h.with_gpu_samples(lambda _gpu, _: {"temp_c": 84.0}))
    loose = h.spec(limits={"max_settled_gpu_temp_c": 90})
    draft = learn([accepted(tmp_path, warm, spec=loose)], "rig1", despite=list(CATALOGUE))
    assert draft.spec["limits"]["max_settled_gpu_temp_c"] == 89
    assert "slowdown temperature − 5 °C" in draft.sources["limits.max_settled_gpu_temp_c"]
    assert draft.spec["limits"]["guard_max_gpu_temp_c"] == 89


def test_the_extremes_of_several_runs_count(tmp_path):
    hotter = h.readings(samples=h.with_gpu_samples(lambda gpu, _: {"temp_c": 61.0} if gpu.slot == 2 else None))
    runs = [accepted(tmp_path / "one"), accepted(tmp_path / "two", hotter)]
    draft = learn(runs, "rig1")
    assert draft.spec["limits"]["max_settled_gpu_temp_c"] == 68
    assert draft.runs == tuple(run.run_id for run in runs)
    assert f"in run {runs[1].run_id} showed 61 °C on slot2" in draft.sources["limits.max_settled_gpu_temp_c"]


@pytest.mark.parametrize(
    ("readings", "check"),
    [
        (h.readings(facts=h.facts(gpus=(h.gpu(0),))), "topology.gpu_count"),
        (h.readings(kernel_read=False), "kernel.xid"),
        (h.readings(samples=h.with_gpu_samples(lambda _gpu, _: {"throttle": 0x44})), "thermals.throttle"),
        (h.readings(samples=h.with_gpu_samples(lambda _gpu, _: {"temp_c": 71.0})), "thermals.settled_gpu_temp"),
    ],
)
def test_nothing_is_learned_from_a_rig_that_is_not_healthy(tmp_path, readings, check):
    with pytest.raises(Unfit) as caught:
        learn([accepted(tmp_path, readings)], "rig1")
    assert check in {v.check for v in caught.value.verdicts}


def test_what_a_person_accepts_by_name_is_learned_and_said(tmp_path):
    warm = h.readings(samples=h.with_gpu_samples(lambda _gpu, _: {"temp_c": 71.0}))
    draft = learn([accepted(tmp_path, warm)], "rig1", despite=["thermals.settled_gpu_temp"])
    assert draft.spec["limits"]["max_settled_gpu_temp_c"] == 78
    assert "# The rig stood against these checks, and that was accepted: thermals.settled_gpu_temp." in as_yaml(draft)


def test_a_figure_without_a_reading_is_left_out_or_kept_and_said(tmp_path):
    quiet = h.PROFILE.model_copy(update={"cpu_burn_seconds": 0, "all_burn_seconds": 0, "train": False})
    steps = [s for s in h.samples() if s.step in ("idle", "gpu_burn", "step_load", "after")]
    renumbered = tuple(
        s.model_copy(
            update={"seq": n, "t_mono_s": 1000 + n / 2, "t_wall_s": h.T0 + n / 2, "controller_wall_s": h.T0 + n / 2}
        )
        for n, s in enumerate(steps)
    )
    run = accepted(tmp_path, h.readings(samples=renumbered), profile=quiet)
    draft = learn([run], "rig1")
    assert draft.spec["limits"]["max_cpu_temp_c"] == 90
    assert "the class's own figure is kept" in draft.missing["limits.max_cpu_temp_c"]
    assert draft.sources["limits.max_cpu_temp_c"] == "as in group_vars/class_dual_3090ti/spec.yml"
    assert draft.spec["training"]["min_tokens_per_s"] == 6702
    assert draft.spec["training"]["provisional"] is True
    assert "# not learned: training.min_tokens_per_s: " in as_yaml(draft)


def test_an_absurd_figure_makes_no_class(tmp_path):
    idle = h.readings(samples=h.with_gpu_samples(lambda _gpu, _: {"power_w": 5.0}))
    bare = h.spec(limits={"min_power_share_of_limit": None, "wall_power_all_burn_w": None})
    run = accepted(tmp_path, idle, spec=bare)
    with pytest.raises(UsageError, match=r"makes no spec: limits\.min_power_share_of_limit: -0\.01") as caught:
        learn([run], "rig1", despite=list(CATALOGUE))
    assert "showed 0.01" in caught.value.hint


@given(figure=st.floats(min_value=0.5, max_value=1e6))
def test_rounding_never_takes_the_margin_away(figure):
    for row in ROWS:
        limit, _ = row.limit(figure, None)
        exact = figure * row.margin.factor + row.margin.add
        slack = 1e-5 * max(1.0, abs(exact))
        if row.sense == "at most":
            assert limit >= exact - slack
        elif row.sense == "at least":
            assert limit <= exact + slack
        step = row.step or 10 * abs(exact) / 100
        assert abs(limit - exact) <= step + slack


def test_what_is_unmeasured_only_because_it_was_asked_for_while_learning_is_no_word_against_the_rig(tmp_path):
    cool = h.readings(samples=h.with_samples(("cpu_burn", "all_burn"), cpu_temp_c=None))
    run = accepted(tmp_path, cool, spec=h.spec(limits={"max_cpu_temp_c": None}))
    draft = learn([run], "rig1")
    assert "max_cpu_temp_c" not in draft.spec["limits"]
    assert "samples show a CPU temperature" in draft.missing["limits.max_cpu_temp_c"]


def test_two_models_are_no_class(tmp_path):
    mixed = h.readings(facts=h.facts(gpus=(h.gpu(0), h.gpu(1, name="NVIDIA GeForce RTX 3090"))))
    with pytest.raises(UsageError, match="are not alike"):
        learn([accepted(tmp_path, mixed)], "rig1", despite=["topology.gpu_model"])


def test_a_rig_that_was_not_there_is_a_mistake(tmp_path):
    with pytest.raises(UsageError, match="rig9 was not measured in run") as caught:
        learn([accepted(tmp_path)], "rig9")
    assert caught.value.hint == "measured there: rig1"


@NEEDS_COMPILER
@pytest.mark.parametrize("rig_class", ["quad_3090_blower", "octo_h100", "dual_4090"])
def test_a_learned_class_is_met_by_its_rig_without_a_warning(tmp_path: Path, built: Path, rig_class: str):
    """The whole way: a rig whose class knows little, its run, the draft in its place, the same run judged by it."""
    rig = fleet_of(tmp_path / "park", rig_class)
    shape = Shape(tmp_path, rig_class, built / "lib")
    run = shape.accept(rig)
    first = judge_run(run, {"rig1": fake(run, answers=shape.answers())})
    (park,) = (tmp_path / "park").glob("inventory")
    written = park / "group_vars" / f"class_{rig_class}" / "spec.yml"
    unseen = {v.check for v in first.rigs[0].verdicts if v.verdict is Verdict.ERROR} - SHOWN
    written.write_text(as_yaml(learn([run], "rig1", despite=sorted(unseen))), encoding="utf-8")
    (learned,) = load_fleet(park)
    spec = learned.spec.model_copy(update={"software": rig.spec.software})
    assert spec.parts.links == rig.spec.parts.links
    assert spec.parts.nvswitch_links == rig.spec.parts.nvswitch_links
    (judged,) = judge_run(run, instead={"rig1": spec}).rigs
    assert {v.verdict for v in judged.verdicts if v.check in SHOWN} <= {Verdict.PASS, Verdict.SKIP}
    assert learned.spec.limits.min_burn_gflops is not None
    assert PROFILE.gpu_burn_seconds == run.read_info().rigs[0].profile.gpu_burn_seconds


class TestCommand:
    """The command's words and exit codes."""

    def test_it_prints_a_file_that_loads(self, tmp_path, capsys):
        accepted(tmp_path)
        assert main(["spec", "learn", "rig1", "--runs", str(tmp_path / "runs")]) == 0
        text = capsys.readouterr().out
        assert yaml.safe_load(text)["rig_spec"]["limits"]["max_settled_gpu_temp_c"] == 65
        assert "      - slots: [1, 2]\n        kind: nvlink\n" in text

    def test_it_writes_a_file_and_never_replaces_one(self, tmp_path, capsys):
        accepted(tmp_path)
        words = ["spec", "learn", "rig1", "--runs", str(tmp_path / "runs"), "-o", str(tmp_path / "new" / "spec.yml")]
        assert main(words) == 0
        assert (tmp_path / "new" / "spec.yml").read_text().startswith("---\n# Drafted by rigctl spec learn from rig1")
        assert main(words) == 2
        assert "is there already and is never replaced" in capsys.readouterr().err

    def test_an_unhealthy_rig_is_told_with_its_verdicts(self, tmp_path, capsys):
        accepted(tmp_path, h.readings(samples=h.with_gpu_samples(lambda _gpu, _: {"temp_c": 71.0})))
        assert main(["spec", "learn", "rig1", "--runs", str(tmp_path / "runs")]) == 1
        said = capsys.readouterr()
        assert said.out == ""
        assert "fail   thermals.settled_gpu_temp[slot1" in said.err
        assert "rigctl spec learn rig1 --despite thermals.settled_gpu_temp" in said.err

    def test_a_rig_that_was_not_measured_whole_exits_3(self, tmp_path):
        accepted(tmp_path, h.readings(kernel_read=False))
        assert main(["spec", "learn", "rig1", "--runs", str(tmp_path / "runs")]) == 3

    def test_without_a_run_it_says_what_to_do(self, tmp_path, capsys):
        assert main(["spec", "learn", "rig1", "--runs", str(tmp_path)]) == 2
        assert "hint: rigctl accept rig1" in capsys.readouterr().err

    def test_json(self, tmp_path, capsys):
        run = accepted(tmp_path)
        assert main(["spec", "learn", "rig1", "--run", str(run.path), "--json"]) == 0
        data = json.loads(capsys.readouterr().out)
        assert data["rig_spec"]["parts"]["gpu_count"] == 2
        assert data["runs"] == [run.run_id]


def test_what_the_cards_compute_is_learned_from_the_slowest_of_them(tmp_path):
    draft = learn([accepted(tmp_path)], "rig1")
    assert draft.spec["compute"]["device"] == "cuda"
    assert draft.spec["compute"]["min_matmul_fp16_tflops"] == 74.0  # 0.93 × 79.596
    assert draft.spec["training"]["min_p2p_gain"] == 1.08  # 0.93 × 15,030 / 12,900
    assert "× 0.93" in draft.sources["compute.min_matmul_fp16_tflops"]
    assert "compute:" in as_yaml(draft)
    bare = learn([accepted(tmp_path / "bare", spec=h.spec(compute=None))], "rig1")
    assert "compute" not in bare.spec
