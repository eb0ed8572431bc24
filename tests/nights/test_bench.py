"""What the bench counts: found, named first, called bad for nothing, and what the rules of others say."""

from __future__ import annotations

from bench import captures, detection
from rigctl.sim.nights.peers import RULES, Figures

GOOD = Figures({"gflops": (100.0, 100.0), "watts": (440.0, 440.0)}, 480.0)
SLOW = Figures({"gflops": (100.0, 80.0), "watts": (440.0, 440.0)}, 480.0)


def faulty(**changes):
    known = {"fault": "nv3", "seed": 0, "profile": "standard", "is_fault": True, "found": True, "right": True}
    return detection.Faulty(**known | {"first": "topology.nvlink[slot1-slot2]: …", "figures": GOOD} | changes)


def told(healthy, bad):
    return {one.name.removeprefix("detection: "): one for one in detection.told(healthy, bad)}


def test_a_bench_without_misses_holds_its_goals():
    shown = told([detection.Healthy(0, (), GOOD)], [faulty(), faulty(figures=SLOW)])
    assert all(one.holds for one in shown.values())
    assert shown["faults found"].value == 100
    assert shown["false alarms"].value == 0
    assert [shown[f"faults found by {rule}"].value for rule in RULES] == [50, 50, 0]


def test_what_is_missed_or_called_bad_for_nothing_is_told_by_name():
    healthy = [detection.Healthy(0, ("rig001 day 3: power.wall[all_burn]: too much",), SLOW)]
    shown = told(healthy, [faulty(found=False, right=False, first="nothing"), faulty(right=False, seed=1)])
    assert not shown["faults found"].holds
    assert not shown["right cause first"].holds
    assert not shown["false alarms"].holds
    assert "nv3 (seed 0, standard): nothing" in shown["faults found"].how
    assert "nv3 (seed 1)" in shown["right cause first"].how
    assert "rig001 day 3" in shown["false alarms"].how
    assert shown[f"false alarms of {RULES[1]}"].value == 1


def test_a_change_that_is_no_fault_must_pass():
    shown = told([detection.Healthy(0, (), GOOD)], [faulty(), faulty(fault="nvme_added", is_fault=False, found=False)])
    assert shown["false alarms"].value == 1
    assert shown["faults found"].value == 100


def test_captures_of_real_machines_are_judged_rightly():
    assert [one for one in captures.judged() if not one.right] == []


def test_a_small_bench_runs():
    healthy, bad = detection.run(1, 2, 1, ("nv3",))
    assert [one.alarms for one in healthy] == [(), ()]
    assert [(one.found, one.right) for one in bad] == [(True, True)]
