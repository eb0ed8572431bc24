"""Runs of a given age, with telemetry long enough to be thinned."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from tests.report.build_run import build_run

if TYPE_CHECKING:
    from rigctl.store import RunDir

NONE = Path("no-certificates-here")


def old_run(
    root: Path, days: float, *, now: datetime | None = None, hours: float = 0.1, faulty: bool = False
) -> RunDir:
    """Write a judged run of two rigs that ended so many days ago; its GPU burn lasts `hours`."""
    run = build_run(root, faulty=faulty, hours=hours)
    ended = ((now or datetime.now(UTC)) - timedelta(days=days)).isoformat(timespec="seconds").replace("+00:00", "Z")
    run.write_record(run.read_record().model_copy(update={"started_at": ended, "ended_at": ended}))
    return run


def files(root: Path) -> dict[str, bytes]:
    """Every file under `root` but the index and locks, by its path there."""
    found = (path for path in sorted(root.rglob("*")) if path.is_file())
    kept = (path for path in found if not path.name.startswith("index.sqlite") and path.name != "prune.lock")
    return {str(path.relative_to(root)): path.read_bytes() for path in kept}
