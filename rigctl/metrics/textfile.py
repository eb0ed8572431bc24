"""The textfile for node_exporter: replaced in one piece, and readable by whoever runs it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from prometheus_client import generate_latest

from rigctl.errors import UsageError
from rigctl.model.night import SUFFIX
from rigctl.store.files import replace_durably

if TYPE_CHECKING:
    from pathlib import Path

    from prometheus_client import CollectorRegistry

MODE = 0o644
"""node_exporter runs as somebody else."""


def text(registry: CollectorRegistry) -> str:
    """Return the metrics in Prometheus' text format 0.0.4, the one that node_exporter reads."""
    return generate_latest(registry).decode()


def require_place(path: Path) -> None:
    """Refuse a file that could not be written, or that node_exporter would not read. Raises UsageError."""
    if path.suffix != SUFFIX:
        raise UsageError(f"{path} does not end in {SUFFIX}", f"node_exporter reads {SUFFIX} files only")
    if not path.parent.is_dir():
        raise UsageError(
            f"there is no folder {path.parent}", "make it, and name it to node_exporter's textfile collector"
        )
    if path.is_dir() or not os.access(path.parent, os.W_OK | os.X_OK):
        raise UsageError(f"{path} cannot be written", "give yourself write access to its folder, or name another place")


def write_textfile(path: Path, registry: CollectorRegistry) -> None:
    """Write the file anew in one step, with mode 0644 whatever the umask says.

    Raises:
        UsageError: the place cannot be written, or the name is wrong.
        RigctlError: the disk is full or broken.
    """
    require_place(path)
    replace_durably(path, text(registry).encode(), mode=MODE)
