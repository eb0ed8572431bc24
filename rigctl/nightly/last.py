"""`last-night.json` beside the runs: what became of the newest night, read and replaced in one piece."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rigctl.model.night import LastNight
from rigctl.store.canonical import dumps
from rigctl.store.files import replace_durably
from rigctl.store.lines import read_model

if TYPE_CHECKING:
    from pathlib import Path

FILE = "last-night.json"


def read(runs: Path) -> LastNight | None:
    """What became of the newest night; None where there was none. Raises UsageError where the file is damaged."""
    path = runs / FILE
    return read_model(path, LastNight, f"remove {path}: the next night writes it") if path.exists() else None


def write(runs: Path, night: LastNight) -> None:
    """Keep what became of a night."""
    replace_durably(runs / FILE, dumps(night).encode() + b"\n")
