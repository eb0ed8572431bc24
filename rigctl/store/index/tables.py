"""The index's tables. A change here is a new file in `migrations/versions/`, and `HEAD` names it."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, Float, ForeignKeyConstraint, Index, MetaData, String, Table, Text

HEAD = "0002"
"""The newest migration."""

metadata = MetaData()

run = Table(
    "run",
    metadata,
    Column("root", String, primary_key=True),
    Column("folder", String, primary_key=True),
    Column("stamp", String, nullable=False),
    Column("run_id", String, nullable=False),
    Column("unreadable", Text),
)
"""Every run directory that was seen. `root` tells the folders of several controllers apart; `stamp` changes with the
directory; `unreadable` says why nothing of it is known."""

past = Table(
    "past",
    metadata,
    Column("root", String, primary_key=True),
    Column("folder", String, primary_key=True),
    Column("rig", String, primary_key=True),
    Column("kind", String, nullable=False),
    Column("ended_at", String, nullable=False),
    Column("verdict", String),
    Column("cause", Text),
    Column("judged", Boolean, nullable=False),
    Column("accepted", Boolean, nullable=False),
    Column("baseline", Boolean, nullable=False),
    Column("document", Text, nullable=False),
    ForeignKeyConstraint(["root", "folder"], ["run.root", "run.folder"], ondelete="CASCADE"),
)
"""One rig in one run. `verdict` is null where it was busy, `cause` is the first one's `check[subject]: reason`, and
`document` is `rigctl.model.past.Past` as JSON."""

point = Table(
    "point",
    metadata,
    Column("root", String, primary_key=True),
    Column("folder", String, primary_key=True),
    Column("rig", String, primary_key=True),
    Column("check_id", String, primary_key=True),
    Column("subject", String, primary_key=True),
    Column("ended_at", String, nullable=False),
    Column("profile", String, nullable=False),
    Column("slot", String),
    Column("uuid", String),
    Column("found", Float, nullable=False),
    Column("unit", String),
    Column("verdict", String, nullable=False),
    Column("limit_value", Float),
    ForeignKeyConstraint(["root", "folder", "rig"], ["past.root", "past.folder", "past.rig"], ondelete="CASCADE"),
)
"""One figure that a check found; `rigctl.model.past.Point`."""

Index("past_by_rig", past.c.rig, past.c.kind, past.c.ended_at)
Index("past_by_time", past.c.kind, past.c.ended_at)
Index("point_by_series", point.c.rig, point.c.check_id, point.c.ended_at)
