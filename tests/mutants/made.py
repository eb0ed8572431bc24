"""The mutants: each comparison of a module with its operator replaced, made by cosmic-ray's operators."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import parso
from cosmic_ray.ast import get_ast
from cosmic_ray.operators import comparison_operator_replacement as comparisons
from cosmic_ray.operators.operator import Example, Operator

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from parso.tree import BaseNode, NodeOrLeaf

_ORDERS = ("Lt", "LtE", "Gt", "GtE")
_TURNS = (
    *((one, other) for one in _ORDERS for other in _ORDERS if one != other),
    *(("Eq", "NotEq"), ("NotEq", "Eq"), ("Is", "IsNot"), ("IsNot", "Is")),
)
"""An order becomes each other order, so that its boundary and its direction are tried; the others are negated."""


class Mutant(NamedTuple):
    """One comparison that was turned round."""

    module: str
    """Its name below rigctl.checks."""
    function: str
    """Qualified name of the function around it; empty at the top of the module."""
    line: int
    comparison: str
    turned: str
    code: str
    """The whole module with it."""
    lines: range | None
    """Lines of the function (or lambda) around it; None at the top of the module."""


class ReplaceMembership(Operator):
    """`in` and `not in`, which cosmic-ray leaves alone."""

    def mutation_positions(self, node: NodeOrLeaf) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        """Yield where the operators are."""
        if node.type == "comparison":
            for at in self._places(node):
                yield node.children[at].start_pos, node.children[at].end_pos

    def mutate(self, node: NodeOrLeaf, index: int) -> NodeOrLeaf:
        """Negate the operator number `index` of a comparison."""
        at = list(self._places(node))[index]
        node.children[at] = parso.parse(" in" if _word(node.children[at]) == "not in" else " not in")
        return node

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        """Say what it does."""
        return Example("x in y", "x not in y"), Example("x not in y", "x in y")

    @staticmethod
    def _places(node: BaseNode) -> Iterator[int]:
        return (at for at in range(1, len(node.children), 2) if _word(node.children[at]) in {"in", "not in"})


OPERATORS: tuple[Operator, ...] = (
    *(getattr(comparisons, f"ReplaceComparisonOperator_{one}_{other}")() for one, other in _TURNS),
    ReplaceMembership(),
)


def mutants(module: str, path: Path) -> Iterator[Mutant]:
    """Yield every mutant of a module, in the order of its lines."""
    tree = get_ast(path.read_text(encoding="utf-8"))
    for node in _below(tree):
        if node.type != "comparison":
            continue
        for operator in OPERATORS:
            for index, ((line, _), _end) in enumerate(list(operator.mutation_positions(node))):
                before, children = _word(node), list(node.children)
                operator.mutate(node, index)
                _keep_lines(children, node.children)
                after, code = _word(node), tree.get_code()
                node.children[:] = children
                yield Mutant(module, _function(node), line, before, after, code, _lines(node))


def _keep_lines(before: list[NodeOrLeaf], after: list[NodeOrLeaf]) -> None:
    """Give a replaced operator what stood before it, line ends too: code is found by its lines."""
    for old, new in zip(before, after, strict=True):
        if new is not old:
            new.get_first_leaf().prefix = old.get_first_leaf().prefix


def _below(node: NodeOrLeaf) -> Iterator[NodeOrLeaf]:
    yield node
    for child in getattr(node, "children", ()):
        yield from _below(child)


def _word(node: NodeOrLeaf) -> str:
    """Return the code of a node on one line."""
    return " ".join(node.get_code().split())


def _above(node: NodeOrLeaf) -> Iterator[NodeOrLeaf]:
    while node.parent is not None:
        node = node.parent
        yield node


def _function(node: NodeOrLeaf) -> str:
    return ".".join(reversed([one.name.value for one in _above(node) if one.type in {"funcdef", "classdef"}]))


def _lines(node: NodeOrLeaf) -> range | None:
    around = next((one for one in _above(node) if one.type == "funcdef"), None)
    around = around or next((one for one in _above(node) if one.type == "lambdef"), None)
    if around is None:
        return None
    first = around.parent if around.parent.type == "decorated" else around
    return range(first.start_pos[0], around.end_pos[0] + 1)
