"""Bringing the index up to date with the run directories: what is new, changed or gone."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, insert, select

from rigctl.errors import UsageError
from rigctl.store.index.folder import look
from rigctl.store.index.opening import Asked, lock
from rigctl.store.index.tables import past, point, run
from rigctl.store.lines import collector_paused

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sqlalchemy import Engine

    from rigctl.model.past import Past, Point

    Rows = list[dict[str, Any]]

log = logging.getLogger(__name__)
_AT_ONCE = 200
"""So many runs are written in one transaction: another process waits for no more."""


@dataclass(frozen=True)
class Updated:
    """What bringing the index up to date found."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    unreadable: tuple[tuple[str, str], ...] = ()
    """Run directories of which nothing is known, and why: damaged, or half copied."""


@dataclass
class _Work:
    engine: Engine
    runs: Path
    root: str
    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    unreadable: list[tuple[str, str]] = field(default_factory=list)


def bring(engine: Engine, runs: Path, root: str, *, anew: bool) -> Updated:
    """Bring what the database holds of a folder of runs up to date.

    Args:
        engine: The database.
        runs: The folder.
        root: The name under which the database holds it.
        anew: Forget all of it, and read it again.

    Raises:
        RigctlError: the database does not answer.
    """
    present = look(runs)
    with Asked(engine) as asked:
        rows = asked.execute(select(run.c.folder, run.c.stamp, run.c.unreadable).where(run.c.root == root))
        known = {row.folder: None if row.unreadable else row.stamp for row in rows}
    removed = sorted(set(known) - set(present))
    forgotten = sorted(known) if anew else removed
    wanted = sorted(name for name, stamp in present.items() if anew or known.get(name) != stamp)
    before = set() if anew else set(known)
    work = _Work(engine, runs, root)
    for number in range(0, len(forgotten), _AT_ONCE):
        _write(work, forgotten[number : number + _AT_ONCE], [])
    with collector_paused():
        for number in range(0, len(wanted), _AT_ONCE):
            some = wanted[number : number + _AT_ONCE]
            _write(work, some, [_rows(work, name, present[name], new=name not in before) for name in some])
    return Updated(tuple(work.added), tuple(work.changed), tuple(removed), tuple(work.unreadable))


def _write(work: _Work, forget: Sequence[str], rows: Sequence[tuple[Rows, Rows, Rows]]) -> None:
    """Take what is known of these runs out, and put in what they say now."""
    with Asked(work.engine, writes=True) as asked:
        lock(asked)
        # By hand and in this order: a database without cascades would keep what belongs to them.
        for table in (point, past, run):
            asked.execute(delete(table).where(table.c.root == work.root, table.c.folder.in_(forget)))
        for table, number in ((run, 0), (past, 1), (point, 2)):
            values = [value for one in rows for value in one[number]]
            if values:
                asked.execute(insert(table), values)


def _rows(work: _Work, folder: str, stamp: str, *, new: bool) -> tuple[Rows, Rows, Rows]:
    """The rows of one run in each table."""
    from rigctl.store.index.scan import scan  # noqa: PLC0415 - slow to load; most times nothing is new
    from rigctl.store.rundir import RunDir  # noqa: PLC0415

    key = {"root": work.root, "folder": folder}
    one = RunDir(work.runs / folder)
    try:
        run_id, found = one.run_id, scan(one)
    except UsageError as error:
        work.unreadable.append((folder, error.message))
        log.warning("%s is left out of the index: %s", folder, error.message)
        return [{**key, "stamp": stamp, "run_id": folder, "unreadable": error.message}], [], []
    (work.added if new else work.changed).append(folder)
    return (
        [{**key, "stamp": stamp, "run_id": run_id, "unreadable": None}],
        [_past(key, rig) for rig in found.pasts],
        [_point(key, rig, figure) for rig, figures in found.points.items() for figure in figures],
    )


def _past(key: dict[str, str], rig: Past) -> dict[str, Any]:
    from rigctl.store.index.scan import document  # noqa: PLC0415 - as above

    return {
        **key,
        "rig": rig.rig,
        "kind": rig.kind,
        "ended_at": rig.ended_at,
        "verdict": rig.verdict.value if rig.verdict is not None else None,
        "cause": _first_cause(rig),
        "judged": rig.verdict is not None,
        "accepted": rig.accepted,
        "baseline": rig.accepted and rig.burnt and rig.known,
        "document": document(rig),
    }


def _point(key: dict[str, str], rig: str, figure: Point) -> dict[str, Any]:
    return {
        **key,
        "rig": rig,
        "check_id": figure.check,
        "subject": figure.subject,
        "ended_at": figure.ended_at,
        "profile": figure.profile,
        "slot": figure.slot,
        "uuid": figure.uuid,
        "found": figure.found,
        "unit": figure.unit,
        "verdict": figure.verdict.value,
        "limit_value": figure.limit,
    }


def _first_cause(rig: Past) -> str | None:
    if not rig.causes:
        return None
    first = rig.causes[0]
    return f"{first.check}[{first.subject}]: {first.reason}"
