"""The benches' own arithmetic, and the README's table."""

from __future__ import annotations

import inspect
import json

import pytest

from bench.__main__ import benches, main, merged
from bench.figure import figure
from bench.readme import BEGIN, END, row, write_table
from bench.stage import jsonl

from .source_tree import REPO


def test_a_figure_is_the_median_held_against_its_goal():
    one = figure("duration", [10.0, 30.0, 12.345], "s", "three times", goal=("≤", 12))
    assert (one.value, one.holds, one.goal, one.spread) == (12.3, False, "≤ 12", "10 to 30, n=3")


@pytest.mark.parametrize(("goal", "holds"), [(("≤", 5), True), (("≥", 6), False), (("=", 5), True), (None, True)])
def test_goals(goal, holds):
    assert figure("x", [5], "s", "", goal=goal).holds is holds


def test_the_limit_is_held_before_rounding():
    assert not figure("x", [180.04], "s", "", goal=("≤", 180)).holds


def test_every_bench_can_be_asked_for():
    known = benches()
    assert {"demo", "acceptances", "controller_killed", "cut", "ssh"} <= set(known)
    assert all(list(inspect.signature(module.measure).parameters) == ["stage"] for module in known.values())


def test_an_unknown_bench_is_a_usage_error(capsys):
    assert main(["nonsense"]) == 2
    assert capsys.readouterr().err.startswith("error: no bench called nonsense\nhint: there are ")


def test_new_results_take_the_place_of_old_ones():
    old = [{"name": "a", "value": 1}, {"name": "b", "value": 2}]
    assert merged(old, [{"name": "a", "value": 3}]) == [{"name": "a", "value": 3}, {"name": "b", "value": 2}]


def test_table_keeps_the_rest_of_the_readme(tmp_path):
    page = tmp_path / "README.md"
    old = "| figure | measured | goal | spread |\n|---|---|---|---|\n| x | 9 s | ≤ 4 ✗ | once |\n| y | 1 | | once |"
    page.write_text(f"before\n{BEGIN}\n{old}\n{END}\nafter\n")
    write_table(page, [figure("z", [2], "", "").as_json(), figure("x", [5], "s", "", goal=("≤", 4)).as_json()])
    rows = ["| x | 5 s | ≤ 4 ✗ | once |", "| y | 1 | | once |", "| z | 2 |  | once |"]
    head = old.splitlines()[:2]
    assert page.read_text() == "\n".join(["before", BEGIN, *head, *rows, END, "after", ""])


def test_readme_shows_what_was_measured():
    results = REPO / "bench/results.json"
    if not results.exists():
        pytest.skip("nothing was measured in this checkout")
    readme = (REPO / "README.md").read_text(encoding="utf-8")
    assert [one["name"] for one in json.loads(results.read_text(encoding="utf-8")) if row(one) not in readme] == []


def test_a_cut_last_line_is_left_out(tmp_path):
    path = tmp_path / "telemetry.jsonl"
    path.write_text('{"seq": 1}\n{"se')
    assert jsonl(path) == [{"seq": 1}]
    assert jsonl(tmp_path / "absent") == []
