"""Sizes of modules and functions: `make sizes`. A report to read, not a gate: what is long here may be right."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from statistics import median, quantiles

REPO = Path(__file__).resolve().parents[1]
LONG_MODULE = 300
LONG_FUNCTION = 40


def functions(path: Path) -> list[tuple[int, str]]:
    """Return length in lines and place of every function in a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [
        ((node.end_lineno or node.lineno) - node.lineno + 1, f"{path.relative_to(REPO)}:{node.lineno} {node.name}")
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def report(folders: tuple[str, ...]) -> str:
    """Return the report on every Python file under `folders` of the repository."""
    paths = sorted(path for folder in folders for path in (REPO / folder).rglob("*.py"))
    modules = [(len(path.read_text(encoding="utf-8").splitlines()), str(path.relative_to(REPO))) for path in paths]
    found = [one for path in paths for one in functions(path)]
    return "\n".join([*_table("modules", modules, LONG_MODULE), *_table("functions", found, LONG_FUNCTION)])


def _table(what: str, sizes: list[tuple[int, str]], long: int) -> list[str]:
    lengths = [length for length, _ in sizes]
    p90 = quantiles(lengths, n=10)[-1]
    lines = [f"{len(lengths)} {what}: median {median(lengths):.0f}, p90 {p90:.0f}, longest {max(lengths)} lines"]
    return lines + [f"  {length:4d}  {place}" for length, place in sorted(sizes, reverse=True) if length > long]


if __name__ == "__main__":
    sys.stdout.write(report(("rigctl", "bench", "tools")) + "\n\n" + report(("tests",)) + "\n")
