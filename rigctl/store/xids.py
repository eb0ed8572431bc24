"""Find the Xid messages of a rig's earlier runs, so that one that comes again is told from one that comes once."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING

from rigctl.errors import RigctlError, UsageError
from rigctl.model.history import PastXid
from rigctl.model.reading import Facts, KernelMessage
from rigctl.model.verdict import Verdict
from rigctl.parse import ParseError, xid
from rigctl.store.baseline import judged_runs
from rigctl.store.lines import read_lines, read_model

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime
    from pathlib import Path

    from rigctl.model.verdict import Record, RigRecord
    from rigctl.store.rundir import RunDir

log = logging.getLogger(__name__)

CHECK = "kernel.xid"
KEPT_DAYS = 7
"""Older ones say nothing any more of the hardware as it is."""


def find_past_xids(root: Path, rigs: tuple[str, ...], now: datetime) -> dict[str, tuple[PastXid, ...]]:
    """Return, by rig, the Xid messages that were findings in the runs of the last week under `root`, oldest first.

    The same message that two runs read is one. A run that cannot be read is left out and named in the log. The index
    beside the runs says which runs have any; where it cannot be used, every run of the week is read.
    """
    if not root.is_dir():
        return {}
    from rigctl.store.index import Index, own_url  # noqa: PLC0415 - it reads runs, as this module does

    try:
        with Index.open(root, own_url(root)) as index:
            index.update()
            runs = index.xid_runs(rigs, _first_day(now))
    except (RigctlError, OSError) as error:
        log.warning("the index of %s cannot be used, so every run of the week is read: %s", root, error)
        return read_past_xids(root, rigs, now)
    return _found(judged_runs(root, names=runs), rigs, now)


def read_past_xids(root: Path, rigs: tuple[str, ...], now: datetime) -> dict[str, tuple[PastXid, ...]]:
    """Return the same without an index: every run of the week is read."""
    return _found(judged_runs(root, _first_day(now)), rigs, now)


def xid_numbers(rig: RigRecord) -> tuple[str, ...]:
    """Return the numbers of the Xid messages that were a finding in a run, sorted."""
    return tuple(
        sorted(
            {
                number
                for verdict in rig.verdicts
                if verdict.check == CHECK and verdict.verdict in (Verdict.FAIL, Verdict.WARN, Verdict.WAIVED)
                for number in str(verdict.found).split(", ")
            }
        )
    )


def _first_day(now: datetime) -> str:
    return (now - timedelta(days=KEPT_DAYS + 1)).date().isoformat()  # a run may take a night


def _found(
    runs: Iterable[tuple[RunDir, Record]], rigs: tuple[str, ...], now: datetime
) -> dict[str, tuple[PastXid, ...]]:
    since_s = (now - timedelta(days=KEPT_DAYS)).timestamp()
    found: dict[str, dict[tuple[float, int, str], PastXid]] = {}
    for run, record in runs:
        for rig in record.rigs:
            if rig.name not in rigs:
                continue
            for one in _of_run(run, rig):
                if one.t_wall_s >= since_s:
                    known = found.setdefault(rig.name, {})
                    known.setdefault((one.t_wall_s, one.number, one.pci_bus_id), one)
    return {name: tuple(sorted(known.values(), key=lambda one: one.t_wall_s)) for name, known in found.items()}


def _of_run(run: RunDir, rig: RigRecord) -> Iterator[PastXid]:
    """Every message of the numbers that the run's own verdict names: what was no finding there is none here."""
    numbers = xid_numbers(rig)
    if not numbers:
        return
    folder = run.path / rig.name
    try:
        messages = read_lines(folder / "kernel.jsonl", KernelMessage)
        facts = read_model(folder / "facts.json", Facts) if (folder / "facts.json").exists() else None
    except UsageError as error:
        log.warning("%s is left out of the Xids of %s: %s", run.path.name, rig.name, error.message)
        return
    for message in messages:
        try:
            event = xid.parse(message.message)
        except ParseError:
            continue  # that run's own verdict is an error for it
        if event is None or str(event.number) not in numbers:
            continue
        cards = facts.gpus if facts is not None else ()
        uuid = next((gpu.uuid for gpu in cards if xid.same_card(gpu.pci_bus_id, event.pci_bus_id)), "")
        yield PastXid(
            run_id=run.path.name,
            t_wall_s=message.t_wall_s,
            number=event.number,
            uuid=uuid,
            pci_bus_id=event.pci_bus_id,
        )
