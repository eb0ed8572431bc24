"""The README's table of figures, written from bench/results.json."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"


HEAD = ("| figure | measured | goal | spread |", "|---|---|---|---|")


def row(one: dict[str, Any]) -> str:
    """Return a figure as a row of the table."""
    goal = f"{one['goal']} {'✓' if one['holds'] else '✗'}" if one["goal"] else ""
    measured = f"{one['value']:g} {one['unit']}".strip()
    return f"| {one['name']} | {measured} | {goal} | {one['spread']} |"


def table(results: Sequence[dict[str, Any]], before: str = "") -> str:
    """Return the figures as a Markdown table; rows of `before` that were not measured again stay where they are."""
    rows = {_name(line): line for line in before.strip().splitlines() if line not in HEAD}
    rows |= {_name(line): line for line in map(row, results)}
    return "\n".join([*HEAD, *rows.values()])


def write_table(readme: Path, results: Sequence[dict[str, Any]]) -> None:
    """Renew the table between its two marks, leaving all else as it is."""
    before, rest = readme.read_text(encoding="utf-8").split(BEGIN)
    old, after = rest.split(END)
    readme.write_text(f"{before}{BEGIN}\n{table(results, old)}\n{END}{after}", encoding="utf-8")


def _name(line: str) -> str:
    return line.split("|")[1].strip()
