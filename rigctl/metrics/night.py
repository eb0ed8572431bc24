"""What a night leaves for monitoring: its own outcome, and the textfile of the whole fleet."""

from __future__ import annotations

from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING

from rigctl.metrics.collect import registry_of
from rigctl.metrics.seen import look
from rigctl.metrics.textfile import write_textfile
from rigctl.nightly import last
from rigctl.store.index import Index

if TYPE_CHECKING:
    from datetime import datetime

    from rigctl.model.night import LastNight
    from rigctl.nightly.settings import Park


def keep(park: Park, runs: Path, night: LastNight, now: datetime, *, whole: bool) -> None:
    """Keep what became of a night, and write `metrics_file` where the park names one.

    Args:
        park: The rigs of the night.
        runs: The folder of the run directories.
        night: What became of it.
        now: When that is.
        whole: Whether these are all rigs of the park; else every rig of the index is in the file.

    Raises:
        UsageError: one of the places cannot be written.
        RigctlError: the disk is full or broken, or the index cannot be used.
    """
    last.write(runs, night)
    if park.spec.metrics_file is None:
        return
    rigs = {rig.name: rig.spec.rig_class for rig in park.fleet} if whole else None
    with Index.open(runs) as index:
        unreadable = index.update().unreadable
        seen = look(index, now.astimezone(UTC), rigs=rigs, unreadable=len(unreadable))
    write_textfile(Path(park.spec.metrics_file), registry_of(seen))
