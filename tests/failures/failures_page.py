"""Write docs/failure-modes.md from the faults and the tests that meet them.

`python -m tests.failures.failures_page`
"""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

from rigctl.sim import faults

from .other_modes import OTHERS

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
UPGRADES = ROOT / "tests" / "upgrade" / "test_on_rigs.py"
"""What fails in the middle of an upgrade fails in provisioning."""
PAGE = ROOT / "docs" / "failure-modes.md"
INTRODUCTION = """\
# Failure modes of provisioning

This page is written by `python -m tests.failures.failures_page` from the catalogue of [faults](faults.md), from the
tests that meet them, and from `tests/failures/other_modes.py`. Each row is something that has happened to people. Rows
with a name are faults of simulated rigs: the test asks what `rigctl provision` says and does, that dpkg is whole, and
that the next `rigctl provision` after the remedy succeeds. Tests on rigs are slow: `make test-all` runs them.

What apt, dpkg, DKMS or sudo say is recognised by its words (`rigctl/provision/remedies.py`), and answered in one line
with what to do.

| mode | in the field | how it is met | tested by |
|---|---|---|---|
"""


def tests_by_fault() -> dict[str, list[str]]:
    """Which tests meet which fault."""
    found: dict[str, list[str]] = {}
    for path in (*sorted(FOLDER.glob("test_*.py")), UPGRADES):
        module = importlib.import_module(f"tests.{path.parent.name}.{path.stem}")
        for name, test in vars(module).items():
            for fault in getattr(test, "meets", ()):
                found.setdefault(fault, []).append(f"{path.relative_to(ROOT)}::{name}")
    return found


def exists(test: str) -> bool:
    """Whether there is such a test."""
    path, _, name = test.partition("::")
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return any(isinstance(node, ast.FunctionDef) and node.name == name for node in ast.walk(tree))


def render() -> str:
    """Return the page."""
    tested = tests_by_fault()
    rows = []
    for fault in faults.catalogue():
        if fault.met:
            tests = "<br>".join(f"`{test}`" for test in tested.get(fault.name, ()))
            rows.append(f"| `{fault.name}`: {fault.summary} | {fault.in_the_field} | {fault.met} | {tests} |")
    for row in OTHERS:
        tests = "<br>".join(f"`{test}`" for test in row.tests)
        rows.append(f"| {row.mode} | {row.in_the_field} | {row.met} | {tests} |")
    return INTRODUCTION + "\n".join(rows) + "\n"


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
