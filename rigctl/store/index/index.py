"""Asking the index."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from sqlalchemy import func, select

from rigctl.model.past import Past, Point
from rigctl.model.verdict import Verdict
from rigctl.store.index.bring import Updated, bring
from rigctl.store.index.opening import Asked, open_engine
from rigctl.store.index.tables import past, point, run

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import TracebackType

    from sqlalchemy import Engine, Row, Select

    from rigctl.model.decision import BaselineDecision

_VERDICTS = {verdict.value: verdict for verdict in Verdict}
_CELL = (past.c.rig, past.c.root, past.c.folder, past.c.ended_at, past.c.verdict, past.c.cause)


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
        return bring(self._engine, self.runs, self._root, anew=False)

    def rebuild(self) -> Updated:
        """Forget everything of this folder and read all of it again."""
        return bring(self._engine, self.runs, self._root, anew=True)

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

    def _reading(self) -> Asked:
        return Asked(self._engine)


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
