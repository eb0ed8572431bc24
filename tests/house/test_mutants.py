"""docs/mutation.md: what it explains is in the code, and all that is explained stands there."""

from __future__ import annotations

import ast

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
