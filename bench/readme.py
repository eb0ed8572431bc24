"""The README's table of figures, written from bench/results.json."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"


def table(results: Sequence[dict[str, Any]]) -> str:
    """Return the figures as a Markdown table."""
    rows = ["| figure | measured | goal | spread |", "|---|---|---|---|"]
    for one in results:
        goal = f"{one['goal']} {'✓' if one['holds'] else '✗'}" if one["goal"] else ""
        rows.append(f"| {one['name']} | {one['value']:g} {one['unit']} | {goal} | {one['spread']} |")
    return "\n".join(rows)


def write_table(readme: Path, results: Sequence[dict[str, Any]]) -> None:
    """Put the table between its two marks, leaving all else as it is."""
    before, rest = readme.read_text(encoding="utf-8").split(BEGIN)
    _old, after = rest.split(END)
    readme.write_text(f"{before}{BEGIN}\n{table(results)}\n{END}{after}", encoding="utf-8")
