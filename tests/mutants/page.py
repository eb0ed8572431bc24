"""What is known of survivors, and docs/mutation.md: figures of the last whole run, and the list with its reasons."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

REPO = Path(__file__).resolve().parents[2]
CHECKS = REPO / "rigctl" / "checks"
PAGE = REPO / "docs" / "mutation.md"
_ROW = re.compile(r"^\| `([\w.]+)` \| (\d+) \| (\d+) \| (\d+) \|$", re.MULTILINE)
EXPLAINED = Path(__file__).with_name("explained.yml")


def modules() -> dict[str, Path]:
    """Return every module of the checks by its name below `rigctl.checks`."""
    return {".".join(path.relative_to(CHECKS).with_suffix("").parts): path for path in sorted(CHECKS.rglob("*.py"))}


class Survivor(NamedTuple):
    """A mutant that no test can tell from the code, by its words: lines move."""

    module: str
    function: str
    comparison: str
    turned: str


class Count(NamedTuple):
    """What became of a module's mutants."""

    module: str
    mutants: int
    killed: int
    explained: int


def explained() -> dict[Survivor, str]:
    """Return each survivor that is explained, with why nothing can tell it."""
    found = {}
    for entry in yaml.safe_load(EXPLAINED.read_text(encoding="utf-8")) or ():
        for turned in entry["turned"]:
            found[Survivor(entry["module"], entry["function"], entry["comparison"], turned)] = entry["why"]
    return found


def figures(counts: Iterable[Count], page: str) -> str:
    """Return the table of each module's last run: `counts`, and what the page has of modules that were not run."""
    known = {name: Count(name, *map(int, row)) for name, *row in _ROW.findall(page)}
    known |= {one.module: one for one in counts}
    rows = [known[name] for name in modules() if name in known and known[name].mutants]
    total = (sum(column) for column in list(zip(*rows, strict=True))[1:])
    return _table(
        ("module", "mutants", "killed", "survive, explained"),
        [*((f"`{one.module}`", *one[1:]) for one in rows), ("all", *total)],
    )


def survivors() -> str:
    """Return the list of what is explained."""
    rows = [
        (f"`{one.module}.{one.function}`", f"`{one.comparison}`", f"`{one.turned}`", why)
        for one, why in explained().items()
    ]
    return _table(("where", "comparison", "turned to", "why nothing can tell"), rows)


def written(text: str, **parts: str) -> str:
    """Return the page with what stands between its markers replaced."""
    for name, part in parts.items():
        text = re.sub(
            rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)",
            lambda found, part=part: f"{found[1]}{part}{found[2]}",
            text,
            flags=re.DOTALL,
        )
    return text


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)
