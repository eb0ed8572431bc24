"""docs/mutation.md: what it explains is in the code, and all that is explained stands there."""

from __future__ import annotations

import ast

import pytest

from tests.mutants.page import PAGE, explained, modules, survivors, written


def comparisons(tree, source, around=()):
    """Every comparison of a module with the function around it."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Compare):
            yield ".".join(around), " ".join(ast.get_source_segment(source, node).split())
        named = isinstance(node, ast.FunctionDef | ast.ClassDef)
        yield from comparisons(node, source, (*around, node.name) if named else around)


def test_what_is_explained_is_in_the_code():
    known = modules()
    for one in explained():
        source = known[one.module].read_text(encoding="utf-8")
        assert (one.function, one.comparison) in set(comparisons(ast.parse(source), source)), one


def test_every_explanation_says_why():
    assert all(len(why.split()) > 4 for why in explained().values())


def test_the_page_shows_what_is_explained():
    page = PAGE.read_text(encoding="utf-8")
    assert written(page, survivors=survivors()) == page


@pytest.mark.parametrize(
    ("comparison", "turned"),
    [
        ("a < b", {"a <= b", "a > b", "a >= b"}),
        ("a <= b < c", {"a < b < c", "a > b < c", "a >= b < c", "a <= b <= c", "a <= b > c", "a <= b >= c"}),
        ("a == b", {"a != b"}),
        ("a is not None", {"a is None"}),
        ("a in b", {"a not in b"}),
        ("a not in b", {"a in b"}),
        ("(a\n    < b)", {"a <= b", "a > b", "a >= b"}),
    ],
)
def test_each_comparison_is_turned_to_what_it_is_not(tmp_path, comparison, turned):
    made = pytest.importorskip("tests.mutants.made", reason="`make mutants` installs cosmic-ray")
    source = tmp_path / "check.py"
    source.write_text(f"def judge(a, b, c):\n    return {comparison}\n", encoding="utf-8")
    found = list(made.mutants("check", source))
    assert {one.turned for one in found} == turned
    assert {(one.module, one.function, one.lines) for one in found} == {("check", "judge", found[0].lines)}
    assert all(one.code.count("\n") == source.read_text(encoding="utf-8").count("\n") for one in found)
