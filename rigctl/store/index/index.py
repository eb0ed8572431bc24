"""Asking the index, and bringing it up to date with the run directories."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from sqlalchemy import delete, func, insert, select
from sqlalchemy.exc import DBAPIError

from rigctl.errors import UsageError
from rigctl.model.past import Past, Point
from rigctl.model.verdict import Verdict
from rigctl.store.index.folder import look
from rigctl.store.index.opening import lock, open_engine, unusable
from rigctl.store.index.tables import past, point, run
from rigctl.store.lines import collector_paused

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import TracebackType

    from sqlalchemy import Connection, Engine, Row, Select

    from rigctl.model.decision import BaselineDecision

log = logging.getLogger(__name__)
_VERDICTS = {verdict.value: verdict for verdict in Verdict}
_CELL = (past.c.rig, past.c.root, past.c.folder, past.c.ended_at, past.c.verdict, past.c.cause)
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


@dataclass(frozen=True)
class Cell:
    """One rig in one run, in a few words."""

    rig: str
    folder: str
    """The run directory's name."""
    here: bool
    """Whether it is in this folder of runs, and not another controller's."""
    ended_at: str
    verdict: Verdict | None
    """None: busy."""
    cause: str
    """`check[subject]: reason` of the first cause; empty where there is none."""


@dataclass
class _Work:
    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    unreadable: list[tuple[str, str]] = field(default_factory=list)


class Index:
    """The index of a folder of runs; use it as a context.

    Every method raises RigctlError where the database does not answer.
    """

    def __init__(self, runs: Path, engine: Engine, root: str) -> None:
        """Take an opened database; use `open`."""
        self.runs = runs
        self._engine = engine
        self._root = root

    @classmethod
    def open(cls, runs: Path, url: str | None = None) -> Self:
        """Open the index of the run directories under `runs`, and make or migrate its tables where need be.

        Args:
            runs: The folder.
            url: A database; None takes `RIGCTL_INDEX`, and without that `index.sqlite` in the folder.

        Raises:
            UsageError: the URL is wrong, or the index is of a newer version.
            RigctlError: it cannot be used.
        """
        engine, root = open_engine(runs, url)
        return cls(runs, engine, root)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the database."""
        self._engine.dispose()

    def update(self) -> Updated:
        """Take in what is new, changed or gone under the folder; cheap where nothing is.

        A run changed where something was added, replaced or removed in its directory, or where its record.json or
        run.json was written to; what was written into its other files in place only `rebuild` reads.

        A run whose record is not there yet is known and looked at again; one that cannot be read is named, left out
        and tried again the next time.
        """
        return self._bring(anew=False)

    def rebuild(self) -> Updated:
        """Forget everything of this folder and read all of it again."""
        return self._bring(anew=True)

    def rigs(self) -> tuple[str, ...]:
        """Return the names of all rigs that were ever judged or busy."""
        with self._reading() as asked:
            return tuple(asked.execute(select(past.c.rig).distinct().order_by(past.c.rig)).scalars())

    def pasts(
        self,
        rig: str | None = None,
        *,
        since: str = "",
        until: str = "",
        kinds: Sequence[str] = ("accept",),
        limit: int | None = None,
    ) -> tuple[Past, ...]:
        """Return rigs in runs, oldest first.

        Args:
            rig: Of this one only.
            since: Not those that ended before (ISO 8601, UTC; a day will do).
            until: Nor those that ended after.
            kinds: Kinds of run.
            limit: The newest so many.
        """
        found = select(past.c.document).where(past.c.kind.in_(tuple(kinds)))
        found = _between(found, past.c.ended_at, since, until)
        if rig is not None:
            found = found.where(past.c.rig == rig)
        found = found.order_by(past.c.ended_at.desc(), past.c.folder.desc(), past.c.rig.desc())
        if limit is not None:
            found = found.limit(limit)
        with self._reading() as asked:
            rows = asked.execute(found).scalars().all()
        return tuple(Past.model_validate_json(row) for row in reversed(rows))

    def newest(self, rig: str, *, judged: bool = True) -> Past | None:
        """Return a rig's newest acceptance; with `judged` those in which it was busy are left out."""
        found = select(past.c.document).where(past.c.rig == rig, past.c.kind == "accept")
        if judged:
            found = found.where(past.c.judged)
        with self._reading() as asked:
            row = asked.execute(found.order_by(past.c.ended_at.desc(), past.c.folder.desc()).limit(1)).scalar()
        return Past.model_validate_json(row) if row is not None else None

    def points(self, rig: str, *checks: str, since: str = "", until: str = "") -> tuple[Point, ...]:
        """Return the figures that acceptances of a rig found, oldest first; of these checks where some are named."""
        found = (
            select(point, run.c.run_id)
            .join(run, (run.c.root == point.c.root) & (run.c.folder == point.c.folder))
            .join(
                past,
                (past.c.root == point.c.root) & (past.c.folder == point.c.folder) & (past.c.rig == point.c.rig),
            )
            .where(point.c.rig == rig, past.c.kind == "accept")
        )
        if checks:
            found = found.where(point.c.check_id.in_(checks))
        found = _between(found, point.c.ended_at, since, until)
        found = found.order_by(point.c.ended_at, point.c.folder, point.c.check_id, point.c.subject)
        with self._reading() as asked:
            return tuple(_point(row) for row in asked.execute(found))

    def cells(self, *, since: str = "") -> tuple[Cell, ...]:
        """Return every rig of every acceptance in a few words, oldest first: quick for a whole year of a fleet."""
        found = _between(select(*_CELL).where(past.c.kind == "accept"), past.c.ended_at, since, "")
        with self._reading() as asked:
            rows = asked.execute(found.order_by(past.c.ended_at, past.c.folder, past.c.rig))
            return tuple(self._cell(row) for row in rows)

    def newest_cells(self) -> tuple[Cell, ...]:
        """Return the newest acceptance of each rig in a few words: that with a verdict, where there is one."""
        found = select(past.c.rig, past.c.judged, func.max(past.c.ended_at).label("ended_at"))
        newest = found.where(past.c.kind == "accept").group_by(past.c.rig, past.c.judged).subquery()
        same = (
            (past.c.rig == newest.c.rig) & (past.c.judged == newest.c.judged) & (past.c.ended_at == newest.c.ended_at)
        )
        rows = select(*_CELL).join(newest, same).where(past.c.kind == "accept")
        with self._reading() as asked:
            cells = [self._cell(row) for row in asked.execute(rows.order_by(past.c.judged, past.c.folder))]
        return tuple({cell.rig: cell for cell in cells}.values())

    def _cell(self, row: Any) -> Cell:
        return Cell(
            rig=row.rig,
            folder=row.folder,
            here=row.root == self._root,
            ended_at=row.ended_at,
            verdict=_VERDICTS[row.verdict] if row.verdict is not None else None,
            cause=row.cause or "",
        )

    def stamps(self) -> dict[str, str]:
        """Return the readable run directories of this folder, each with what changes when it does."""
        found = select(run.c.folder, run.c.stamp).where(run.c.root == self._root, run.c.unreadable.is_(None))
        with self._reading() as asked:
            return {row.folder: row.stamp for row in asked.execute(found)}

    def run_ids(self) -> dict[str, str]:
        """Return the readable run directories of this folder, each with the run's own id."""
        found = select(run.c.folder, run.c.run_id).where(run.c.root == self._root, run.c.unreadable.is_(None))
        with self._reading() as asked:
            return {row.folder: row.run_id for row in asked.execute(found)}

    def baseline_runs(self, rig: str, decision: BaselineDecision | None = None) -> tuple[str, ...]:
        """Return the folders of the runs that count for a rig's baseline (accepted, burnt, facts known), oldest first.

        Of this folder of runs alone: those of other controllers cannot be opened here. With `decision` those of the
        time that people let count, and the run that they accepted, whatever its verdict.
        """
        own = (past.c.root == self._root, past.c.rig == rig, past.c.kind == "accept")
        with self._reading() as asked:
            if decision is None:
                found = select(past.c.folder).where(*own, past.c.baseline)
                return tuple(asked.execute(found.order_by(past.c.ended_at, past.c.folder)).scalars())
            rows = select(past.c.folder, past.c.baseline, past.c.document).where(*own)
            asked_for = asked.execute(rows.order_by(past.c.ended_at, past.c.folder)).all()
        return tuple(row.folder for row in asked_for if _decided(row.document, row.baseline, decision))

    def xid_runs(self, rigs: Sequence[str], since_day: str) -> tuple[str, ...]:
        """Return the folders of the acceptances in which an Xid of one of these rigs was a finding, in no order.

        Of this folder of runs alone, and of those that began on `since_day` (ISO 8601) or later.
        """
        found = select(past.c.folder, past.c.document).where(
            past.c.root == self._root, past.c.kind == "accept", past.c.folder >= since_day, past.c.rig.in_(rigs)
        )
        with self._reading() as asked:
            rows = asked.execute(found).all()
        return tuple({row.folder for row in rows if Past.model_validate_json(row.document).xids})

    def own_pasts(self, rig: str, runs: Sequence[str]) -> tuple[Past, ...]:
        """Return a rig in these folders of this folder of runs, oldest first."""
        found = select(past.c.document).where(past.c.root == self._root, past.c.rig == rig, past.c.folder.in_(runs))
        with self._reading() as asked:
            rows = asked.execute(found.order_by(past.c.ended_at, past.c.folder)).scalars()
            return tuple(Past.model_validate_json(row) for row in rows)

    def baseline_points(self, rig: str, runs: Sequence[str]) -> tuple[Point, ...]:
        """Return the figures that a rig's acceptances in these folders found, oldest first."""
        own = (point.c.root == self._root, point.c.rig == rig, point.c.folder.in_(runs))
        found = select(point, point.c.folder.label("run_id")).where(*own)
        with self._reading() as asked:
            return tuple(_point(row) for row in asked.execute(found.order_by(point.c.ended_at, point.c.folder)))

    def _reading(self) -> _Asked:
        return _Asked(self._engine)

    def _bring(self, *, anew: bool) -> Updated:
        present = look(self.runs)
        with self._reading() as asked:
            rows = asked.execute(select(run.c.folder, run.c.stamp, run.c.unreadable).where(run.c.root == self._root))
            known = {row.folder: None if row.unreadable else row.stamp for row in rows}
        removed = sorted(set(known) - set(present))
        forgotten = sorted(known) if anew else removed
        wanted = sorted(name for name, stamp in present.items() if anew or known.get(name) != stamp)
        work = _Work()
        for number in range(0, len(forgotten), _AT_ONCE):
            self._write(forgotten[number : number + _AT_ONCE], [], work, present, known)
        with collector_paused():
            for number in range(0, len(wanted), _AT_ONCE):
                self._write([], wanted[number : number + _AT_ONCE], work, present, {} if anew else known)
        return Updated(tuple(work.added), tuple(work.changed), tuple(removed), tuple(work.unreadable))

    def _write(
        self,
        forget: Sequence[str],
        read: Sequence[str],
        work: _Work,
        present: dict[str, str],
        known: dict[str, str | None],
    ) -> None:
        rows = [self._rows(name, present[name], work, new=name not in known) for name in read]
        gone = [*forget, *read]
        with _Asked(self._engine, writes=True) as asked:
            lock(asked)
            # By hand and in this order: a database without cascades would keep what belongs to them.
            for table in (point, past, run):
                asked.execute(delete(table).where(table.c.root == self._root, table.c.folder.in_(gone)))
            for table, number in ((run, 0), (past, 1), (point, 2)):
                values = [value for one in rows for value in one[number]]
                if values:
                    asked.execute(insert(table), values)

    def _rows(
        self, folder: str, stamp: str, work: _Work, *, new: bool
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]:
        """The rows of one run in each table."""
        from rigctl.store.index.scan import document, scan  # noqa: PLC0415 - slow to load; most times nothing is new
        from rigctl.store.rundir import RunDir  # noqa: PLC0415

        key = {"root": self._root, "folder": folder}
        one = RunDir(self.runs / folder)
        try:
            run_id, found = one.run_id, scan(one)
        except UsageError as error:
            work.unreadable.append((folder, error.message))
            log.warning("%s is left out of the index: %s", folder, error.message)
            return [{**key, "stamp": stamp, "run_id": folder, "unreadable": error.message}], [], []
        (work.added if new else work.changed).append(folder)
        pasts = [
            {
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
            for rig in found.pasts
        ]
        points = [
            {
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
            for rig, figures in found.points.items()
            for figure in figures
        ]
        return [{**key, "stamp": stamp, "run_id": run_id, "unreadable": None}], pasts, points


class _Asked:
    """A connection in a transaction, whose complaints are ours."""

    def __init__(self, engine: Engine, *, writes: bool = False) -> None:
        self._engine = engine
        self._connection = engine.connect().execution_options(rigctl_writes=writes)

    def __enter__(self) -> Connection:
        self._connection.begin()
        return self._connection

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with self._connection:
            if error is None:
                self._connection.commit()
        if isinstance(error, DBAPIError):
            raise unusable(self._engine, error) from error


def _first_cause(rig: Past) -> str | None:
    if not rig.causes:
        return None
    first = rig.causes[0]
    return f"{first.check}[{first.subject}]: {first.reason}"


def _decided(document: str, counts: bool, decision: BaselineDecision) -> bool:
    one = Past.model_validate_json(document)
    accepted = counts or (decision.accepts(one.run_id) and one.burnt and one.known)
    return accepted and decision.covers(one.run_id, one.started_at, one.ended_at)


def _between(found: Select[Any], column: Any, since: str, until: str) -> Select[Any]:
    if since:
        found = found.where(column >= since)
    if until:
        # A day means all of it: what begins with the text is not after it.
        found = found.where(column < until + "\U0010ffff")
    return found


def _point(row: Row[Any]) -> Point:
    return Point.model_construct(
        run_id=row.run_id,
        ended_at=row.ended_at,
        profile=row.profile,
        check=row.check_id,
        subject=row.subject,
        slot=row.slot,
        uuid=row.uuid,
        found=row.found,
        unit=row.unit,
        verdict=_VERDICTS[row.verdict],
        limit=row.limit_value,
    )
