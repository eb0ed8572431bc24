"""`nightly.json` beside the runs: what each service was told, read and replaced in one piece."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rigctl.nightly.told import Kept
from rigctl.store.canonical import dumps
from rigctl.store.files import replace_durably
from rigctl.store.lines import read_model

if TYPE_CHECKING:
    from pathlib import Path

FILE = "nightly.json"


def read(runs: Path) -> Kept:
    """What was told so far; nothing where there is no file. Raises UsageError where it is damaged."""
    path = runs / FILE
    return read_model(path, Kept, f"remove {path}: everything is told once more then") if path.exists() else Kept()


def write(runs: Path, kept: Kept) -> None:
    """Keep what was told."""
    replace_durably(runs / FILE, dumps(kept).encode() + b"\n")
