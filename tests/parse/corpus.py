"""Outputs of real machines, where this checkout has them beside it; they are no part of the project."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

CORPUS = Path(os.environ.get("RIGCTL_CORPUS") or Path(__file__).parents[3] / "shared" / "corpus")


TRIES = settings(max_examples=200, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
"""Enough tries to find what breaks a parser, on a machine that may be busy."""


def files(*folders: str) -> list[Path]:
    """The files of some folders; none where the corpus is absent."""
    return sorted(path for folder in folders for path in (CORPUS / folder).glob("*") if path.is_file())


def each(*folders: str):
    """Parametrise a test by the files of some folders; it is skipped where they are absent."""
    found = files(*folders)
    if not found:
        return pytest.mark.skip(reason="no corpus here")
    return pytest.mark.parametrize("path", found, ids=lambda path: path.name)


def read(path: Path) -> str:
    """A capture as it came, carriage returns included."""
    with path.open(encoding="utf-8", newline="") as file:
        return file.read()
