"""The source tree as data: which module imports what, read with ast and never by importing."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
PACKAGE = REPO / "rigctl"


@dataclass(frozen=True)
class Import:
    """One import statement's target, absolute: `rigctl.model.rig` or `subprocess`."""

    importer: str
    target: str
    line: int

    def __str__(self) -> str:
        return f"{self.importer}:{self.line} imports {self.target}"


@cache
def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(REPO).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def imports() -> tuple[Import, ...]:
    """Every import of the package, those inside functions and `if TYPE_CHECKING` included."""
    return tuple(one for name, path in modules().items() for one in imports_of(name, path))


def imports_of(name: str, path: Path) -> list[Import]:
    """The imports of one file; relative ones made absolute."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [Import(name, alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(name, node, is_package=path.name == "__init__.py")
            for alias in node.names:
                full = f"{base}.{alias.name}"
                found.append(Import(name, full if full in modules() else base, node.lineno))
    return found


def _absolute(name: str, node: ast.ImportFrom, *, is_package: bool) -> str:
    if not node.level:
        return node.module or ""
    drop = node.level - 1 if is_package else node.level
    parts = name.split(".")
    return ".".join(parts[: len(parts) - drop] + ([node.module] if node.module else []))


def within(name: str, *packages: str) -> bool:
    """Whether a module is one of `packages` or inside one."""
    return any(name == package or name.startswith(package + ".") for package in packages)
